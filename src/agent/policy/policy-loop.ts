/**
 * The two sides of the policy loop: updates of the replica change the kernel's table, and what other programs change in
 * it is reverted. All work on the table is synchronous, so the two never interleave.
 */
import type { PolicyChanges, PolicyUpdate } from "../../policy/inputs.ts";
import type { TableKeeper } from "./table-keeper.ts";
import { inTurns, type WaitingPolicies } from "./turns.ts";

/** Changes that come within this time after another are merged into one batch. */
const PACE_MILLISECONDS = 10;
/** How often it is checked whether other programs changed the table. */
const CHECK_MILLISECONDS = 1_000;

interface LoopMeans {
  readonly keeper: TableKeeper;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

export interface UpdateMeans extends LoopMeans {
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** Which changes of policies wait behind the changes of others. */
  readonly waiting: WaitingPolicies;
  /** The kernel has acknowledged the update, and the changes of policies that had waited and took effect with it. */
  readonly applied: (update: PolicyUpdate, joined: readonly PolicyChanges[]) => void;
}

/** Resolves when the updates end. Rejects if the kernel refuses the whole table: what it contains stays. */
export async function applyUpdates(
  updates: AsyncIterable<PolicyUpdate>,
  { keeper, elapsed, wait, signal, waiting, applied }: UpdateMeans,
): Promise<void> {
  const hasTable = () => keeper.hasTable;
  for await (const update of inTurns(updates, { waiting, hasTable, elapsed, wait })) {
    const joined: PolicyChanges[] = [];
    keeper.update(update.changes, (affected) => {
      const more = waiting.takeAffected(affected);
      if (more !== undefined) joined.push(more);
      return more;
    });
    applied(update, joined);
    await wait(PACE_MILLISECONDS, signal);
  }
}

export interface GuardMeans extends LoopMeans {
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** How often the whole table is read and compared; 0 for never. */
  readonly refreshMilliseconds: () => number;
  /** Called after each look at the table. */
  readonly checked: () => void;
}

/** Resolves when the signal is aborted. */
export async function guardTable({ keeper, wait, signal, elapsed, ...means }: GuardMeans): Promise<void> {
  let comparedAt = elapsed();
  while (!signal.aborted) {
    await wait(CHECK_MILLISECONDS, signal);
    if (signal.aborted) return;
    keeper.revertForeignChanges();
    means.checked();
    const interval = means.refreshMilliseconds();
    if (interval === 0 || elapsed() - comparedAt < interval) continue;
    comparedAt = elapsed();
    keeper.compare();
  }
}
