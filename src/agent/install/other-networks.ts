/**
 * Network configs that a container runtime would use instead of ours: it takes the first of its directory, in the order
 * of the names. Pure.
 */
import { isJsonObject } from "../../cni/json.ts";
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

/** Of a network config, or of a list. */
function pluginTypes(text: string): readonly string[] {
  let config: unknown;
  try {
    config = parseJson(text);
  } catch {
    return ["not valid JSON"];
  }
  if (!isJsonObject(config)) return [];
  const plugins: readonly unknown[] = Array.isArray(config["plugins"]) ? config["plugins"] : [config];
  return plugins.filter(isJsonObject).flatMap(({ type }) => (typeof type === "string" ? [type] : []));
}
