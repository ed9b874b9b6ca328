/** Feeds the endpoints of a replica to the table of floating IPs. */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { RoutingSetting, type SettingChanges } from "../routing-setting.ts";
import { FloatingKeeper, type FloatingMeans } from "./floating-keeper.ts";

interface EndpointUpdate {
  readonly changes: SettingChanges & { readonly endpoints: readonly RecordChange<WorkloadEndpoint>[] };
}

/** Until the updates end. */
export async function followFloating(
  updates: AsyncIterable<EndpointUpdate>,
  { endpointsChanged, ...means }: FloatingMeans & { readonly endpointsChanged?: () => void },
): Promise<void> {
  const keeper = new FloatingKeeper(means);
  const routing = new RoutingSetting(means.node);
  for await (const { changes } of updates) {
    routing.update(changes);
    if (changes.endpoints.some((change) => isOf(means.node, change))) endpointsChanged?.();
    await keeper.update(changes.endpoints, routing);
  }
}

function isOf(node: string, { kind, previous, ...change }: RecordChange<WorkloadEndpoint>): boolean {
  const now = kind === "put" && "value" in change ? change.value : undefined;
  return now?.spec.node === node || previous?.spec.node === node;
}
