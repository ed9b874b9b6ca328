/**
 * The network config that is installed on this host: the first one, in the order
 * in which runtimes read their directory, that runs our plugin. If none does, the
 * one that the agent has beside another networking plugin.
 *
 * A file that cannot be used is never skipped in favour of another datastore: if it
 * may be the one that is wanted, looking for it fails and names the place in it.
 */
import { basename } from "node:path";
import type { Environment } from "../cni/environment.ts";
import { isJsonObject } from "../cni/json.ts";
import { describeFailure, PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { parseJson } from "../parse-json.ts";
import { quoted } from "../quote.ts";
import { reasonOf } from "./config-files.ts";
import { type DecodedConfig, decodeNetworkConfig } from "./decode.ts";
import { NETWORK_CONFIG_DIRECTORY } from "./installed-network-list.ts";
import { locateJson } from "./json-positions.ts";
import { ownEntryOf } from "./own-entry.ts";
import type { ConfigPath } from "./problem.ts";

const FILE_NAME = /\.(conflist|conf|json)$/;

/** Whether runtimes read a file of this name in their directory: not `cni.lock`, nor what an editor leaves. */
export function isNetworkFileName(name: string): boolean {
  return FILE_NAME.test(name);
}

/** The agent's own network config while another plugin connects the pods: no runtime reads this directory. */
const AGENT_NETWORK_CONFIG = `${identity.stateDirectory}/agent.conflist`;

export interface InstalledNetwork {
  readonly file: string;
  readonly decoded: Extract<DecodedConfig, { ok: true }>;
}

export interface FoundNetwork extends InstalledNetwork {
  /** Why other files of the directory cannot be used: runtimes skip them. */
  readonly skipped: readonly string[];
  /** `policy.type` of this or of another network of the host, which share one policy table. */
  readonly isPolicyRequired: boolean;
}

/** Where network configs are found. */
export interface NetworkFiles {
  /** The names in their order; `undefined` if it is no directory. */
  listFolder(path: string): Promise<readonly string[] | undefined>;
  readFile(path: string): Promise<string>;
  readonly env: Environment;
}

/** As for the installation on the node: some clusters have another directory. */
export function networkConfigDirectory({ env }: Pick<NetworkFiles, "env">): string {
  return env["CNI_CONF_DIR"] || NETWORK_CONFIG_DIRECTORY;
}

/** `undefined`: there is none. Fails, naming the file, if our plugin would refuse it, or if a file that may be it is damaged. */
export async function findInstalledNetwork(files: NetworkFiles): Promise<FoundNetwork | undefined> {
  const directory = networkConfigDirectory(files);
  const read = await Promise.all(
    (await namesIn(directory, files)).map((name) => readCandidate(`${directory}/${name}`, files)),
  );
  const first = read.find((each) => each.kind === "own" || (each.kind === "unusable" && each.mayBeOurs));
  if (first?.kind === "unusable") throw first.failure;
  const unusable = read.flatMap((each) => (each.kind === "unusable" ? [each.failure] : []));
  const own = read.flatMap((each) => (each.kind === "own" ? [each.network] : []));
  const found = own[0] ?? (await findAgentNetwork(files));
  if (found !== undefined) {
    const isPolicyRequired = [found, ...own].some(({ decoded }) => decoded.config.policyType !== undefined);
    return { ...found, isPolicyRequired, skipped: unusable.map(({ message }) => message) };
  }
  // Nothing else runs our plugin here: whatever is in it, that file may have been ours.
  if (unusable[0] !== undefined) throw unusable[0];
  return undefined;
}

export interface PolicyRequirement {
  /** Absent if there is none, or none that can be used. */
  readonly network?: InstalledNetwork;
  /** `policy.type`: this host enforces profiles before there is any policy. */
  readonly isPolicyRequired: boolean;
  /** Why the config cannot be used. Neither the plugin nor the agent runs with it, so it requires nothing. */
  readonly problem?: string;
}

/** For commands that go on without a network config. */
export async function policyRequirement(files: NetworkFiles): Promise<PolicyRequirement> {
  try {
    const network = await findInstalledNetwork(files);
    if (network === undefined) return { isPolicyRequired: false };
    return { network, isPolicyRequired: network.isPolicyRequired };
  } catch (failure) {
    return { isPolicyRequired: false, problem: describeFailure(failure) };
  }
}

/** Whether another plugin connects the pods of this host: no runtime runs ours. */
export function isForAgentOnly({ file }: InstalledNetwork): boolean {
  return file === AGENT_NETWORK_CONFIG;
}

async function findAgentNetwork(files: NetworkFiles): Promise<InstalledNetwork | undefined> {
  const name = basename(AGENT_NETWORK_CONFIG);
  if (!(await namesIn(identity.stateDirectory, files)).includes(name)) return undefined;
  const read = await readCandidate(AGENT_NETWORK_CONFIG, files);
  if (read.kind === "unusable") throw read.failure;
  return read.kind === "own" ? read.network : undefined;
}

type Candidate =
  | { readonly kind: "own"; readonly network: InstalledNetwork }
  /** It runs other plugins. */
  | { readonly kind: "other" }
  /** `mayBeOurs`: it is meant for our plugin, or nobody can tell. */
  | { readonly kind: "unusable"; readonly failure: PluginError; readonly mayBeOurs: boolean };

async function readCandidate(file: string, { readFile }: Pick<NetworkFiles, "readFile">): Promise<Candidate> {
  let text: string;
  try {
    text = await readFile(file);
  } catch (cause) {
    // Removed since the directory was listed.
    if (codeOf(cause) === "ENOENT") return { kind: "other" };
    return { kind: "unusable", failure: unreadable(file, cause), mayBeOurs: true };
  }
  try {
    const network = networkIn(text, file);
    return network === undefined ? { kind: "other" } : { kind: "own", network };
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    return { kind: "unusable", failure, mayBeOurs: [text, basename(file)].some((each) => each.includes(PRODUCT)) };
  }
}

const PRODUCT = identity.product;

function unreadable(file: string, cause: unknown): PluginError {
  const details = codeOf(cause) === "EACCES" ? "run it as root" : "";
  const message = `Cannot read network config ${quoted(file)}: ${reasonOf(cause)}`;
  return new PluginError("io-failure", message, { details, cause });
}

function codeOf(cause: unknown): unknown {
  return cause instanceof Error && "code" in cause ? cause.code : undefined;
}

/** Of a file that the user names. */
export async function readNetworkConfig(
  file: string,
  { readFile }: Pick<NetworkFiles, "readFile">,
): Promise<InstalledNetwork> {
  let text: string;
  try {
    text = await readFile(file);
  } catch (cause) {
    throw unreadable(file, cause);
  }
  const network = networkIn(text, file);
  if (network !== undefined) return network;
  throw new PluginError("config-invalid", `Cannot use ${file}: it does not run the plugin "${identity.product}"`);
}

/** One that cannot be looked into may contain the config of this host. */
async function namesIn(directory: string, { listFolder }: NetworkFiles): Promise<readonly string[]> {
  try {
    return ((await listFolder(directory)) ?? []).filter(isNetworkFileName);
  } catch (cause) {
    if (codeOf(cause) === "ENOENT" || codeOf(cause) === "ENOTDIR") return [];
    throw new PluginError("io-failure", `Cannot look for network configs in ${quoted(directory)}: ${reasonOf(cause)}`, {
      cause,
    });
  }
}

/** Our plugin's entry of a network config or list, with what a runtime adds to it; `undefined` if it has none. */
function networkIn(text: string, file: string): InstalledNetwork | undefined {
  const network = parse(text, file);
  if (!isJsonObject(network)) throw cannotUse(file, "it is not an object: { … }");
  const { name, cniVersion, plugins = [network] } = network;
  const entries: readonly unknown[] = Array.isArray(plugins) ? plugins : [];
  const index = entries.findIndex((entry) => ownEntryOf(entry) !== undefined);
  const own = ownEntryOf(entries[index]);
  if (own === undefined) return undefined;
  const decoded = decodeNetworkConfig({ ...own, name, cniVersion });
  if (decoded.ok) return { file, decoded };
  const [first] = decoded.problems;
  const place = network["plugins"] === undefined ? [] : ["plugins", index];
  const messages = decoded.problems.map(({ message }) => message).join("; ");
  throw cannotUse(placeIn(text, file, [...place, ...(first?.path ?? [])]), messages, file);
}

function parse(text: string, file: string): unknown {
  try {
    return parseJson(text);
  } catch (failure) {
    const located = locateJson(text);
    if (located.ok) throw cannotUse(file, failure instanceof Error ? failure.message : String(failure));
    const { line, column } = located.position;
    throw cannotUse(`${file}:${line}:${column}`, `not valid JSON: ${located.reason}`, file);
  }
}

function placeIn(text: string, file: string, path: ConfigPath): string {
  const located = locateJson(text);
  if (!located.ok) return file;
  const { line, column } = located.find(path);
  return `${file}:${line}:${column}`;
}

function cannotUse(place: string, state: string, file = place): PluginError {
  return new PluginError("config-invalid", `Cannot use ${place}: ${state}`, {
    details: `check it with: ${identity.adminTool} config check ${file}`,
  });
}
