/**
 * The lines about a call that every plugin logs alike: one at INFO for each ADD
 * and DEL that succeeded, one at ERROR for each call that failed. Pure.
 *
 *   [INFO][4711] vendor: ADD done addresses="10.0.0.1" container="c1" interface="eth0" milliseconds="8.4" …
 */
import type { CniCall } from "../cni/call.ts";
import { PluginError } from "../errors.ts";
import type { LogFields } from "./line.ts";
import type { Log } from "./log.ts";

/** How long the call took so far. */
export type CallClock = () => number;

export function logDone(log: Log, call: CniCall, fields: LogFields, milliseconds: CallClock): void {
  if (call.command !== "ADD" && call.command !== "DEL") return;
  log.info(`${call.command} done`, { ...attachmentFields(call), ...fields, milliseconds: shown(milliseconds) });
}

/** With the error's details, which say what to do about it. */
export function logFailed(log: Log, call: CniCall, failure: unknown, milliseconds: CallClock): void {
  log.error(failure instanceof Error ? failure.message : String(failure), {
    ...attachmentFields(call),
    command: call.command,
    details: failure instanceof PluginError && failure.details !== "" ? failure.details : undefined,
    milliseconds: shown(milliseconds),
  });
}

function attachmentFields(call: CniCall): LogFields {
  const { networkName: network } = call;
  if (call.command === "GC" || call.command === "STATUS") return { network };
  return { container: call.containerId, interface: call.ifname, network };
}

function shown(milliseconds: CallClock): string {
  return milliseconds().toFixed(1);
}
