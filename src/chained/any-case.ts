/** Keys of the network config as Go's decoder takes them, which callers are used to: in any case. */
import type { JsonObject } from "../cni/json.ts";

/** The value under the key, else under one that differs in case alone: containerd writes `IngressRate`. */
export function valueInAnyCase(object: JsonObject, key: string): unknown {
  if (object[key] !== undefined) return object[key];
  const wanted = key.toLowerCase();
  for (const name in object) if (name.toLowerCase() === wanted) return object[name];
  return undefined;
}
