/** A node agent that enforces policy, as the benchmark of policy sees it: how its load is written, and how its rules are observed. */
import type { NetworkPolicy } from "../../src/model/network-policy.ts";
import type { Profile } from "../../src/model/profile.ts";
import type { WorkloadEndpoint } from "../../src/model/workload-endpoint.ts";
import type { Command } from "./command-line.ts";
import type { EtcdRecord } from "./etcd-records.ts";

export type LoadResource = WorkloadEndpoint | NetworkPolicy | Profile;

/** One change of the load. */
export type LoadChange =
  | { readonly kind: "local"; readonly after: WorkloadEndpoint }
  /** `like`: an endpoint that is in the same sets already. */
  | { readonly kind: "remote"; readonly after: WorkloadEndpoint; readonly like: WorkloadEndpoint }
  | { readonly kind: "policy"; readonly before: NetworkPolicy; readonly after: NetworkPolicy };

/** Whether the kernel enforces a change. Cheap enough to be called often, and changes nothing. */
export type IsEnforced = () => boolean;

export interface PolicySystem {
  readonly name: string;
  readonly daemon: Command;
  record(resource: LoadResource): EtcdRecord;
  /** Whether all of the load is enforced. */
  isLoaded(): boolean;
  /** Called once after each start, when all of the load is enforced. */
  prepare(): void;
  /** Called before the change is written. */
  observe(change: LoadChange): IsEnforced;
  /** Removes its rules, when it does not run. */
  clear(): void;
}
