/**
 * Network configs that a container runtime would use instead of ours: it takes the first of its directory, in the order
 * of the names. Pure.
 */
import { isJsonObject } from "../../cni/json.ts";
import { entriesOf, ownEntryOf } from "../../config/own-entry.ts";
import { identity } from "../../identity.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";

export interface ConfigFile {
  readonly name: string;
  readonly text: string;
}

const CONFIG_NAME = /\.(conf|conflist|json)$/;

/** The names that may hide `own`. */
export function namesBefore(own: string, names: readonly string[]): readonly string[] {
  return names.filter((name) => CONFIG_NAME.test(name) && name < own).sort();
}

/**
 * Whether it is the file of an earlier release, which had another name, as with flannel: it runs our plugin. Its content is
 * that of the earlier release, so it must not come before ours.
 */
export function isFormerConfig({ name, text }: ConfigFile, formerName: string | undefined): boolean {
  return name === formerName && pluginsIn(text).some((entry) => ownEntryOf(entry) !== undefined);
}

/** The names of those that run our plugin or our IPAM plugin, in the order of runtimes. */
export function ownConfigs(files: readonly ConfigFile[]): readonly string[] {
  return files
    .filter(({ name, text }) => CONFIG_NAME.test(name) && pluginsIn(text).some(isOurs))
    .map(({ name }) => name)
    .sort();
}

function isOurs(entry: unknown): boolean {
  if (ownEntryOf(entry) !== undefined) return true;
  const ipam = isJsonObject(entry) ? entry["ipam"] : undefined;
  return isJsonObject(ipam) && ipam["type"] === identity.ipamType;
}

/** Runtimes do not read files with other endings. */
export const SET_ASIDE = ".former";

/** One line for each, which says what to do. */
export function hidingConfigs(directory: string, own: string, before: readonly ConfigFile[]): readonly string[] {
  return before.map(({ name, text }) => {
    const types = pluginTypes(text);
    const what = types.length === 0 ? "" : ` (${types.join(", ")})`;
    return (
      `${quoted(`${directory}/${name}`)}${what} comes before ${quoted(own)}: ` +
      "container runtimes use it instead, and pods do not get their network from here; remove or rename it"
    );
  });
}

function pluginTypes(text: string): readonly string[] {
  const plugins = pluginsIn(text);
  if (plugins.includes(NOT_JSON)) return ["not valid JSON"];
  return plugins.filter(isJsonObject).flatMap(({ type }) => (typeof type === "string" ? [type] : []));
}

const NOT_JSON = Symbol("not JSON");

/** Of a network config, or of a list. */
function pluginsIn(text: string): readonly unknown[] {
  let config: unknown;
  try {
    config = parseJson(text);
  } catch {
    return [NOT_JSON];
  }
  return isJsonObject(config) ? entriesOf(config) : [];
}
