/** An ADD that had begun before a lock may still write for some time: the orchestrator's API has no commits over several objects. */
import type { UpgradeOptions } from "../../engine/options.ts";
import type { StepSite } from "../../engine/step.ts";
import { lockedSince } from "../../former-storage/lock.ts";

/** The kubelet ends an ADD after two minutes. */
const LONGEST_ADD_SECONDS = 130;

export async function untilAddsHaveEnded(site: StepSite): Promise<void> {
  const since = await lockedSince(await site.openDatastore());
  const left = lateAddsMilliseconds({
    ...{ since, now: site.now(), begunAt: site.begunAt },
    seconds: lockSecondsOf(site.options),
  });
  if (left <= 0) return;
  site.progress(`Waiting ${Math.ceil(left / 1_000)} s until every ADD that had begun before the lock has ended`);
  await site.wait(left);
}

interface LockTimes {
  /** Since when it is locked; `undefined` if that is not recorded. */
  readonly since: Date | undefined;
  /** This run. */
  readonly begunAt: Date;
  readonly now: Date;
  /** That an ADD lasts at most. */
  readonly seconds: number;
}

/**
 * How long ADDs that had begun before the lock may still write. Another machine may have locked it, whose clock differs: then
 * only the time counts that this run has seen it locked.
 */
export function lateAddsMilliseconds({ since, begunAt, now, seconds }: LockTimes): number {
  const from = Math.max(since?.getTime() ?? now.getTime(), begunAt.getTime());
  const left = from + seconds * 1_000 - now.getTime();
  return Math.max(0, Math.min(seconds * 1_000, left));
}

export function lockSecondsOf({ lockSeconds = LONGEST_ADD_SECONDS }: UpgradeOptions): number {
  return lockSeconds;
}
