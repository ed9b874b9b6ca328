/**
 * A network as a runtime reads it from disk: a list of plugins, or a single plugin
 * as a list of one.
 *
 * Pure: JSON in, value out. `plugin-requests.ts` turns the value into the config
 * that is sent to each plugin.
 */
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";
import { isJsonObject, type JsonObject, kindOf } from "./json.ts";
import { networkNameProblem } from "./names.ts";
import {
  CNI_VERSIONS,
  type CniVersion,
  FIRST_CHAINING_VERSION,
  isAtLeast,
  NEWEST_VERSION,
  VERSION_WHEN_ABSENT,
} from "./version.ts";

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
  /** The capabilities that the entry enables. */
  readonly capabilities: readonly string[];
  readonly config: JsonObject;
}

/** One reason why a runtime refuses a network before it calls any plugin. */
export interface NetworkProblem {
  readonly kind: "config-invalid" | "decode-failure" | "version-incompatible";
  /** Its path in the file: `["plugins", 1, "type"]`. */
  readonly path: readonly (string | number)[];
  /** Names the field, its value and what is allowed. */
  readonly state: string;
}

/** Reads a list (with `plugins` or `loadOnlyInlinedPlugins`) or a single config; throws one error with every reason. */
export function decodeNetwork(config: JsonObject): NetworkList {
  const { list, problems } = readNetwork(config);
  refuse(problems);
  return list;
}

/** Every reason why `decodeNetwork` would refuse it. */
export function networkProblems(config: JsonObject): readonly NetworkProblem[] {
  return readNetwork(config).problems;
}

/** Appends the plugin files of the network's own directory, in the given order. */
export function withPluginFiles(list: NetworkList, files: readonly JsonObject[]): NetworkList {
  if (list.loadOnlyInlinedPlugins) return list;
  const problems: NetworkProblem[] = [];
  const appended = files.map((file, index) => readEntry(file, { path: [`plugin file ${index + 1}`], problems }));
  const longer = { ...list, plugins: [...list.plugins, ...appended] };
  checkChain(longer, problems);
  refuse(problems);
  return longer;
}

/** Throws if the list has no plugin after all its sources have been read. */
export function requirePlugins(list: NetworkList): NetworkList {
  if (list.plugins.length > 0) return list;
  throw new PluginError("config-invalid", `Cannot use the network: the list of ${quoted(list.name)} has no plugin`);
}

/** As much of the list as can be read; complete only if there are no problems. */
function readNetwork(config: JsonObject): { readonly list: NetworkList; readonly problems: readonly NetworkProblem[] } {
  const problems: NetworkProblem[] = [];
  const isList = "plugins" in config || "loadOnlyInlinedPlugins" in config;
  const list = isList ? readList(config, problems) : readSingle(config, problems);
  return { list, problems };
}

function refuse(problems: readonly NetworkProblem[]): void {
  const [first] = problems;
  if (first === undefined) return;
  throw new PluginError(first.kind, `Cannot use the network: ${problems.map(({ state }) => state).join("; ")}`);
}

function readList(config: JsonObject, problems: NetworkProblem[]): NetworkList {
  const loadOnlyInlinedPlugins = readBoolean(config, "loadOnlyInlinedPlugins", problems);
  const list = {
    name: readName(config, problems),
    cniVersion: readVersion(config, problems),
    disableCheck: readBoolean(config, "disableCheck", problems),
    disableGc: readBoolean(config, "disableGC", problems),
    loadOnlyInlinedPlugins,
    plugins: readPlugins(config, loadOnlyInlinedPlugins, problems).map((entry, index) =>
      readEntry(entry, { path: ["plugins", index], problems }),
    ),
  };
  checkChain(list, problems);
  return list;
}

function readSingle(config: JsonObject, problems: NetworkProblem[]): NetworkList {
  return {
    name: readName(config, problems),
    cniVersion: readVersion(config, problems),
    disableCheck: false,
    disableGc: false,
    loadOnlyInlinedPlugins: true,
    plugins: [readEntry(config, { path: [], problems })],
  };
}

function readPlugins(config: JsonObject, onlyInlined: boolean, problems: NetworkProblem[]): readonly unknown[] {
  const plugins = config["plugins"] ?? undefined;
  const path = ["plugins"];
  if (plugins === undefined) {
    const state = '"plugins" is missing, and "loadOnlyInlinedPlugins" is true; add a plugin';
    if (onlyInlined) problems.push({ kind: "config-invalid", path, state });
    return [];
  }
  if (!Array.isArray(plugins)) {
    problems.push({ kind: "decode-failure", path, state: '"plugins" is not a list: write [ … ]' });
    return [];
  }
  if (plugins.length === 0) {
    problems.push({ kind: "config-invalid", path, state: '"plugins" is empty: add a plugin' });
  }
  return plugins;
}

