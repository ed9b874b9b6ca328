/**
 * What a runtime sends to each plugin of a network list, command by command.
 * Pure: the caller executes the requests and stores the result.
 */
import { PluginError } from "../errors.ts";
import { type Attachment, encodeValidAttachments } from "./attachments.ts";
import type { JsonObject } from "./json.ts";
import type { NetworkList, PluginEntry } from "./network-list.ts";
import type { CniResult } from "./result.ts";
import { encodeResult } from "./result-conversion.ts";
import { isAtLeast } from "./version.ts";

export interface PluginRequest {
  readonly type: string;
  /** For the plugin's stdin. */
  readonly config: JsonObject;
}

/** The runtime's value of each capability: `portMappings`, `bandwidth` … */
export type CapabilityValues = JsonObject;

/** ADD calls the plugins in order: each gets the result of the previous one, the first none. */
export function addRequest(
  list: NetworkList,
  entry: PluginEntry,
  more: { readonly prevResult?: CniResult | undefined; readonly capabilities: CapabilityValues },
): PluginRequest {
  return request(list, entry, { ...runtimeConfig(entry, more.capabilities), ...prevResult(list, more.prevResult) });
}

/** In order; none if the list disables CHECK. */
export function checkRequests(
  list: NetworkList,
  result: CniResult,
  capabilities: CapabilityValues,
): readonly PluginRequest[] {
  if (!isAtLeast(list.cniVersion, "0.4.0")) {
    const state = `it requires cniVersion "0.4.0" or later, the network has "${list.cniVersion}"`;
    throw new PluginError("version-incompatible", `Cannot run CHECK: ${state}`);
  }
  if (list.disableCheck) return [];
  return list.plugins.map((entry) => addRequest(list, entry, { prevResult: result, capabilities }));
}

/** Last plugin first. Before 0.4.0, DEL does not get the result. */
export function delRequests(
  list: NetworkList,
  result: CniResult | undefined,
  capabilities: CapabilityValues,
): readonly PluginRequest[] {
  const known = isAtLeast(list.cniVersion, "0.4.0") ? result : undefined;
  return list.plugins.toReversed().map((entry) => addRequest(list, entry, { prevResult: known, capabilities }));
}

/** None if the list disables GC or its version has no GC. */
export function gcRequests(list: NetworkList, valid: readonly Attachment[]): readonly PluginRequest[] {
  if (list.disableGc || !isAtLeast(list.cniVersion, "1.1.0")) return [];
  return list.plugins.map((entry) => request(list, entry, encodeValidAttachments(valid)));
}

/** None if the list's version has no STATUS. */
export function statusRequests(list: NetworkList): readonly PluginRequest[] {
  if (!isAtLeast(list.cniVersion, "1.1.0")) return [];
  return list.plugins.map((entry) => request(list, entry, {}));
}

function request(list: NetworkList, entry: PluginEntry, more: JsonObject): PluginRequest {
  return { type: entry.type, config: { ...entry.config, name: list.name, cniVersion: list.cniVersion, ...more } };
}

/** The capabilities that the plugin enables and the runtime has a value for; no `runtimeConfig` if there are none. */
function runtimeConfig(entry: PluginEntry, known: CapabilityValues): JsonObject {
  const shared = entry.capabilities.filter((name) => known[name] !== undefined);
  if (shared.length === 0) return {};
  return { runtimeConfig: Object.fromEntries(shared.map((name) => [name, known[name]])) };
}

function prevResult(list: NetworkList, result: CniResult | undefined): JsonObject {
  return result === undefined ? {} : { prevResult: encodeResult(result, list.cniVersion) };
}
