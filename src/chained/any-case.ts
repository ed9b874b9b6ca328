/** Looks up keys of the network config in any case, as the JSON decoder of Go does, on which callers rely. */
import type { JsonObject } from "../cni/json.ts";

/** The value of the key, or of a key that differs only in case: containerd writes `IngressRate`. */
export function valueInAnyCase(object: JsonObject, key: string): unknown {
  if (object[key] !== undefined) return object[key];
  const wanted = key.toLowerCase();
  for (const name in object) if (name.toLowerCase() === wanted) return object[name];
  return undefined;
}
