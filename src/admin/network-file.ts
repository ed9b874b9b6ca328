/**
 * Checks a file with a network config or a network config list; each finding
 * has its position in the file.
 *
 * The fields of plugins of other projects are not checked, only the structure of
 * the list around them.
 */
import { isJsonObject, type JsonObject } from "../cni/json.ts";
import { decodeNetwork, networkProblems } from "../cni/network-list.ts";
import { isCniVersion, NEWEST_VERSION } from "../cni/version.ts";
import { unreadableFiles } from "../config/config-files.ts";
import { type DecodedConfig, decodeNetworkConfig } from "../config/decode.ts";
import { effectiveConfig } from "../config/effective.ts";
import { kubeAccess, policyAccessProblem } from "../config/kube-access.ts";
import { type ConfigPath, type ConfigProblem, pathText } from "../config/problem.ts";
import { redactAll, redactValue } from "../config/redact.ts";
import { unknownKeyText } from "../config/unknown-key.ts";
import { identity } from "../identity.ts";
import { checkChain } from "./chain-check.ts";
import { type ConfigFinding, error, type Severity, warning } from "./config-finding.ts";
import { locateJson, type Position } from "./json-positions.ts";

export interface FileFinding extends Position {
  readonly severity: Severity;
  /** Full path inside the file: `plugins[0].ipam.assign_ipv4`. */
  readonly path: string;
  readonly message: string;
}

export interface FileReport {
  /** In the order of their positions in the file. */
  readonly findings: readonly FileFinding[];
  /** The file with all defaults filled in; absent if it has errors. */
  readonly effective: unknown;
}

export interface CheckOptions {
  /** Whether to check that the key, certificate and kubeconfig files of a config exist. */
  readonly looksForFiles: boolean;
}

export async function checkNetworkFile(text: string, options: CheckOptions): Promise<FileReport> {
  const places = locateJson(text);
  if (!places.ok) {
    const message = `The file is not valid JSON: ${places.reason}`;
    return { findings: [{ severity: "error", path: "", message, ...places.position }], effective: undefined };
  }
  const raw: unknown = JSON.parse(text);
  const found = isJsonObject(raw)
    ? await checkNetwork(raw, options)
    : [error([], "A network config must be an object: { … }")];
  const placed = found.map(({ severity, path, message }) => ({
    severity,
    path: redactValue(pathText(path)),
    message,
    ...places.find(path),
  }));
  const repeated = places.repeated.map(({ path, position }) => repetition(path, position));
  const findings = [...placed, ...repeated].sort((left, right) => left.line - right.line || left.column - right.column);
  const isWell = found.every(({ severity }) => severity !== "error");
  return { findings, effective: isWell && isJsonObject(raw) ? effectiveNetwork(raw) : undefined };
}

/** Runtimes and plugins silently use the last one. */
function repetition(path: ConfigPath, position: Position): FileFinding {
  const place = redactValue(pathText(path));
  const message = `"${place}" is given more than once: only this last value is used; remove the others`;
  return { severity: "warning", path: place, message, ...position };
}

async function checkNetwork(raw: JsonObject, options: CheckOptions): Promise<readonly ConfigFinding[]> {
  const found = structure(raw);
  const cniVersion = isCniVersion(raw["cniVersion"]) ? raw["cniVersion"] : undefined;
  if (!isList(raw)) {
    const chain = checkChain({ entries: [raw], cniVersion, placeOf: () => [] });
    return [...(isOurs(raw) ? merged(await checkConfig(raw, [], options), found) : found), ...chain];
  }

  const entries = entriesOf(raw);
  const ours = await Promise.all(
    entries.map((entry, index) => (isOurs(entry) ? checkConfig(asCalled(entry), ["plugins", index], options) : [])),
  );
  const chain = checkChain({ entries, cniVersion, placeOf: (index) => ["plugins", index] });
  const notOurs = entries.some(isOurs)
    ? []
    : [warning(["plugins"], `No plugin in the list has the type "${identity.product}"`)];
  return [...merged(found, ours.flat()), ...chain.map(withPlace), ...notOurs];
}

