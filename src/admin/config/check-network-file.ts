/**
 * Checks a file with a network config or a network config list; each finding
 * has its position in the file.
 *
 * The fields of plugins of other projects are not checked, only the structure of
 * the list around them.
 */
import { isJsonObject, type JsonObject } from "../../cni/json.ts";
import { decodeNetwork, networkProblems } from "../../cni/network-list.ts";
import { isCniVersion, NEWEST_VERSION } from "../../cni/version.ts";
import { unreadableFiles } from "../../config/config-files.ts";
import { datastoreSettings } from "../../config/datastore-settings.ts";
import { type DecodedConfig, decodeNetworkConfig } from "../../config/decode.ts";
import { effectiveConfig } from "../../config/effective.ts";
import { locateJson, type Position } from "../../config/json-positions.ts";
import { kubeAccess, policyAccessProblem } from "../../config/kube-access.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import { type ConfigPath, type ConfigProblem, pathText, shownValue } from "../../config/problem.ts";
import { redactAll, redactValue } from "../../config/redact.ts";
import { unknownKeyText } from "../../config/unknown-key.ts";
import type { ReadEach } from "../../datastore/read-each.ts";
import { describeFailure, PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { Family } from "../../ip/address.ts";
import { askedPools, choosePools, type Pool } from "../../ipam/pools.ts";
import { redact } from "../../redaction.ts";
import { type Chain, checkChain } from "./check-chain.ts";
import { type CniHost, checkPlugins, checkVersions } from "./check-cni-host.ts";
import { type ConfigFinding, error, note, refusedHere, type Severity, warning } from "./finding.ts";

export interface FileFinding extends Position {
  readonly severity: Severity;
  /** Full path inside the file: `plugins[0].ipam.assign_ipv4`. */
  readonly path: string;
  readonly message: string;
  readonly failsHere?: true;
}

export interface FileReport {
  /** In the order of their positions in the file. */
  readonly findings: readonly FileFinding[];
  /** The file with all defaults filled in; absent if the file itself has errors, whatever the host lacks. */
  readonly effective: unknown;
}

export interface CheckOptions {
  /** What a config refers to is looked for here; absent: nowhere, as the config is for another host. */
  readonly host?: ConfigHost;
  /** Networks of files that the runtime reads before this one, with their file. */
  readonly earlierNetworks?: ReadonlyMap<string, string>;
  /** Absent: it is meant to run our plugin. */
  readonly mayBeOfOthers?: boolean;
}

/** The host that a config is for. */
export interface ConfigHost extends CniHost {
  isDirectory(path: string): Promise<boolean>;
  /** Whether it is known not to exist. */
  isAbsent(path: string): Promise<boolean>;
  /** The pools in the datastore of the config; a reason if they cannot be read. */
  readPools(decoded: Extract<DecodedConfig, { ok: true }>): Promise<ReadEach<Pool> | { readonly reason: string }>;
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
  const placed = found.map(({ severity, path, message, failsHere }) => ({
    severity,
    path: redactValue(pathText(path)),
    message,
    ...places.find(path),
    ...(failsHere ? { failsHere } : {}),
  }));
  const repeated = places.repeated.map(({ path, position }) => repetition(path, position));
  const findings = [...placed, ...repeated].sort((left, right) => left.line - right.line || left.column - right.column);
  return { findings, effective: isJsonObject(raw) && (await isValid(raw)) ? effectiveNetwork(raw) : undefined };
}

/** On some host. */
async function isValid(raw: JsonObject): Promise<boolean> {
  return (await checkNetwork(raw, {})).every(({ severity }) => severity !== "error");
}

/** Runtimes and plugins silently use the last one. */
function repetition(path: ConfigPath, position: Position): FileFinding {
  const place = redactValue(pathText(path));
  const message = `"${place}" is given more than once: only this last value is used; remove the others`;
  return { severity: "warning", path: place, message, ...position };
}

async function checkNetwork(raw: JsonObject, options: CheckOptions): Promise<readonly ConfigFinding[]> {
  const found = [...structure(raw), ...checkName(raw, options)];
  const cniVersion = isCniVersion(raw["cniVersion"]) ? raw["cniVersion"] : undefined;
  const { host } = options;
  const versions = merged(found, checkVersions(raw, host));
  if (!isList(raw)) {
    const chain = checkEntries([raw], { cniVersion, host, placeOf: () => [] });
    const own = isOurs(raw) ? merged(await checkConfig(raw, [], options), versions) : versions;
    return [...own, ...chain, ...(await checkLogPath(raw, [], host))];
  }

  const entries = entriesOf(raw);
  const logPaths = await Promise.all(entries.map((entry, index) => checkLogPath(entry, ["plugins", index], host)));
  const ours = await Promise.all(
    entries.map((entry, index) => (isOurs(entry) ? checkConfig(asCalled(entry), ["plugins", index], options) : [])),
  );
  const chain = checkEntries(entries, { cniVersion, host, placeOf: (index) => ["plugins", index] });
  const notOurs =
    options.mayBeOfOthers || entries.some(isOurs)
      ? []
      : [warning(["plugins"], `No plugin in the list has the type "${identity.product}"`)];
  return [...merged(versions, ours.flat()), ...[...chain, ...logPaths.flat()].map(withPlace), ...notOurs];
}

/** Podman knows a network by its name, and skips a second one; others use the first file alone. */
function checkName({ name }: JsonObject, { earlierNetworks }: CheckOptions): readonly ConfigFinding[] {
  const earlier = typeof name === "string" ? earlierNetworks?.get(name) : undefined;
  if (earlier === undefined) return [];
  const state = `${earlier} comes first and has the same name ${shownValue(name)}, so podman skips this file`;
  return [refusedHere(["name"], `"name" is not unique: ${state}; give it another name, or remove one of them`)];
}

/** What is in no plugin directory is not also an unknown type. */
function checkEntries(
  entries: readonly unknown[],
  { host, ...chain }: Omit<Chain, "entries"> & { readonly host: ConfigHost | undefined },
): readonly ConfigFinding[] {
  const placed = entries.map((entry, index) => ({ entry, place: chain.placeOf(index) }));
  return merged(host === undefined ? [] : checkPlugins(placed, host), checkChain({ entries, ...chain }));
}

/** The plugins go on without a log file, which nobody notices until the log is needed. */
async function checkLogPath(
  entry: unknown,
  place: ConfigPath,
  host: ConfigHost | undefined,
): Promise<readonly ConfigFinding[]> {
  const path = isJsonObject(entry) ? entry["log_file_path"] : undefined;
  if (typeof path !== "string" || !path.startsWith("/") || !(await host?.isDirectory(path))) return [];
  const fix = `name a file in it, such as "${redactValue(path).replace(/\/+$/, "")}/cni.log"`;
  const message = `"log_file_path" is ${shownValue(path)}, which is a directory, so nothing is written to a file: ${fix}`;
  return [warning([...place, "log_file_path"], message)];
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
  { host }: CheckOptions,
): Promise<readonly ConfigFinding[]> {
  const decoded = decodeNetworkConfig(config);
  const missingFiles = host === undefined ? [] : await unreadableFiles(decoded.files);
  const problems = [...(decoded.ok ? [] : decoded.problems), ...accessProblems(decoded), ...missingFiles];
  const prefix = place.length === 0 ? "" : `${pathText(place)}: `;
  const uses = decoded.ok
    ? [
        ...checkMtu(decoded.config),
        ...(await checkDatastoreFile(decoded.config, host)),
        ...(await checkPools(decoded, host)),
      ]
    : [];
  return [
    ...uses.map((each) => ({ ...each, path: [...place, ...each.path], message: `${prefix}${each.message}` })),
    ...problems.map(({ path, message }) => error([...place, ...path], `${prefix}${message}`)),
    ...decoded.warnings.map(({ path, message }) => warning([...place, ...path], `${prefix}${message}`)),
    ...decoded.unknownKeys.map((path) => warning([...place, ...path], `${prefix}${unknownKeyText(path)}`)),
  ];
}

/** The kernel has no IPv6 on a link below this MTU. */
const LEAST_IPV6_MTU = 1280;
/** What every host must accept; IPv4 itself allows less. */
const LEAST_USUAL_MTU = 576;

function checkMtu({ mtu, ipam }: NetworkConfig): readonly ConfigFinding[] {
  if (mtu === undefined) return [];
  if (ipam.type === identity.ipamType && ipam.assignIpv6 && mtu < LEAST_IPV6_MTU) {
    const fix = `use ${LEAST_IPV6_MTU} or more, or remove "ipam.assign_ipv6"`;
    return [
      error(["mtu"], `"mtu" is ${mtu}, but IPv6 addresses are assigned, which need at least ${LEAST_IPV6_MTU}: ${fix}`),
    ];
  }
  if (mtu >= LEAST_USUAL_MTU) return [];
  const state = `"mtu" is ${mtu}, less than the ${LEAST_USUAL_MTU} bytes that programs expect of every IPv4 network`;
  return [warning(["mtu"], `${state}: use ${LEAST_USUAL_MTU} or more`)];
}

/** The first ADD creates the file, and then fails: a new datastore has no pools. */
async function checkDatastoreFile(
  config: NetworkConfig,
  host: ConfigHost | undefined,
): Promise<readonly ConfigFinding[]> {
  const settings = datastoreSettings(config);
  if (settings.kind !== "embedded" || !(await host?.isAbsent(settings.path))) return [];
  const options = `--datastore-type embedded --datastore-path ${redactValue(settings.path)}`;
  const fix = `correct the path, or create it with its pools: ${identity.adminTool} datastore init ${options}`;
  const state = `the datastore ${shownValue(settings.path)} does not exist yet, so it has no pools`;
  return [warning(["datastore_path"], `${state}: ${fix}`)];
}

/** A pool that does not exist fails every ADD. The pools of a family that is not assigned are not read. */
async function checkPools(
  decoded: Extract<DecodedConfig, { ok: true }>,
  host: ConfigHost | undefined,
): Promise<readonly ConfigFinding[]> {
  const { type, assignIpv4, assignIpv6, ipv4Pools = [], ipv6Pools = [] } = decoded.config.ipam;
  const requests: readonly PoolRequest[] = [
    ...(assignIpv4 ? [{ asked: ipv4Pools, family: 4 as const, path: ["ipam", "ipv4_pools"] }] : []),
    ...(assignIpv6 ? [{ asked: ipv6Pools, family: 6 as const, path: ["ipam", "ipv6_pools"] }] : []),
  ].filter(({ asked }) => asked.length > 0);
  const [first] = requests;
  if (host === undefined || first === undefined || type !== identity.ipamType) return [];
  const pools = await host.readPools(decoded);
  if ("reason" in pools) {
    return [
      note(
        [...first.path, 0],
        `Whether the pools exist is not checked, because the datastore cannot be read: ${redact(pools.reason)}`,
      ),
    ];
  }
  return requests.flatMap((request) => checkRequest(request, pools));
}

interface PoolRequest {
  readonly asked: readonly string[];
  readonly family: Family;
  readonly path: ConfigPath;
}

/** Each pool must be usable; that workloads may use one of them is enough. */
function checkRequest(
  { asked, family, path }: PoolRequest,
  { readable, unreadable }: ReadEach<Pool>,
): readonly ConfigFinding[] {
  const unusable = asked.flatMap((text, index) =>
    refusal([...path, index], () => askedPools(readable, family, { asked: [text], unreadable })),
  );
  if (unusable.length > 0) return unusable;
  return refusal(path, () =>
    choosePools(readable, { family, asked, unreadable, intendedUse: "Workload", node: "", labels: {} }),
  );
}

/** In the words of the plugin. */
function refusal(path: ConfigPath, choose: () => unknown): readonly ConfigFinding[] {
  try {
    choose();
    return [];
  } catch (failure) {
    if (failure instanceof PluginError) return [error(path, redact(describeFailure(failure)))];
    throw failure;
  }
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
  const state = "the config does not say where the Kubernetes API is";
  return [
    {
      path: ["datastore_type"],
      message: `"datastore_type" is the Kubernetes API: ${state}; set "kubernetes.kubeconfig"`,
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
