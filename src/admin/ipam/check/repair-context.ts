import type { Datastore } from "../../../datastore/datastore.ts";
import type { Allocator } from "../../../ipam/allocator.ts";
import type { IpamRecords } from "../../../ipam/invariants.ts";
import type { WorkloadEndpoint } from "../../../model/workload-endpoint.ts";

/** What a repair of `ipam check` works with: the records as the check read them, and the ways to change them. */
export interface RepairContext {
  readonly store: Datastore;
  readonly allocator: Allocator;
  readonly records: IpamRecords;
  readonly endpoints: readonly WorkloadEndpoint[];
  readonly now: Date;
}
