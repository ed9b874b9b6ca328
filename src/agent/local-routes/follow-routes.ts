/**
 * Feeds endpoints and events of the kernel to the route keeper, and lets it look when something may differ: soon after it
 * changed, and from time to time without a reason. Never fails: routes that cannot be corrected do not affect policy.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { RouteEvent } from "../../linux/rtnetlink/route-monitor.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { Wakeup } from "../../wakeup.ts";
import { followEvents } from "../follow-events.ts";
import { RoutingSetting, type SettingChanges } from "../routing-setting.ts";
import { CONFIRM_MILLISECONDS, RouteKeeper, type RouteMeans } from "./route-keeper.ts";

/** Changes that come within this time after the first are looked at together. */
const SETTLE_MILLISECONDS = 200;
/** How often everything is compared without a reason. */
const REFRESH_MILLISECONDS = 90_000;

interface EndpointUpdate {
  readonly changes: SettingChanges & { readonly endpoints: readonly RecordChange<WorkloadEndpoint>[] };
}

export interface FollowMeans extends RouteMeans {
  readonly events: (signal: AbortSignal) => AsyncIterable<readonly RouteEvent[] | "lost">;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Resolves when the updates have ended and the signal is aborted. */
export async function followRoutes(updates: AsyncIterable<EndpointUpdate>, means: FollowMeans): Promise<void> {
  const keeper = new RouteKeeper(means);
  const wakeup = new Wakeup();
  const ring = () => {
    if (keeper.isDoubtful) wakeup.notify();
  };
  await Promise.all([
    followUpdates(updates, { keeper, ring, routing: new RoutingSetting(means.node) }),
    followEvents(keeper, { ...means, report: (message) => keeper.report(message), ring }),
    lookWhenDoubtful(keeper, wakeup, means),
  ]);
}

async function followUpdates(
  updates: AsyncIterable<EndpointUpdate>,
  {
    keeper,
    ring,
    routing,
  }: { readonly keeper: RouteKeeper; readonly ring: () => void; readonly routing: RoutingSetting },
): Promise<void> {
  for await (const { changes } of updates) {
    routing.update(changes);
    keeper.setEnabled(routing.isEnabled);
    keeper.update(changes.endpoints);
    ring();
  }
}

async function lookWhenDoubtful(keeper: RouteKeeper, wakeup: Wakeup, { wait, signal }: FollowMeans): Promise<void> {
  while (!signal.aborted) {
    // It may have been notified during the last look.
    if (!wakeup.isNotified) await wait(REFRESH_MILLISECONDS, AbortSignal.any([signal, wakeup.signal]));
    if (wakeup.isNotified) await wait(SETTLE_MILLISECONDS, signal);
    else keeper.distrust();
    wakeup.reset();
    try {
      while (!signal.aborted && (await keeper.look()) === "unsettled") await wait(CONFIRM_MILLISECONDS, signal);
    } catch (failure) {
      keeper.report(`Cannot compare the routes of pods: ${reasonOf(failure)}`);
    }
  }
}

function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
