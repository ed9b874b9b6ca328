/** What every chained plugin asks of its place in the list: a version that has lists, and the result of the plugins before it. */
import type { AddCall, CheckCall } from "../cni/call.ts";
import type { CniResult } from "../cni/result.ts";
import { CNI_VERSIONS, FIRST_CHAINING_VERSION, isAtLeast } from "../cni/version.ts";
import { PluginError } from "../errors.ts";

/** Ascending. */
export const CHAINING_VERSIONS = CNI_VERSIONS.filter((version) => isAtLeast(version, FIRST_CHAINING_VERSION));

/** The result of the plugins before this one; the failure says that there is none. */
export function requirePrevResult(call: AddCall | CheckCall): CniResult {
  if (call.prevResult !== undefined) return call.prevResult;
  const state =
    'the network config holds no "prevResult"; it must stand in a list, behind the plugin that makes the interface';
  throw new PluginError("config-invalid", `Cannot run ${call.command} as a chained plugin: ${state}`);
}
