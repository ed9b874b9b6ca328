/** Sends a request again as the clients of the product do: soon if the server refuses it, longer if it is silent. */
import type { SimulatedProcess } from "../schedule/process.ts";
import { RequestFailed } from "./network.ts";

const WHOLE_MILLISECONDS = 15_000;
/** While no connection is accepted. */
const BRIEF_MILLISECONDS = 2_000;
const LONGEST_ATTEMPT_MILLISECONDS = 5_000;
const PAUSES = { first: 50, longest: 500 };

export interface Persistence {
  readonly firstAttemptMilliseconds: number;
  readonly mayRepeat: (failure: RequestFailed) => boolean;
  /** What the caller gets in the end. */
  readonly failureOf: (failure: RequestFailed) => Error;
}

export async function persist<Answer>(
  process: SimulatedProcess,
  { firstAttemptMilliseconds, mayRepeat, failureOf }: Persistence,
  send: (patience: number) => Promise<Answer>,
): Promise<Answer> {
  let failedAt: number | undefined;
  let patience = firstAttemptMilliseconds;
  let pause = PAUSES.first;
  for (;;) {
    try {
      return await send(patience);
    } catch (failure) {
      if (!(failure instanceof RequestFailed)) throw failure;
      failedAt ??= process.elapsed();
      const limit = failure.reason === "refused" ? BRIEF_MILLISECONDS : WHOLE_MILLISECONDS;
      if (!mayRepeat(failure) || process.elapsed() - failedAt >= limit) throw failureOf(failure);
      await process.wait(pause);
      pause = Math.min(pause * 2, PAUSES.longest);
      patience = Math.min(patience * 2, LONGEST_ATTEMPT_MILLISECONDS);
    }
  }
}
