/** What an ADD registers, and what came of it. */
import type { CniArguments } from "../cni/arguments.ts";
import type { AddCall } from "../cni/call.ts";
import type { CniDns, CniRoute } from "../cni/result.ts";
import type { Address } from "../ip/address.ts";
import type { Found } from "./sandbox.ts";
import type { Workload } from "./workload.ts";

export interface AddRequest {
  readonly call: AddCall;
  readonly args: CniArguments;
  readonly workload: Workload;
  /** What an earlier ADD left of it. */
  readonly found: Found["kind"];
}

export interface IpamAnswer {
  readonly addresses: readonly Address[];
  /** As the IPAM plugin named them; ours names none. */
  readonly routes: readonly CniRoute[];
  readonly dns: CniDns;
}

export interface Registered extends IpamAnswer {
  /** Releases the addresses and removes the endpoint. */
  readonly undo: () => Promise<void>;
}
