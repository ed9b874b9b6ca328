/**
 * Decodes the parsed JSON of a network config into a `NetworkConfig`, or into all
 * of its problems at once.
 *
 * Pure: `config-files.ts` checks whether the files in a config are readable.
 */
import { isJsonObject, type JsonObject } from "../cni/json.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { type ConfigWarning, crossProblems, crossWarnings } from "./cross-checks.ts";
import { decodeEntries, type Findings, findKey } from "./field.ts";
import { type NamedFile, namedFiles } from "./named-files.ts";
import { type NetworkConfig, networkConfigFrom } from "./network-config.ts";
import { type ConfigPath, type ConfigProblem, shownValue } from "./problem.ts";
import { networkConfigFields } from "./schema.ts";

interface Notes {
  /** To be logged at WARNING. */
  readonly warnings: readonly ConfigWarning[];
  /** Ignored, to be logged at DEBUG with `unknownKeyText`. */
  readonly unknownKeys: readonly ConfigPath[];
  /** To be checked with `unreadableFiles`. */
  readonly files: readonly NamedFile[];
}

export type DecodedConfig =
  | ({ readonly ok: true; readonly config: NetworkConfig } & Notes)
  | ({ readonly ok: false; readonly problems: readonly ConfigProblem[] } & Notes);

export function decodeNetworkConfig(raw: unknown): DecodedConfig {
  if (!isJsonObject(raw)) {
    const message = `The network config is ${shownValue(raw)}: expected an object; write it as { … }`;
    return { ok: false, problems: [{ path: [], message }], warnings: [], unknownKeys: [], files: [] };
  }
  const findings: Findings = { problems: [], unknownKeys: [], present: new Map() };
  const wire = decodeEntries(networkConfigFields(), raw, { path: [], findings });
  const { present } = findings;
  const problems = [...findings.problems, ...crossProblems(present)];
  const warnings = crossWarnings(present);
  const ipamIsOurs = present.get("ipam.type") === identity.ipamType;
  const unknownKeys =
    findings.unknownKeys.length === 0 ? [] : findings.unknownKeys.filter((path) => isOurs(path, ipamIsOurs));
  const notes = { warnings, unknownKeys, files: namedFiles(present) };
  if (problems.length > 0) return { ok: false, problems, ...notes };
  return { ok: true, config: networkConfigFrom(wire, ipamOf(raw)), ...notes };
}

/** As `decodeNetworkConfig`, but throws `configInvalid` if there is a problem. */
export function requireNetworkConfig(raw: unknown): Extract<DecodedConfig, { ok: true }> {
  const decoded = decodeNetworkConfig(raw);
  if (!decoded.ok) throw configInvalid(decoded.problems);
  return decoded;
}

/** The error with all problems of a config, including unreadable files. */
export function configInvalid(problems: readonly ConfigProblem[]): PluginError {
  const messages = problems.map((found) => found.message);
  return new PluginError("config-invalid", `Cannot use the network config: ${messages.join("; ")}`, {
    details: `check it with: ${identity.adminTool} config check FILE`,
  });
}

/** Keys that CNI itself defines. */
const PROTOCOL_KEYS = new Set(["args", "capabilities", "cniversions", "dns", "prevresult", "runtimeconfig"]);

/** CNI's own keys, and the fields of another IPAM plugin, are not checked. */
function isOurs([first = "", ...rest]: ConfigPath, ipamIsOurs: boolean): boolean {
  if (rest.length > 0) return first !== "ipam" || ipamIsOurs;
  const key = String(first).toLowerCase();
  return !PROTOCOL_KEYS.has(key) && !key.startsWith("cni.dev/");
}

function ipamOf(raw: JsonObject): JsonObject {
  const ipam = raw[findKey(raw, "ipam") ?? "ipam"];
  return isJsonObject(ipam) ? ipam : {};
}