/** The message begins with the place of the plugin: `plugins[1]: `. */
function withPlace(finding: ConfigFinding): ConfigFinding {
  return { ...finding, message: `${pathText(finding.path.slice(0, 2))}: ${finding.message}` };
}

/** A missing type is a problem of the list and of the config in it: it is reported once. */
function merged(first: readonly ConfigFinding[], second: readonly ConfigFinding[]): readonly ConfigFinding[] {
  const reported = new Set(first.map(({ path }) => pathText(path)));
  return [...first, ...second.filter(({ path }) => !reported.has(pathText(path)))];
}

async function checkConfig(
  config: JsonObject,
  place: ConfigPath,
  { looksForFiles }: CheckOptions,
): Promise<readonly ConfigFinding[]> {
  const decoded = decodeNetworkConfig(config);
  const missingFiles = looksForFiles ? await unreadableFiles(decoded.files) : [];
  const problems = [...(decoded.ok ? [] : decoded.problems), ...accessProblems(decoded), ...missingFiles];
  const prefix = place.length === 0 ? "" : `${pathText(place)}: `;
  return [
    ...problems.map(({ path, message }) => error([...place, ...path], `${prefix}${message}`)),
    ...decoded.warnings.map(({ path, message }) => warning([...place, ...path], `${prefix}${message}`)),
    ...decoded.unknownKeys.map((path) => warning([...place, ...path], `${prefix}${unknownKeyText(path)}`)),
  ];
}

/**
 * In a pod the API is known without any setting, but a plugin does not run in a pod. The containers of one host, on the
 * embedded datastore, have no pods.
 */
function accessProblems(decoded: DecodedConfig): readonly ConfigProblem[] {
  if (!decoded.ok || decoded.config.datastoreType === "embedded") return [];
  const policyProblem = policyAccessProblem(decoded.config);
  if (decoded.config.datastoreType !== "orchestrator") return policyProblem === undefined ? [] : [policyProblem];
  const access = kubeAccess(decoded.config);
  if (access?.kubeconfigs !== undefined || access?.apiRoot !== undefined) return [];
  const state = "the config does not say where the orchestrator's API is";
  return [
    {
      path: ["datastore_type"],
      message: `"datastore_type" is the orchestrator's API: ${state}; set "kubernetes.kubeconfig"`,
    },
  ];
}

/** Problems for which the runtime rejects the network before it calls any plugin. */
function structure(raw: JsonObject): readonly ConfigFinding[] {
  return networkProblems(raw).map(({ path, state }) => error(path, redactValue(state)));
}

/** A config without a type is treated as ours, so that its other problems are reported too. */
function isOurs(entry: unknown): entry is JsonObject {
  return isJsonObject(entry) && (entry["type"] === undefined || entry["type"] === identity.product);
}

function isList(raw: JsonObject): boolean {
  return "plugins" in raw || "loadOnlyInlinedPlugins" in raw;
}

function entriesOf(raw: JsonObject): readonly unknown[] {
  const entries: unknown = raw["plugins"];
  return Array.isArray(entries) ? entries : [];
}

/** The runtime passes the list's name and version to each plugin; `structure` has checked them. */
function asCalled(entry: JsonObject): JsonObject {
  return { ...entry, name: "network", cniVersion: NEWEST_VERSION };
}

function effectiveNetwork(raw: JsonObject): unknown {
  if (!isList(raw)) return isOurs(raw) ? effectiveConfig(raw) : redactAll(raw);
  const { name, cniVersion } = decodeNetwork(raw);
  const plugins = entriesOf(raw).map((entry) =>
    isOurs(entry) ? effectiveConfig({ ...entry, name, cniVersion }) : redactAll(entry),
  );
  return { ...(redactAll(raw) as JsonObject), name, cniVersion, plugins };
}
