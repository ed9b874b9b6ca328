/** What an ADD registers, and the result. */
import type { CniArguments } from "../cni/arguments.ts";
import type { AddCall } from "../cni/call.ts";
import type { CniDns, CniRoute } from "../cni/result.ts";
import type { NatPool } from "../firewall/nat-table.ts";
import type { Address } from "../ip/address.ts";
import type { KeptUse } from "../ipam/request.ts";
import type { RequestedAddress } from "../ipam/requested-addresses.ts";
import type { PodFacts } from "./pod-facts.ts";
import type { Found } from "./sandbox.ts";
import type { Workload } from "./workload.ts";

export interface AddRequest {
  readonly call: AddCall;
  readonly args: CniArguments;
  /** Addresses that the runtime asks for. */
  readonly requested: readonly RequestedAddress[];
  /** What the annotations of the pod and its namespace ask for, and what its endpoint gets from the pod. */
  readonly podFacts: PodFacts;
  readonly workload: Workload;
  /** What an earlier ADD of this attachment left. */
  readonly found: Found;
  /** Throws if the container is gone. Called before each attempt to write, which fails if another has written since. */
  readonly requireContainer: () => void;
}

/** Of a container without a pod, or without access to the orchestrator's API. */
export const NO_POD_FACTS: PodFacts = { requests: { pools: {} } };

export interface IpamResult {
  readonly addresses: readonly Address[];
  /** As returned by the IPAM plugin; our own returns none. */
  readonly routes: readonly CniRoute[];
  readonly dns: CniDns;
  /** All pools; absent with another IPAM plugin, which has no pools. */
  readonly pools?: readonly NatPool[];
  /** For undoing it, if the addresses are kept for an identity. */
  readonly kept?: KeptUse;
}

export interface Registered extends IpamResult {
  /** Releases the addresses and removes the endpoint. */
  readonly undo: () => Promise<void>;
}