interface Place {
  readonly path: NetworkProblem["path"];
  readonly problems: NetworkProblem[];
}

function readEntry(entry: unknown, { path, problems }: Place): PluginEntry {
  const place = placeText(path);
  const note = (kind: NetworkProblem["kind"], field: readonly string[], state: string) =>
    problems.push({ kind, path: [...path, ...field], state: `${place}${state}` });
  if (!isJsonObject(entry)) {
    note("decode-failure", [], "it is not an object: write { … }");
    return { type: "", capabilities: [], config: {} };
  }
  const type = entry["type"] ?? "";
  if (typeof type !== "string") note("decode-failure", ["type"], `"type" is ${kindOf(type)}, not a string`);
  else if (type === "") note("config-invalid", ["type"], '"type" is missing: add the name of a plugin');
  else if (type.includes("/")) {
    note("config-invalid", ["type"], `"type" is ${quoted(type)}: a type must be a plain file name`);
  }
  const capabilities = entry["capabilities"] ?? {};
  if (!isJsonObject(capabilities)) {
    note("decode-failure", ["capabilities"], '"capabilities" is not an object: write { … }');
  }
  return { type: String(type), capabilities: enabledCapabilities(capabilities), config: entry };
}

function enabledCapabilities(capabilities: unknown): readonly string[] {
  if (!isJsonObject(capabilities)) return [];
  return Object.keys(capabilities).filter((name) => capabilities[name] === true);
}

/** `plugins[1]: `, or nothing for a single config. */
function placeText([source, index]: NetworkProblem["path"]): string {
  if (source === undefined) return "";
  return index === undefined ? `${source}: ` : `${source}[${index}]: `;
}

function readName(config: JsonObject, problems: NetworkProblem[]): string {
  const problem = networkNameProblem(config);
  if (problem !== undefined) problems.push({ ...problem, path: ["name"] });
  return String(config["name"]);
}

/** The highest known version of `cniVersion` and `cniVersions`; unknown ones are ignored. */
function readVersion(config: JsonObject, problems: NetworkProblem[]): CniVersion {
  const note = (kind: NetworkProblem["kind"], field: string, state: string) => {
    problems.push({ kind, path: [field], state: `"${field}" ${state}` });
    return NEWEST_VERSION;
  };
  const single = config["cniVersion"] ?? "";
  const several = config["cniVersions"] ?? [];
  if (typeof single !== "string") {
    return note("decode-failure", "cniVersion", `is ${kindOf(single)}, not a string`);
  }
  if (!Array.isArray(several)) return note("decode-failure", "cniVersions", "is not a list: write [ … ]");

  const offered: readonly unknown[] = [...several, ...(single === "" ? [] : [single])];
  if (offered.length === 0) return VERSION_WHEN_ABSENT;
  const known = CNI_VERSIONS.findLast((version) => offered.includes(version));
  if (known !== undefined) return known;
  const field = single === "" ? "cniVersions" : "cniVersion";
  const state = `has ${offered.map((version) => quoted(version)).join(", ")}`;
  return note("version-incompatible", field, `${state}; supported are ${CNI_VERSIONS.join(", ")}`);
}

/** A boolean, or "true" and "false" as strings, as some tools write them. */
function readBoolean(config: JsonObject, field: string, problems: NetworkProblem[]): boolean {
  const value = config[field] ?? false;
  const text = typeof value === "string" ? value.trim().toLowerCase() : value;
  if (text === true || text === "true") return true;
  if (text === false || text === "false") return false;
  const shown = typeof value === "string" ? quoted(value) : kindOf(value);
  const state = `"${field}" is ${shown}: use true or false`;
  problems.push({ kind: "decode-failure", path: [field], state });
  return false;
}

function checkChain({ plugins, cniVersion }: NetworkList, problems: NetworkProblem[]): void {
  if (plugins.length < 2 || isAtLeast(cniVersion, FIRST_CHAINING_VERSION)) return;
  const state = `"cniVersion" ${cniVersion} cannot chain the ${plugins.length} plugins of the list`;
  const fix = `chaining needs ${FIRST_CHAINING_VERSION} or later`;
  problems.push({ kind: "config-invalid", path: ["cniVersion"], state: `${state}: ${fix}` });
}
