/** What every chained plugin asks of its place in the list: the result of the plugins before it. */
import type { AddCall, CheckCall } from "../cni/call.ts";
import type { CniResult } from "../cni/result.ts";
import { PluginError } from "../errors.ts";

/** The result of the plugins before this one; the failure says that there is none. */
export function requirePrevResult(call: AddCall | CheckCall): CniResult {
  if (call.prevResult !== undefined) return call.prevResult;
  const state =
    'the network config holds no "prevResult"; it must stand in a list, behind the plugin that makes the interface';
  throw new PluginError("config-invalid", `Cannot run ${call.command} as a chained plugin: ${state}`);
}
