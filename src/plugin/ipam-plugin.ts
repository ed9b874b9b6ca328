/** An IPAM plugin other than our allocator, run as a process or in this one. Its failures are passed on. */
import type { AddCall, CheckCall, DelCall, GcCall, StatusCall } from "../cni/call.ts";
import type { CniResult } from "../cni/result.ts";

export interface IpamPlugin {
  add(call: AddCall, signal: AbortSignal): Promise<CniResult>;
  /** Also used to undo an `add`. */
  del(call: AddCall | DelCall, signal: AbortSignal): Promise<void>;
  check(call: CheckCall, signal: AbortSignal): Promise<void>;
  gc(call: GcCall, signal: AbortSignal): Promise<void>;
  status(call: StatusCall, signal: AbortSignal): Promise<void>;
}
