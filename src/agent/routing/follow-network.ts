/**
 * Gives plans and events of the kernel to the keeper of routes between nodes, and lets it look when something may differ:
 * soon after it changed, and from time to time without a reason. Never fails: what cannot be corrected affects nothing else.
 */
import type { NetworkEvent } from "../../linux/rtnetlink/network-monitor.ts";
import type { PlanChange, RoutePlan } from "../../routing/plan.ts";
import { Bell } from "../bell.ts";
import type { NetworkKeeper } from "./network-keeper.ts";

/** Events that come within this time after the first are looked at together. */
const SETTLE_MILLISECONDS = 50;
/** How often everything is compared without a reason. */
const REFRESH_MILLISECONDS = 90_000;
/** After the kernel's events could not be followed. */
const RETRY_MILLISECONDS = 1_000;
/** How often it is checked whether other programs changed the guard of the tunnels. */
const GUARD_MILLISECONDS = 500;
/** What could not be corrected is tried again after this time, then after twice the time, and so on. */
const UNSETTLED_MILLISECONDS = { first: 1_000, longest: 30_000 } as const;

export interface PlanUpdate {
  readonly plan: RoutePlan;
  readonly change: PlanChange;
}

export interface FollowNetworkMeans {
  readonly keeper: NetworkKeeper;
  readonly events: (signal: AbortSignal) => AsyncIterable<readonly NetworkEvent[] | "lost">;
  /** Whether other programs may have changed the guard of the tunnels since the last call. */
  readonly isGuardSuspect: () => boolean;
  /** The kernel has been given a plan, or compared with it. */
  readonly applied: () => void;
  readonly report: (message: string) => void;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Resolves when the updates have ended and the signal is aborted. */
export async function followNetwork(updates: AsyncIterable<PlanUpdate>, means: FollowNetworkMeans): Promise<void> {
  const bell = new Bell();
  const ring = () => {
    if (means.keeper.isDoubtful) bell.ring();
  };
  const retry = new Bell();
  await Promise.all([
    followPlans(updates, retry, means),
    followEvents(ring, means),
    followGuard(ring, means),
    lookWhenDoubtful(bell, retry, means),
  ]);
}

/** At once: a pod of another node waits for its route. */
async function followPlans(
  updates: AsyncIterable<PlanUpdate>,
  retry: Bell,
  { keeper, applied }: FollowNetworkMeans,
): Promise<void> {
  for await (const { plan, change } of updates) {
    const wasSettled = keeper.problems.size === 0;
    if (keeper.update(plan, change) === "unsettled" && wasSettled) retry.ring();
    applied();
  }
}

async function followEvents(ring: () => void, means: FollowNetworkMeans): Promise<void> {
  const { keeper, events, wait, signal, report } = means;
  while (!signal.aborted) {
    try {
      for await (const batch of events(signal)) {
        if (batch === "lost") keeper.distrust();
        else keeper.notice(batch);
        ring();
      }
    } catch (failure) {
      report(`Cannot follow changes of routes: ${failure instanceof Error ? failure.message : String(failure)}`);
    }
    await wait(RETRY_MILLISECONDS, signal);
    keeper.distrust();
    ring();
  }
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

async function lookWhenDoubtful(bell: Bell, retry: Bell, means: FollowNetworkMeans): Promise<void> {
  const { keeper, applied, wait, signal } = means;
  let pause: number = REFRESH_MILLISECONDS;
  while (!signal.aborted) {
    // It may have been rung during the last look.
    if (!bell.isRung) await wait(pause, AbortSignal.any([signal, bell.signal, retry.signal]));
    if (bell.isRung) await wait(SETTLE_MILLISECONDS, signal);
    else if (retry.isRung) {
      retry.reset();
      pause = Math.min(pause, UNSETTLED_MILLISECONDS.first);
      continue;
    } else keeper.distrust();
    const isForReason = bell.isRung;
    bell.reset();
    if (signal.aborted) return;
    const outcome = keeper.look();
    applied();
    if (outcome === "settled") pause = REFRESH_MILLISECONDS;
    else if (isForReason || pause === REFRESH_MILLISECONDS) pause = UNSETTLED_MILLISECONDS.first;
    else pause = Math.min(2 * pause, UNSETTLED_MILLISECONDS.longest);
  }
}
