/**
 * Gives facts and events of the kernel to the planner and the keeper of routes between nodes, and lets the keeper look when
 * something may differ: soon after it changed, and from time to time without a reason. Never fails: what cannot be corrected
 * affects nothing else.
 */
import type { NetworkEvent } from "../../linux/rtnetlink/network-monitor.ts";
import type { PlanChange, RoutePlan } from "../../routing/plan.ts";
import type { FactChanges, RoutePlanner } from "../../routing/planner.ts";
import { Wakeup } from "../../wakeup.ts";
import { followEvents } from "../follow-events.ts";
import type { NetworkKeeper } from "./network-keeper.ts";

/** Events that come within this time after the first are looked at together. */
const SETTLE_MILLISECONDS = 50;
/** How often everything is compared without a reason. */
const REFRESH_MILLISECONDS = 90_000;
/** How often it is checked whether other programs changed the guard of the tunnels. */
const GUARD_MILLISECONDS = 500;
/** What could not be corrected is tried again after this time, then after twice the time, and so on. */
const UNSETTLED_MILLISECONDS = { first: 1_000, longest: 30_000 } as const;

export interface FollowNetworkMeans {
  readonly planner: RoutePlanner;
  readonly keeper: NetworkKeeper;
  readonly events: (signal: AbortSignal) => AsyncIterable<readonly NetworkEvent[] | "lost">;
  /** Whether other programs may have changed the guard of the tunnels since the last call. */
  readonly isGuardSuspect: () => boolean;
  /** The kernel has been given this plan; the first change is everything. */
  readonly planned: (plan: RoutePlan, change: PlanChange) => void;
  /** The kernel has been compared with the plan, or was given one. */
  readonly applied: () => void;
  readonly report: (message: string) => void;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Facts that come from several places: nothing is planned before all have sent theirs, or routes would be removed at each start. */
export type FactSources = readonly AsyncIterable<FactChanges>[];

/** Resolves when the facts have ended and the signal is aborted. */
export async function followNetwork(sources: FactSources, means: FollowNetworkMeans): Promise<void> {
  const [doubt, retry] = [new Wakeup(), new Wakeup()];
  const ring = () => {
    if (means.keeper.isDoubtful) doubt.notify();
  };
  const silent = new Set(sources);
  await Promise.all([
    ...sources.map((source) => followFacts(source, { silent, retry, ...means })),
    followEvents(means.keeper, { ...means, ring }),
    followGuard(ring, means),
    lookWhenDoubtful({ doubt, retry }, means),
  ]);
}

interface FactMeans extends FollowNetworkMeans {
  /** Those that have sent nothing yet. */
  readonly silent: Set<AsyncIterable<FactChanges>>;
  readonly retry: Wakeup;
}

/** At once: a pod of another node waits for its route. */
async function followFacts(source: AsyncIterable<FactChanges>, means: FactMeans): Promise<void> {
  const { planner, keeper, silent, retry, planned, applied } = means;
  for await (const facts of source) {
    const isNew = silent.delete(source);
    const difference = planner.update(facts);
    if (silent.size > 0) continue;
    const wasSettled = keeper.problems.size === 0;
    const { plan } = planner;
    const change = isNew ? wholeChange(plan) : difference;
    if (keeper.update(plan, change) === "unsettled" && wasSettled) retry.notify();
    planned(plan, change);
    applied();
  }
}

/** The differences of those that sent their facts before the last one were not applied. */
function wholeChange({ tunnels, peers, routes, senders, announced, outsidePools }: RoutePlan): PlanChange {
  return {
    tunnels: new Set(tunnels.keys()),
    peers: new Set(peers.keys()),
    routes: new Set(routes.keys()),
    senders: new Set(senders.keys()),
    announced: new Set(announced.keys()),
    outsidePools: new Set(outsidePools.keys()),
  };
}

async function followGuard(
  ring: () => void,
  { keeper, isGuardSuspect, wait, signal }: FollowNetworkMeans,
): Promise<void> {
  while (!signal.aborted) {
    await wait(GUARD_MILLISECONDS, signal);
    if (signal.aborted || !isGuardSuspect()) continue;
    keeper.distrust();
    ring();
  }
}

async function lookWhenDoubtful(
  { doubt, retry }: { readonly doubt: Wakeup; readonly retry: Wakeup },
  means: FollowNetworkMeans,
): Promise<void> {
  const { keeper, applied, wait, signal } = means;
  let pause: number = REFRESH_MILLISECONDS;
  while (!signal.aborted) {
    // It may have been notified during the last look.
    if (!doubt.isNotified) await wait(pause, AbortSignal.any([signal, doubt.signal, retry.signal]));
    if (doubt.isNotified) await wait(SETTLE_MILLISECONDS, signal);
    else if (retry.isNotified) {
      retry.reset();
      pause = Math.min(pause, UNSETTLED_MILLISECONDS.first);
      continue;
    } else keeper.distrust();
    const isForReason = doubt.isNotified;
    doubt.reset();
    if (signal.aborted) return;
    const outcome = keeper.look();
    applied();
    if (outcome === "settled") pause = REFRESH_MILLISECONDS;
    else if (isForReason || pause === REFRESH_MILLISECONDS) pause = UNSETTLED_MILLISECONDS.first;
    else pause = Math.min(2 * pause, UNSETTLED_MILLISECONDS.longest);
  }
}
