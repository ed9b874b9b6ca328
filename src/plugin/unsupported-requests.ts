/**
 * Refuses what a runtime asks this plugin for and the plugin cannot do: a request that is ignored would be found missing
 * only when the container runs. Pure.
 *
 * A runtime sends a key only if the plugin's entry declares it in `capabilities`.
 */
import { isJsonObject, type JsonObject } from "../cni/json.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { quoted, shortName } from "../quote.ts";

/** Keys that this plugin uses, and keys that only describe the container. */
const USABLE: ReadonlySet<string> = new Set(["ips", "mac", "cgroupPath", "io.kubernetes.cri.pod-annotations"]);

/** What to change if one of these is declared for this plugin. */
const REMEDIES: Readonly<Record<string, string>> = {
  portMappings: 'declare the capability "portMappings" in the entry of "portmap", and remove it from this one',
  bandwidth: 'declare the capability "bandwidth" in the entry of "bandwidth", and remove it from this one',
  ipRanges: `remove the capability "ipRanges": ranges belong to "host-local", "${identity.ipamType}" uses pools`,
};

export function refuseUnsupportedRequests(config: JsonObject, ipamType: string): void {
  const requests = config["runtimeConfig"];
  if (!isJsonObject(requests)) return;
  for (const key in requests) {
    if (USABLE.has(key) || (key === "ipRanges" && ipamType !== identity.ipamType) || isEmpty(requests[key])) continue;
    const name = shortName(key);
    throw new PluginError(
      "field-unsupported",
      `Cannot use "runtimeConfig.${name}" ${quoted(requests[key])}: "${identity.product}" does not support this capability`,
      { details: REMEDIES[key] ?? `remove the capability "${name}" from the entry of "${identity.product}"` },
    );
  }
}

/** Asks for nothing. */
function isEmpty(value: unknown): boolean {
  if (value === null || value === "" || value === false) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isJsonObject(value) && Object.keys(value).length === 0;
}
