/** An IPAM plugin that is not our allocator, however it is run. Addresses are its own business, and so are its failures. */
import type { AddCall, CheckCall, DelCall, GcCall, StatusCall } from "../cni/call.ts";
import type { CniResult } from "../cni/result.ts";

export interface IpamPlugin {
  add(call: AddCall, signal: AbortSignal): Promise<CniResult>;
  /** Of any attachment, also to take back what `add` gave. */
  del(call: AddCall | DelCall, signal: AbortSignal): Promise<void>;
  check(call: CheckCall, signal: AbortSignal): Promise<void>;
  gc(call: GcCall, signal: AbortSignal): Promise<void>;
  status(call: StatusCall, signal: AbortSignal): Promise<void>;
}
