/** One attachment on its way through ADD: what is asked for, and what it was given. */
import type { CniArguments } from "../cni/arguments.ts";
import type { AddCall } from "../cni/call.ts";
import type { CniDns, CniRoute } from "../cni/result.ts";
import type { Address } from "../ip/address.ts";
import type { Found } from "./sandbox.ts";
import type { Workload } from "./workload.ts";

export interface Attachment {
  readonly call: AddCall;
  readonly args: CniArguments;
  readonly workload: Workload;
  /** What an earlier ADD left of it. */
  readonly found: Found["kind"];
}

export interface Given {
  readonly addresses: readonly Address[];
  /** As the IPAM plugin named them; ours names none. */
  readonly routes: readonly CniRoute[];
  readonly dns: CniDns;
}

export interface Taken extends Given {
  /** Undoes all of it: addresses and endpoint. */
  readonly giveBack: () => Promise<void>;
}
