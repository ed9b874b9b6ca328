/**
 * Waits until every node has a pod with the present template of the DaemonSet. The orchestrator replaces them; an update that
 * makes no progress for too long ends with an explanation.
 */
import { PluginError } from "../../errors.ts";
import type { Fields } from "../../kube/objects.ts";
import { fieldsIn } from "../manifest/workload.ts";
import type { StepSite } from "../step.ts";
import { type NodeState, nameOf, nodeStates, type RolloutView } from "./pods.ts";
import { readRollout } from "./read-view.ts";

const POLL_MILLISECONDS = 2_000;

export type RolloutSite = Pick<StepSite, "objects" | "progress" | "now" | "wait" | "signal"> & {
  readonly options: Pick<StepSite["options"], "stallSeconds">;
  readonly facts: Pick<StepSite["facts"], "datastore">;
};

/** What is still to be done, one line for each node; nothing if the update is complete. */
export async function pendingNodes(
  site: Omit<RolloutSite, "progress" | "wait" | "options">,
  path: string,
): Promise<readonly string[]> {
  const view = await viewOf(site, path);
  if (view === undefined) return [`DaemonSet ${path} does not exist`];
  const unobserved = isObserved(view.daemonSet)
    ? []
    : [`DaemonSet ${nameOf(view.daemonSet)} has not been processed yet`];
  return [...unobserved, ...nodeStates(view).filter(isPending).map(describe)];
}

/** `isTemplateNew`: whether the template is the one that is waited for; what somebody else is to do first. */
export async function waitForNodes(
  site: RolloutSite,
  path: string,
  missingTemplate: (daemonSet: Fields | undefined) => string = () => "",
): Promise<void> {
  let last = "";
  let since = site.now().getTime();
  for (;;) {
    site.signal.throwIfAborted();
    const view = await viewOf(site, path);
    const missing = view === undefined ? `DaemonSet ${path} does not exist` : missingTemplate(view.daemonSet);
    const states = view === undefined ? [] : nodeStates(view);
    const pending = states.filter(isPending);
    const isComplete = missing === "" && view !== undefined && isObserved(view.daemonSet) && pending.length === 0;
    if (isComplete) return;
    const signature = JSON.stringify([missing, states.map(({ node, state }) => [node, state])]);
    if (signature !== last) {
      site.progress(missing || `${states.length - pending.length} of ${states.length} nodes are updated`);
      last = signature;
      since = site.now().getTime();
    } else if (site.now().getTime() - since >= site.options.stallSeconds * 1_000) {
      throw stalled(site.options.stallSeconds, missing === "" ? pending.map(explain) : [missing]);
    }
    if (missing === "" && view !== undefined) await replaceNext(site, view, states);
    await site.wait(POLL_MILLISECONDS);
  }
}

function viewOf(site: Pick<RolloutSite, "objects" | "now" | "facts">, path: string): Promise<RolloutView | undefined> {
  return readRollout(site.objects, { path, isPartlyReadyAccepted: site.facts.datastore === "etcd", now: site.now() });
}

function isObserved({ metadata, status }: Fields): boolean {
  return (
    Number(fieldsIn({ status }, "status")["observedGeneration"] ?? 0) >=
    Number(fieldsIn({ metadata }, "metadata")["generation"] ?? 0)
  );
}

function isPending({ state }: NodeState): boolean {
  return state !== "ready" && state !== "accepted";
}

function describe({ node, why, state }: NodeState): string {
  return `Node ${node}: ${why || (state === "old" ? "its pod is of the earlier release" : state)}`;
}

function explain({ node, why, state }: NodeState): string {
  return describe({ node, state, why: why || (state === "old" ? "waits until another node is done" : why) });
}

function stalled(seconds: number, lines: readonly string[]): PluginError {
  const message = `The rolling update of the node agents has made no progress for ${seconds} s: ${lines.join("; ")}`;
  return new PluginError("not-ready", message, {
    details: "remove the cause and run upgrade apply again, or go back with upgrade rollback",
  });
}

/**
 * The orchestrator does not continue while a pod is not ready. If that is as ready as it becomes, the next pod is deleted
 * here, one at a time: not before the pod that was deleted last is gone and its successor runs.
 */
async function replaceNext(
  { objects, progress }: RolloutSite,
  { daemonSet, pods }: RolloutView,
  states: readonly NodeState[],
): Promise<void> {
  const isEnding = pods.some((pod) => fieldsIn(pod, "metadata")["deletionTimestamp"] !== undefined);
  const isBlocked =
    !isEnding &&
    states.some(({ state }) => state === "accepted") &&
    states.every(({ state }) => state !== "starting" && state !== "absent");
  const next = states.find(({ state, why }) => state === "old" && why === "");
  if (!isBlocked || next?.pod === undefined || fieldsIn(daemonSet, "spec", "updateStrategy")["type"] === "OnDelete")
    return;
  const { uid, namespace } = fieldsIn(next.pod, "metadata");
  progress(`Node ${next.node}: pod ${nameOf(next.pod)} is deleted, because the others are as ready as they become`);
  await objects.remove(`/api/v1/namespaces/${namespace}/pods/${nameOf(next.pod)}`, { preconditions: { uid } });
}
