/**
 * What a pure function makes of a network config, remembered for the configs
 * that came last: a runtime sends the same one with every call of a network, but
 * for the result of its container.
 *
 * Only for a process that stays. What is remembered is frozen: its calls share it.
 */
import type { JsonObject } from "./json.ts";
import type { CniVersion } from "./version.ts";

/** More networks than a host has. */
const MOST = 16;
const LONGEST_TEXT = 64 * 1024;

/** May look at all of the config but its `prevResult`. */
export type ConfigDecoder<Decoded> = (config: JsonObject, version: CniVersion) => Decoded;

/** What the decoder throws is not remembered. */
export function rememberConfigs<Decoded>(decode: ConfigDecoder<Decoded>): ConfigDecoder<Decoded> {
  const known = new Map<string, Decoded>();
  return (config, version) => {
    const text = version + JSON.stringify({ ...config, prevResult: undefined });
    const decoded = known.get(text) ?? frozen(decode(config, version));
    // Behind all others: the first one is that which was not asked for the longest.
    known.delete(text);
    if (text.length <= LONGEST_TEXT) known.set(text, decoded);
    const [oldest = ""] = known.size > MOST ? known.keys() : [];
    known.delete(oldest);
    return decoded;
  };
}

function frozen<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}
