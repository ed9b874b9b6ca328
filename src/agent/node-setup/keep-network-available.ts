/**
 * Tells the cluster again and again that this node has a network, as long as that is true: pods are scheduled on a node as
 * soon as it is said.
 */
import type { KubeClient } from "../../kube/api.ts";
import { clearNetworkUnavailable } from "./network-available.ts";

/** A cloud provider may set the condition again. */
const AGAIN_MILLISECONDS = 5 * 60_000;
const RETRY_MILLISECONDS = 30_000;
/** How often it is looked whether the routes are set. */
const ROUTED_MILLISECONDS = 1_000;

export interface NetworkAvailableMeans {
  readonly client: Pick<KubeClient, "request">;
  readonly node: string;
  /** Whether this agent routes the pods of the node, and has set the routes. */
  readonly arePodsRouted: () => boolean;
  readonly now: () => Date;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string) => void;
  /** Reports each problem once until it is forgotten. */
  readonly problems: { readonly report: (message: string) => void; readonly forget: () => void };
}

/** Resolves when the signal is aborted. */
export async function keepNetworkAvailable(means: NetworkAvailableMeans, signal: AbortSignal): Promise<void> {
  while (!signal.aborted)
    await means.wait(means.arePodsRouted() ? await clear(means, signal) : ROUTED_MILLISECONDS, signal);
}

/** Returns the time until it is to be done again. */
async function clear(
  { client, node, now, log, problems }: NetworkAvailableMeans,
  signal: AbortSignal,
): Promise<number> {
  try {
    const isChanged = await clearNetworkUnavailable(client, node, { now, signal });
    if (isChanged) log(`Node "${node}" is marked as having a network`);
    problems.forget();
    return AGAIN_MILLISECONDS;
  } catch (failure) {
    if (!signal.aborted) problems.report(failure instanceof Error ? failure.message : String(failure));
    return RETRY_MILLISECONDS;
  }
}
