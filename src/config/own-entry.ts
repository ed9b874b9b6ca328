/** The entry of our plugin in a network config list: one that the runtime calls, or that another plugin such as flannel calls. Pure. */
import { isJsonObject, type JsonObject } from "../cni/json.ts";
import { identity } from "../identity.ts";

const DELEGATE = "delegate";

/** Of a network config list; a single plugin is a list of one. */
export function entriesOf(network: JsonObject): readonly unknown[] {
  return Array.isArray(network["plugins"]) ? network["plugins"] : [network];
}

function isOwnEntry(entry: unknown): entry is JsonObject {
  return isJsonObject(entry) && entry["type"] === identity.product;
}

/** As our plugin is called. The plugin that calls it brings the IPAM, if the entry has none. */
export function ownEntryOf(entry: unknown): JsonObject | undefined {
  if (isOwnEntry(entry)) return entry;
  const delegate = isJsonObject(entry) ? entry[DELEGATE] : undefined;
  return isOwnEntry(delegate) ? { ipam: { type: "host-local" }, ...delegate } : undefined;
}

/** Our entry changed, wherever it is; others as they are. */
export function mapOwnEntry(entry: unknown, change: (own: JsonObject) => JsonObject): unknown {
  if (isOwnEntry(entry)) return change(entry);
  const delegate = isJsonObject(entry) ? entry[DELEGATE] : undefined;
  return isJsonObject(entry) && isOwnEntry(delegate) ? { ...entry, [DELEGATE]: change(delegate) } : entry;
}
