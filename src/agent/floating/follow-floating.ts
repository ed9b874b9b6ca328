/** Feeds the endpoints of a replica to the table of floating IPs, and compares it with the kernel from time to time. */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { RoutingSetting, type SettingChanges } from "../routing-setting.ts";
import { FloatingKeeper, type FloatingMeans } from "./floating-keeper.ts";

const REFRESH_MILLISECONDS = 3 * 60 * 1000;

interface EndpointUpdate {
  readonly changes: SettingChanges & { readonly endpoints: readonly RecordChange<WorkloadEndpoint>[] };
}

interface FollowMeans extends FloatingMeans {
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Resolves when the updates have ended and the signal is aborted. */
export async function followFloating(updates: AsyncIterable<EndpointUpdate>, means: FollowMeans): Promise<void> {
  const keeper = new FloatingKeeper(means);
  await Promise.all([followUpdates(updates, keeper, new RoutingSetting(means.node)), refreshRegularly(keeper, means)]);
}

async function followUpdates(
  updates: AsyncIterable<EndpointUpdate>,
  keeper: FloatingKeeper,
  routing: RoutingSetting,
): Promise<void> {
  for await (const { changes } of updates) {
    routing.update(changes);
    await keeper.update(changes.endpoints, routing);
  }
}

async function refreshRegularly(keeper: FloatingKeeper, { wait, signal }: FollowMeans): Promise<void> {
  while (!signal.aborted) {
    await wait(REFRESH_MILLISECONDS, signal);
    if (!signal.aborted) await keeper.refresh();
  }
}
