/** Feeds the endpoints of a replica to the table of floating IPs. */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { RoutingSetting, type SettingChanges } from "../routing-setting.ts";
import { FloatingKeeper, type FloatingMeans } from "./floating-keeper.ts";

interface EndpointUpdate {
  readonly changes: SettingChanges & { readonly endpoints: readonly RecordChange<WorkloadEndpoint>[] };
}

/** Until the updates end. */
export async function followFloating(updates: AsyncIterable<EndpointUpdate>, means: FloatingMeans): Promise<void> {
  const keeper = new FloatingKeeper(means);
  const routing = new RoutingSetting(means.node);
  for await (const { changes } of updates) {
    routing.update(changes);
    await keeper.update(changes.endpoints, routing);
  }
}
