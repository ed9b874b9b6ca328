/**
 * Follows the staged policies while flows are recorded. Apart from what policy is computed from: a cluster that does not have these
 * kinds, or does not let the agent read them, is protected all the same, and its flows do not say what they would decide.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { type ReplicaSnapshot, startReplica } from "../../datastore/replica.ts";
import { STAGED_KINDS, type StagedValues } from "../../policy/inputs.ts";
import type { FollowedNetwork } from "../network/followed-network.ts";

type Means = Pick<FollowedNetwork, "means" | "replica" | "store"> & { readonly report: (message: string) => void };

export interface StagedUpdate {
  readonly snapshot: ReplicaSnapshot<StagedValues>;
  readonly changes: { readonly [Kind in keyof StagedValues]: readonly RecordChange<StagedValues[Kind]>[] };
}

/** Until the signal is aborted. */
export async function followStaged(
  { means, replica, store, report }: Means,
  take: (update: StagedUpdate) => void,
  stop: AbortSignal,
): Promise<void> {
  const { elapsed, wait, random } = means.clock;
  const ending = new AbortController();
  const signal = AbortSignal.any([stop, ending.signal]);
  const staged = startReplica(store, STAGED_KINDS, {
    ...{ signal, random, peers: () => replica.part(["nodes"]).snapshot?.nodes.size ?? 0 },
    ...{ clock: { now: elapsed, wait }, watches: store.isOrchestratorApi ? "per kind" : "together" },
    report: ({ message }) => report(`Cannot read staged policies: ${message}`),
  });
  try {
    for await (const update of staged.updates(signal)) take(update);
  } finally {
    ending.abort();
    await staged.ended;
  }
}
