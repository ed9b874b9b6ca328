/** The network config inside a ConfigMap: JSON, except for placeholders without quotes that the installation of a node fills in. Pure. */
import type { Fields } from "../kube/objects.ts";
import { isObject } from "../model/shape.ts";
import { parseJson } from "../parse-json.ts";

/** `undefined` if it is not a network config. Placeholders become strings. */
export function parseNetworkList(text: string): Fields | undefined {
  try {
    const value = parseJson(text.replace(/:\s*(__[A-Z0-9_]+__)/g, ': "$1"'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** None if it is the config of a single plugin. */
export function pluginsOf(list: Fields): readonly Fields[] {
  const plugins = list["plugins"];
  return Array.isArray(plugins) ? plugins.filter(isObject) : [];
}
