/**
 * From the parsed JSON of a network config to a `NetworkConfig`, or to every
 * problem it has, all at once.
 *
 * Pure: whether the files a config names can be read is `config-files.ts`'s question.
 */
import * as v from "valibot";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { type ConfigWarning, crossProblems, crossWarnings } from "./cross-checks.ts";
import { type JsonObject, type NetworkConfig, networkConfigFrom } from "./network-config.ts";
import { type ConfigPath, type ConfigProblem, pathText, problem } from "./problem.ts";
import { redactUrl } from "./redact.ts";
import { wireSchema } from "./schema.ts";
import { allowedOf, fieldAt, isRequired, typeName } from "./schema-shape.ts";
import { findKey, isObject, readWireObject, type UnknownKey } from "./wire-object.ts";

export type DecodedConfig =
  | {
      readonly ok: true;
      readonly config: NetworkConfig;
      /** To be logged at WARNING. */
      readonly warnings: readonly ConfigWarning[];
      /** Ignored, to be logged at DEBUG. */
      readonly unknownKeys: readonly UnknownKey[];
    }
  | {
      readonly ok: false;
      readonly problems: readonly ConfigProblem[];
      readonly warnings: readonly ConfigWarning[];
      readonly unknownKeys: readonly UnknownKey[];
    };

export function decodeNetworkConfig(raw: unknown): DecodedConfig {
  if (!isObject(raw)) {
    const found = problem([], { value: raw, allowed: "an object", fix: "write the network config as { … }" });
    const message = found.message.replace('""', "the network config");
    return { ok: false, problems: [{ path: [], message }], warnings: [], unknownKeys: [] };
  }
  const schema = wireSchema();
  const ipamAsGiven = ipamOf(raw);
  const { present, unknownKeys } = readWireObject(raw, schema);
  const parsed = v.safeParse(schema, present);
  const problems = [...fieldProblems(parsed.issues ?? [], present), ...crossProblems(present)];
  const notes = { warnings: crossWarnings(present), unknownKeys: ownUnknownKeys(unknownKeys, ipamAsGiven) };
  if (!parsed.success || problems.length > 0) return { ok: false, problems, ...notes };
  return { ok: true, config: networkConfigFrom(parsed.output, ipamAsGiven), ...notes };
}

/** The failure that tells of all problems; for a config that did not decode, or whose files cannot be read. */
export function configInvalid(problems: readonly ConfigProblem[]): PluginError {
  const messages = problems.map((found) => found.message);
  return new PluginError("config-invalid", `Cannot use the network config: ${messages.join("; ")}`, {
    details: `check it with: ${identity.adminTool} config check FILE`,
  });
}

/** What a DEBUG line says of a key that was ignored. The value may be a secret and is not shown. */
export function unknownKeyText({ path, nearest }: UnknownKey): string {
  const hint = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
  return `"${redactUrl(pathText(path))}" is not a known field and is ignored${hint}`;
}

function ipamOf(raw: JsonObject): JsonObject {
  const ipam = raw[findKey(raw, "ipam") ?? "ipam"];
  return isObject(ipam) ? ipam : {};
}

/** Another IPAM plugin has fields of its own, which are none of our business. */
function ownUnknownKeys(keys: readonly UnknownKey[], ipam: JsonObject): readonly UnknownKey[] {
  if (ipam[findKey(ipam, "type") ?? "type"] === identity.ipamType) return keys;
  return keys.filter((key) => key.path[0] !== "ipam");
}

/** One problem for each place: the first thing wrong there is what its author must mend. */
function fieldProblems(issues: readonly v.BaseIssue<unknown>[], present: JsonObject): readonly ConfigProblem[] {
  const byPlace = new Map<string, ConfigProblem>();
  for (const issue of issues) {
    const path = (issue.path ?? []).map(({ key }) => (typeof key === "number" ? key : String(key)));
    const place = pathText(path);
    if (!byPlace.has(place)) byPlace.set(place, fieldProblem(path, valueAt(present, path)));
  }
  return [...byPlace.values()];
}

function fieldProblem(path: ConfigPath, value: unknown): ConfigProblem {
  const field = fieldAt(wireSchema(), path);
  if (field === undefined) return problem(path, { value, allowed: "nothing", fix: "remove it" });
  const fix = fixFor(path, value, { typeName: typeName(field), required: isRequired(field) });
  return problem(path, { value, allowed: allowedOf(field), fix });
}

function fixFor(path: ConfigPath, value: unknown, field: { typeName: string; required: boolean }): string {
  const name = String(path.findLast((step) => typeof step === "string"));
  if (typeof path.at(-1) === "number") return `correct this entry of "${name}" or remove it`;
  const unquoted = typeof value === "string" && /^(-?\d+|true|false)$/.test(value);
  if (field.typeName === "picklist" && typeof value === "boolean") return `write "${name}": "${value}"`;
  if (field.typeName === "boolean" && (value === "true" || value === "false")) return `write "${name}": ${value}`;
  if (field.typeName === "number" && unquoted) return `write "${name}": ${value}`;
  if (field.typeName === "array" && typeof value === "string") return `write "${name}": ["…"]`;
  if (value === undefined) return `add "${name}"`;
  return field.required ? `correct "${name}"` : `correct "${name}" or remove it`;
}

/** What was given: a schema may have changed the value before it refused it. */
function valueAt(present: JsonObject, path: ConfigPath): unknown {
  return path.reduce<unknown>((inner, step) => {
    if (Array.isArray(inner)) return inner[Number(step)];
    return isObject(inner) ? inner[step] : undefined;
  }, present);
}
