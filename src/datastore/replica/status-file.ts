/** What a replica of the node agent knows, and how old it is: the agent writes it for `node status`. */
import * as v from "valibot";
import type { ReplicaStatus } from "./status.ts";
import { ageOf } from "./status.ts";

const SCHEMA = v.object({
  state: v.picklist(["listing", "in sync", "stale"]),
  /** When it was last confirmed that nothing is missing; while there is no list yet: when the agent started. */
  knownAt: v.pipe(v.string(), v.isoTimestamp()),
  failure: v.optional(v.string()),
});

export type KnownStatus = Readonly<v.InferOutput<typeof SCHEMA>>;

/** In the run directory. */
export const DATASTORE_STATUS_FILE = "datastore-status.json";

/** `clock`: of the status, monotonic, and of the host, at the same moment. */
export function writeDatastoreStatus(
  status: ReplicaStatus,
  clock: { readonly elapsed: number; readonly now: Date },
): string {
  const knownAt = new Date(clock.now.getTime() - ageOf(status, clock.elapsed));
  // The clocks differ a little each time; whoever reads it wants seconds.
  knownAt.setMilliseconds(0);
  const failure = status.state === "in sync" ? undefined : status.failure?.message;
  const known: KnownStatus = { state: status.state, knownAt: knownAt.toISOString(), ...(failure && { failure }) };
  return `${JSON.stringify(known)}\n`;
}

/** `undefined` if the text cannot be read: another version may have written it. */
export function readDatastoreStatus(text: string): KnownStatus | undefined {
  try {
    return v.parse(SCHEMA, JSON.parse(text));
  } catch {
    return undefined;
  }
}
