/** The message about one bad value: which field, which value, what is allowed, and the fix. */
import { type ConfigPath, type ConfigProblem, problem } from "./problem.ts";

/** What the message needs to know about the field; a section has no type. */
interface Described {
  readonly required: boolean;
  readonly type?: { readonly kind: string; readonly allowed: string; readonly allowedEntry?: string };
}

export function fieldProblem(path: ConfigPath, value: unknown, field: Described): ConfigProblem {
  const allowed = isEntryOfList(path) ? field.type?.allowedEntry : field.type?.allowed;
  return problem(path, { value, allowed: allowed ?? "an object", fix: fixFor(path, value, field) });
}

function fixFor(path: ConfigPath, value: unknown, field: Described): string {
  const name = String(path.findLast((step) => typeof step === "string"));
  if (value === undefined) return `add "${name}"`;
  if (isEntryOfList(path)) return `correct this entry of "${name}" or remove it`;
  const kind = field.type?.kind;
  if (kind === "string" && field.type?.allowed.startsWith('"true"') && typeof value === "boolean") {
    return `write "${name}": "${value}"`;
  }
  if (kind === "boolean" && (value === "true" || value === "false")) return `write "${name}": ${value}`;
  if (kind === "integer" && typeof value === "string" && /^\d+$/.test(value)) return `write "${name}": ${value}`;
  if (kind === "array of string" && typeof value === "string") return `write "${name}": ["…"]`;
  return field.required ? `correct "${name}"` : `correct "${name}" or remove it`;
}

function isEntryOfList(path: ConfigPath): boolean {
  return typeof path.at(-1) === "number";
}
