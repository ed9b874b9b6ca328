/** An ADD that had begun before a lock may still write for some time: the orchestrator's API has no commits over several objects. */
import type { UpgradeOptions } from "../options.ts";
import type { StepSite } from "../step.ts";
import { lockedSince } from "./lock.ts";

/** The kubelet ends an ADD after two minutes. */
const LONGEST_ADD_SECONDS = 130;

export async function untilAddsHaveEnded(site: StepSite): Promise<void> {
  const since = await lockedSince(await site.openDatastore());
  const left = (since?.getTime() ?? site.now().getTime()) + lockSecondsOf(site.options) * 1_000 - site.now().getTime();
  if (left <= 0) return;
  site.progress(`Waiting ${Math.ceil(left / 1_000)} s until every ADD that had begun before the lock has ended`);
  await site.wait(left);
}

export function lockSecondsOf({ lockSeconds = LONGEST_ADD_SECONDS }: UpgradeOptions): number {
  return lockSeconds;
}
