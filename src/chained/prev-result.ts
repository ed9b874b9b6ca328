/** What every chained plugin needs: the result of the previous plugins in the list. */
import type { AddCall, CheckCall } from "../cni/call.ts";
import type { CniResult } from "../cni/result.ts";
import { PluginError } from "../errors.ts";

/** Throws if there is no previous result. */
export function requirePrevResult(call: AddCall | CheckCall): CniResult {
  if (call.prevResult !== undefined) return call.prevResult;
  const state =
    'the network config has no "prevResult"; it must follow the plugin that creates the interface in a network list';
  throw new PluginError("config-invalid", `Cannot run ${call.command} as a chained plugin: ${state}`);
}
