/** Feeds the updates of a replica to the kernel's table: the first at once, those that follow closely together. */
import type { Update } from "../../datastore/replica.ts";
import type { PolicyValues } from "../../policy/inputs.ts";
import type { TableKeeper } from "./table-keeper.ts";

/** Changes that come within this time after another are merged into one batch. */
const PACE_MILLISECONDS = 10;

export interface LoopMeans {
  readonly keeper: Pick<TableKeeper, "update">;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Resolves when the updates end. Rejects if the kernel refuses the whole table: what it contains stays. */
export async function runPolicyLoop(
  updates: AsyncIterable<Update<PolicyValues>>,
  { keeper, wait, signal }: LoopMeans,
): Promise<void> {
  for await (const { changes } of updates) {
    keeper.update(changes);
    await wait(PACE_MILLISECONDS, signal);
  }
}
