/**
 * The network config that is installed on this host: the first one, in the order
 * in which runtimes read their directory, that runs our plugin. If none does, the
 * one that the agent has beside another networking plugin.
 */
import { basename } from "node:path";
import type { Environment } from "../cni/environment.ts";
import { isJsonObject, type JsonObject } from "../cni/json.ts";
import { describeFailure, PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { parseJson } from "../parse-json.ts";
import { quoted } from "../quote.ts";
import { reasonOf } from "./config-files.ts";
import { type DecodedConfig, decodeNetworkConfig } from "./decode.ts";
import { NETWORK_CONFIG_DIRECTORY } from "./installed-network-list.ts";
import { ownEntryOf } from "./own-entry.ts";

const FILE_NAME = /\.(conflist|conf|json)$/;

/** The agent's own network config while another plugin connects the pods: no runtime reads this directory. */
const AGENT_NETWORK_CONFIG = `${identity.stateDirectory}/agent.conflist`;

export interface InstalledNetwork {
  readonly file: string;
  readonly decoded: Extract<DecodedConfig, { ok: true }>;
}

/** Where network configs are found. */
export interface NetworkFiles {
  /** The names in their order; `undefined` if it is no directory. */
  listFolder(path: string): Promise<readonly string[] | undefined>;
  readFile(path: string): Promise<string>;
  readonly env: Environment;
}

interface Reader extends NetworkFiles {
  stderr(text: string): void;
}

/** `undefined`: there is none. Fails, naming the file, if our plugin would refuse it. */
export async function findInstalledNetwork(reader: Reader): Promise<InstalledNetwork | undefined> {
  // As for the installation on the node: some clusters have another directory.
  const directory = reader.env["CNI_CONF_DIR"] || NETWORK_CONFIG_DIRECTORY;
  for (const name of await namesIn(directory, reader)) {
    const file = `${directory}/${name}`;
    const config = ownConfigIn(await textOf(file, reader));
    if (config !== undefined) return { file, decoded: decodeInstalled(config, file) };
  }
  return findAgentNetwork(reader);
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
export async function policyRequirement(reader: Reader): Promise<PolicyRequirement> {
  try {
    const network = await findInstalledNetwork(reader);
    if (network === undefined) return { isPolicyRequired: false };
    return { network, isPolicyRequired: network.decoded.config.policyType !== undefined };
  } catch (failure) {
    return { isPolicyRequired: false, problem: describeFailure(failure) };
  }
}

/** Whether another plugin connects the pods of this host: no runtime runs ours. */
export function isForAgentOnly({ file }: InstalledNetwork): boolean {
  return file === AGENT_NETWORK_CONFIG;
}

async function findAgentNetwork(reader: Reader): Promise<InstalledNetwork | undefined> {
  const name = basename(AGENT_NETWORK_CONFIG);
  if (!(await namesIn(identity.stateDirectory, reader)).includes(name)) return undefined;
  const config = ownConfigIn(await textOf(AGENT_NETWORK_CONFIG, reader));
  if (config === undefined) return undefined;
  return { file: AGENT_NETWORK_CONFIG, decoded: decodeInstalled(config, AGENT_NETWORK_CONFIG) };
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
    throw new PluginError("io-failure", `Cannot read network config ${quoted(file)}: ${reasonOf(cause)}`, { cause });
  }
  const config = ownConfigIn(text);
  if (config !== undefined) return { file, decoded: decodeInstalled(config, file) };
  const state = `it does not run the plugin "${identity.product}"`;
  throw new PluginError("config-invalid", `Cannot use network config ${quoted(file)}: ${state}`);
}

async function namesIn(directory: string, { listFolder }: Reader): Promise<readonly string[]> {
  try {
    return ((await listFolder(directory)) ?? []).filter((name) => FILE_NAME.test(name));
  } catch {
    return [];
  }
}

/** Commands look for the network config several times. */
const reported = new WeakMap<Reader, Set<string>>();

/** A file that cannot be read may be the one that is wanted: it is reported, once to each reader. */
async function textOf(file: string, reader: Reader): Promise<string> {
  try {
    return await reader.readFile(file);
  } catch (cause) {
    const known = reported.get(reader) ?? new Set();
    if (!known.has(file)) reader.stderr(`Cannot read network config "${file}": ${reasonOf(cause)}\n`);
    reported.set(reader, known.add(file));
    return "";
  }
}

/** Our plugin's entry of a network config or list, with what a runtime adds to it. */
function ownConfigIn(text: string): JsonObject | undefined {
  const network = parse(text);
  if (!isJsonObject(network)) return undefined;
  const { name, cniVersion, plugins = [network] } = network;
  const entries: readonly unknown[] = Array.isArray(plugins) ? plugins : [];
  const own = entries.map(ownEntryOf).find((entry) => entry !== undefined);
  return own && { ...own, name, cniVersion };
}

/** A file that is not JSON does not run our plugin. */
function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function decodeInstalled(config: JsonObject, file: string): InstalledNetwork["decoded"] {
  const decoded = decodeNetworkConfig(config);
  if (decoded.ok) return decoded;
  const messages = decoded.problems.map(({ message }) => message);
  throw new PluginError("config-invalid", `Cannot use network config "${file}": ${messages.join("; ")}`, {
    details: `check it with: ${identity.adminTool} config check ${file}`,
  });
}
