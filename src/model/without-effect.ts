/**
 * Fields of resources that are accepted and stored, and that no part of this release carries out yet.
 *
 * Every command that writes a resource (`apply`, `patch`, `edit` …) warns about those that it uses: nobody should rely on
 * something that does not exist. A row is removed when the part that acts on its field exists. Fields of the network
 * config are in `config/without-effect.ts`.
 */
interface FieldWithoutEffect {
  readonly kind: string;
  /** Below `spec`. */
  readonly field: string;
  /** What does not happen although the field requests it. */
  readonly consequence: string;
}

export const FIELDS_WITHOUT_EFFECT: readonly FieldWithoutEffect[] = [
  { kind: "Node", field: "wireguard", consequence: "traffic between nodes is not encrypted" },
];

/** One message for each field of the `spec` that requests something and has no effect. */
export function withoutEffect(kind: string, spec: unknown): readonly string[] {
  return FIELDS_WITHOUT_EFFECT.flatMap((row) => {
    if (row.kind !== kind || !isRequest(valueAt(spec, row.field))) return [];
    return [`spec.${row.field} has no effect in this version: ${row.consequence}`];
  });
}

/** A feature that is switched off, and an empty list, request nothing. */
function isRequest(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === "Never") return false;
  return !Array.isArray(value) || value.length > 0;
}

function valueAt(spec: unknown, field: string): unknown {
  let value = spec;
  for (const name of field.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}
