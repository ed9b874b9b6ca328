/**
 * A network as a runtime reads it from disk: a list of plugins, or one plugin
 * wrapped into a list of one.
 *
 * Pure: text in, value out. `plugin-requests.ts` turns the value into what each
 * plugin of the list is sent.
 */
import { PluginError } from "../errors.ts";
import { isJsonObject, type JsonObject } from "./json.ts";
import { nameProblem } from "./names.ts";
import { CNI_VERSIONS, type CniVersion, FIRST_CHAINING_VERSION, isAtLeast, VERSION_WHEN_ABSENT } from "./version.ts";

export interface NetworkList {
  readonly name: string;
  readonly cniVersion: CniVersion;
  readonly disableCheck: boolean;
  readonly disableGc: boolean;
  /** `false`: plugin files in `<directory>/<name>/` are appended to the list. */
  readonly loadOnlyInlinedPlugins: boolean;
  readonly plugins: readonly PluginEntry[];
}

export interface PluginEntry {
  readonly type: string;
  /** The capabilities the entry switches on. */
  readonly capabilities: readonly string[];
  readonly config: JsonObject;
}

/** Reads a list (it has `plugins`, or says where they are), or a single config. */
export function decodeNetwork(config: JsonObject): NetworkList {
  const isList = "plugins" in config || "loadOnlyInlinedPlugins" in config;
  return isList ? decodeList(config) : decodeSingle(config);
}

/** Appends the plugin files of the network's own directory, in the order given. */
export function withPluginFiles(list: NetworkList, files: readonly JsonObject[]): NetworkList {
  if (list.loadOnlyInlinedPlugins) return list;
  const appended = files.map((file, index) => decodeEntry(file, `plugin file ${index + 1}`));
  return checkedChain({ ...list, plugins: [...list.plugins, ...appended] });
}

/** Refuses a list that names no plugin, once all its sources have been read. */
export function requirePlugins(list: NetworkList): NetworkList {
  if (list.plugins.length > 0) return list;
  throw invalid(`"${list.name}" lists no plugin`);
}

function decodeList(config: JsonObject): NetworkList {
  const loadOnlyInlinedPlugins = decodeSwitch(config, "loadOnlyInlinedPlugins");
  const plugins = config["plugins"] ?? undefined;
  if (plugins === undefined && loadOnlyInlinedPlugins) {
    throw invalid('"plugins" is missing, and "loadOnlyInlinedPlugins" forbids to look elsewhere');
  }
  if (plugins !== undefined && !Array.isArray(plugins)) throw malformed('"plugins" is not a list');
  const entries: readonly unknown[] = plugins ?? [];
  if (plugins !== undefined && entries.length === 0) throw invalid('"plugins" is empty');

  return checkedChain({
    name: decodeName(config),
    cniVersion: decodeVersion(config),
    disableCheck: decodeSwitch(config, "disableCheck"),
    disableGc: decodeSwitch(config, "disableGC"),
    loadOnlyInlinedPlugins,
    plugins: entries.map((entry, index) => decodeEntry(entry, `plugins[${index}]`)),
  });
}

function decodeSingle(config: JsonObject): NetworkList {
  return {
    name: decodeName(config),
    cniVersion: decodeVersion(config),
    disableCheck: false,
    disableGc: false,
    loadOnlyInlinedPlugins: true,
    plugins: [decodeEntry(config, "the config")],
  };
}

function decodeEntry(entry: unknown, place: string): PluginEntry {
  if (!isJsonObject(entry)) throw malformed(`${place} is not an object`);
  const type = entry["type"] ?? "";
  if (typeof type !== "string") throw malformed(`"type" of ${place} is not a string`);
  if (type === "") throw invalid(`"type" of ${place} is missing`);

  const capabilities = entry["capabilities"] ?? {};
  if (!isJsonObject(capabilities)) throw malformed(`"capabilities" of ${place} is not an object`);
  const wanted = Object.keys(capabilities).filter((name) => capabilities[name] === true);
  return { type, capabilities: wanted, config: entry };
}

function decodeName(config: JsonObject): string {
  const name = config["name"] ?? "";
  if (typeof name !== "string") throw malformed('"name" is not a string');
  if (name === "") throw invalid('"name" is missing');
  const problem = nameProblem(name);
  if (problem === undefined) return name;
  throw invalid(`"name" is ${JSON.stringify(name)}: ${problem}`);
}

/** The highest of `cniVersion` and `cniVersions` that exists here; later ones are passed over. */
function decodeVersion(config: JsonObject): CniVersion {
  const single = config["cniVersion"] ?? "";
  const several = config["cniVersions"] ?? [];
  if (typeof single !== "string") throw malformed('"cniVersion" is not a string');
  if (!Array.isArray(several)) throw malformed('"cniVersions" is not a list');

  const offered: readonly unknown[] = [...several, ...(single === "" ? [] : [single])];
  if (offered.length === 0) return VERSION_WHEN_ABSENT;
  const known = CNI_VERSIONS.findLast((version) => offered.includes(version));
  if (known !== undefined) return known;
  throw new PluginError(
    "version-incompatible",
    `Cannot use the network: it offers ${JSON.stringify(offered)}, known are ${CNI_VERSIONS.join(", ")}`,
  );
}

/** A boolean, or the words true and false as some tools write them. */
function decodeSwitch(config: JsonObject, field: string): boolean {
  const value = config[field] ?? false;
  const text = typeof value === "string" ? value.trim().toLowerCase() : value;
  if (text === true || text === "true") return true;
  if (text === false || text === "false") return false;
  throw malformed(`"${field}" is ${JSON.stringify(value)}; true and false are allowed`);
}

function checkedChain(list: NetworkList): NetworkList {
  if (list.plugins.length < 2 || isAtLeast(list.cniVersion, FIRST_CHAINING_VERSION)) return list;
  const state = `it lists ${list.plugins.length} plugins, and cniVersion "${list.cniVersion}" cannot chain them`;
  throw invalid(`${state}; chaining needs "${FIRST_CHAINING_VERSION}" or later`);
}

function invalid(state: string): PluginError {
  return new PluginError("config-invalid", `Cannot use the network: ${state}`);
}

function malformed(state: string): PluginError {
  return new PluginError("decode-failure", `Cannot read the network: ${state}`);
}
