/**
 * What a runtime asks this plugin for and the plugin cannot do: a request that is ignored would be found missing only
 * when the container runs. Pure.
 *
 *   runtimeConfig   refused: a runtime sends a key only if the plugin's entry declares it in `capabilities`
 *   args.cni        reported: all plugins of a list get it, so a key may be meant for another one
 *   an address      refused if the addresses come from `host-local`, as such annotations are
 */
import { isJsonObject, type JsonObject } from "../cni/json.ts";
import { capabilityRemedy } from "../config/capabilities.ts";
import { findKey } from "../config/field.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { formatAddress } from "../ip/address.ts";
import type { RequestedAddress } from "../ipam/requested-addresses.ts";
import { quoted, shortName } from "../quote.ts";
import { HOST_LOCAL } from "./open-ipam-plugin.ts";

export function refuseUnsupportedRequests(config: JsonObject, ipamType: string): void {
  const requests = sectionOf(config, "runtimeConfig");
  for (const key in requests) {
    const details = isEmpty(requests[key]) ? undefined : capabilityRemedy(key, ipamType);
    if (details === undefined) continue;
    throw new PluginError(
      "field-unsupported",
      `Cannot use "runtimeConfig.${shortName(key)}" ${quoted(requests[key])}: "${identity.product}" does not support this capability`,
      { details },
    );
  }
}

/** Only ADD refuses them: DEL and CHECK of a container that a former release attached must go on working. */
export function refuseAddressesOfHostLocal(requested: readonly RequestedAddress[], ipamType: string): void {
  const [first] = requested;
  if (first === undefined || ipamType !== HOST_LOCAL) return;
  const { address, place } = first;
  throw new PluginError(
    "field-unsupported",
    `Cannot assign "${formatAddress(address)}" (${place}): requests for addresses do not work with IPAM plugin "${HOST_LOCAL}"`,
    { details: `remove the request, or use "${identity.ipamType}" as "ipam.type"` },
  );
}

/** `labels` only describe the container. */
const USED_ARGUMENTS: ReadonlySet<string> = new Set(["ips", "mac", "labels"]);

/** To be logged at WARNING. */
export function unusedArguments(config: JsonObject): readonly string[] {
  const given = sectionOf(sectionOf(config, "args"), "cni");
  return Object.keys(given)
    .filter((key) => !USED_ARGUMENTS.has(key.toLowerCase()) && !isEmpty(given[key]))
    .map(
      (key) =>
        `"args.cni.${shortName(key)}" ${quoted(given[key])} has no effect: "${identity.product}" does not use it`,
    );
}

/** In any case, as the rest of the config; what is not an object is reported elsewhere. */
function sectionOf(config: JsonObject, name: string): JsonObject {
  const section = config[findKey(config, name) ?? name];
  return isJsonObject(section) ? section : {};
}

/** Asks for nothing, as `{ "servers": [], "searches": [] }` does. */
function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "" || value === false) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isJsonObject(value) && Object.values(value).every(isEmpty);
}
