/** Sends a request again as the clients of the product do: soon if the server refuses it, longer if it is silent. */
import { PluginError } from "../../src/errors.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import { RequestFailed } from "./network.ts";

const WHOLE_MILLISECONDS = 15_000;
/** While no connection is accepted. */
const BRIEF_MILLISECONDS = 2_000;
const ATTEMPTS = { first: 1_000, longest: 5_000 };
const PAUSES = { first: 50, longest: 500 };

/** Throws "datastore-unavailable" when the time is over. */
export async function persist<Answer>(
  process: SimulatedProcess,
  send: (patience: number) => Promise<Answer>,
): Promise<Answer> {
  let failedAt: number | undefined;
  let patience = ATTEMPTS.first;
  let pause = PAUSES.first;
  for (;;) {
    try {
      return await send(patience);
    } catch (failure) {
      if (!(failure instanceof RequestFailed)) throw failure;
      failedAt ??= process.elapsed();
      const limit = failure.reason === "refused" ? BRIEF_MILLISECONDS : WHOLE_MILLISECONDS;
      if (process.elapsed() - failedAt >= limit) throw unavailable(failure);
      await process.wait(pause);
      pause = Math.min(pause * 2, PAUSES.longest);
      patience = Math.min(patience * 2, ATTEMPTS.longest);
    }
  }
}

export function unavailable(failure: unknown): PluginError {
  const reason = failure instanceof Error ? failure.message : String(failure);
  return new PluginError("datastore-unavailable", `Cannot use the datastore: ${reason}`, { cause: failure });
}
