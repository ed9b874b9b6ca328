/**
 * What a runtime sends to each plugin of a network list, command by command.
 * Pure: who executes the requests, and keeps the result, is somebody else.
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

/** What the runtime can tell about each capability: `portMappings`, `bandwidth` … */
export type CapabilityValues = JsonObject;

/** ADD goes plugin by plugin: each is sent the result of the one before it, the first none. */
export function addRequest(
  list: NetworkList,
  entry: PluginEntry,
  more: { readonly prevResult?: CniResult | undefined; readonly capabilities: CapabilityValues },
): PluginRequest {
  return request(list, entry, { ...runtimeConfig(entry, more.capabilities), ...prevResult(list, more.prevResult) });
}

/** In order; none when the list switches CHECK off. */
export function checkRequests(
  list: NetworkList,
  result: CniResult,
  capabilities: CapabilityValues,
): readonly PluginRequest[] {
  if (!isAtLeast(list.cniVersion, "0.4.0")) {
    const state = `it exists from cniVersion "0.4.0", the network is of "${list.cniVersion}"`;
    throw new PluginError("version-incompatible", `Cannot run CHECK: ${state}`);
  }
  if (list.disableCheck) return [];
  return list.plugins.map((entry) => addRequest(list, entry, { prevResult: result, capabilities }));
}

/** Last plugin first. Before 0.4.0 a DEL knows nothing of the result. */
export function delRequests(
  list: NetworkList,
  result: CniResult | undefined,
  capabilities: CapabilityValues,
): readonly PluginRequest[] {
  const known = isAtLeast(list.cniVersion, "0.4.0") ? result : undefined;
  return list.plugins.toReversed().map((entry) => addRequest(list, entry, { prevResult: known, capabilities }));
}

/** None when the list switches GC off or its version has none. */
export function gcRequests(list: NetworkList, valid: readonly Attachment[]): readonly PluginRequest[] {
  if (list.disableGc || !isAtLeast(list.cniVersion, "1.1.0")) return [];
  return list.plugins.map((entry) => request(list, entry, encodeValidAttachments(valid)));
}

/** None when the list's version has no STATUS. */
export function statusRequests(list: NetworkList): readonly PluginRequest[] {
  if (!isAtLeast(list.cniVersion, "1.1.0")) return [];
  return list.plugins.map((entry) => request(list, entry, {}));
}

function request(list: NetworkList, entry: PluginEntry, more: JsonObject): PluginRequest {
  return { type: entry.type, config: { ...entry.config, name: list.name, cniVersion: list.cniVersion, ...more } };
}

/** Only what the plugin asks for and the runtime knows; nothing at all when that is nothing. */
function runtimeConfig(entry: PluginEntry, known: CapabilityValues): JsonObject {
  const shared = entry.capabilities.filter((name) => known[name] !== undefined);
  if (shared.length === 0) return {};
  return { runtimeConfig: Object.fromEntries(shared.map((name) => [name, known[name]])) };
}

function prevResult(list: NetworkList, result: CniResult | undefined): JsonObject {
  return result === undefined ? {} : { prevResult: encodeResult(result, list.cniVersion) };
}
