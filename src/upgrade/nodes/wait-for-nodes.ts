/**
 * Waits until every node has a pod with the present template of the DaemonSet. The orchestrator replaces them, and the tool
 * helps if that takes too long (pace.ts); an update that makes no progress for too long ends with an explanation.
 */
import { PluginError } from "../../errors.ts";
import type { Fields } from "../../kube/objects.ts";
import { FORMER_AGENT_IS_BEHIND } from "../engine/lock-text.ts";
import type { RunCommand, StepSite } from "../engine/step.ts";
import { shortened } from "../engine/wording.ts";
import { fieldsIn } from "../object-fields.ts";
import { isBusy, isUpdated, nodesToLeave, nodesToReplace, rolloutPace } from "./pace.ts";
import { type NodeState, nameOf, nodeStates, type RolloutView } from "./pods.ts";
import { readRollout } from "./read-view.ts";

const POLL_MILLISECONDS = 2_000;

export type RolloutSite = Pick<StepSite, "objects" | "progress" | "now" | "wait" | "signal"> & {
  readonly options: Pick<StepSite["options"], "stallSeconds" | "maxUnavailable" | "nodeSeconds">;
  readonly facts: Pick<StepSite["facts"], "datastore" | "storage">;
};

export interface WaitedFor {
  /** What somebody else is to do first; empty if the template is the one that is waited for. */
  readonly missingTemplate?: (daemonSet: Fields | undefined) => string;
  /** Which one waits; "upgrade apply" unless it is named. */
  readonly command?: RunCommand;
  /** Whether the update may end without nodes that take too long. */
  readonly mayLeaveNodes?: true;
  /**
   * Those of the time when the datastore was locked: others that have no former agent are not waited for. Absent: all are. So
   * they are if none of these is left: nothing else would show that the release works.
   */
  readonly formerNodes?: ReadonlySet<string> | undefined;
  /** Called each time before it looks. */
  readonly onLook?: () => Promise<unknown>;
}

/** What is still to be done; nothing if the update is complete. */
export async function pendingNodes(
  site: Omit<RolloutSite, "progress" | "wait" | "options">,
  path: string,
  isAwaited: (state: NodeState) => boolean = () => true,
): Promise<readonly string[]> {
  const view = await viewOf(site, path);
  if (view === undefined) return [`DaemonSet ${path} does not exist`];
  const unobserved = isObserved(view.daemonSet)
    ? []
    : [`DaemonSet ${nameOf(view.daemonSet)} has not been processed yet`];
  const pending = nodeStates(view).filter((state) => !isUpdated(state) && isAwaited(state));
  return [...unobserved, ...pending.map(describe)];
}

/** Returns the nodes that it went on without. */
export async function waitForNodes(
  site: RolloutSite,
  path: string,
  { missingTemplate = () => "", command = "upgrade apply", mayLeaveNodes, formerNodes, onLook }: WaitedFor = {},
): Promise<readonly NodeState[]> {
  const busySince = new Map<string, number>();
  const known = new Set(formerNodes);
  let told: ReadonlySet<string> = new Set();
  const reached = new Set<string>();
  let awaited: readonly string[] = [];
  let last = "";
  let since = site.now().getTime();
  for (;;) {
    site.signal.throwIfAborted();
    await onLook?.();
    const view = await viewOf(site, path);
    const missing = view === undefined ? `DaemonSet ${path} does not exist` : missingTemplate(view.daemonSet);
    const all = view === undefined ? [] : nodeStates(view);
    for (const { node, state } of all) if (state === "old") known.add(node);
    const mayLeaveNew = formerNodes !== undefined && all.some(({ node }) => known.has(node));
    const [states, added] = divide(all, ({ node }) => !mayLeaveNew || known.has(node));
    const isBegun = missing === "" && view !== undefined && isObserved(view.daemonSet);
    const pace = rolloutPace(site, states.length, view?.daemonSet);
    const limit = mayLeaveNodes ? pace.nodeSeconds : undefined;
    const overdue = overdueNodes(busySince, isBegun ? states : [], { now: site.now(), limit });
    const left = nodesToLeave(states, overdue, pace);
    const pending = states.filter((state) => !isUpdated(state));
    for (const state of pending)
      if (left.has(state.node) && !told.has(state.node)) site.progress(leftText(state, limit));
    told = left;
    if (isBegun && pending.every(({ node }) => left.has(node)))
      return [...pending, ...added.filter((state) => !isUpdated(state))];
    const signature = JSON.stringify([missing, states.map(({ node, state }) => [node, state])]);
    if (signature !== last) {
      site.progress(missing || `${states.length - pending.length} of ${states.length} nodes are updated`);
      last = signature;
    }
    if (isBegun && awaited.length === 0) awaited = states.map(({ node }) => node);
    const before = reached.size;
    const stage = isBegun ? "the update has begun" : missing;
    for (const each of [stage, ...nodesReached(view, awaited, states)]) reached.add(each);
    if (reached.size > before) since = site.now().getTime();
    else if (site.now().getTime() - since >= site.options.stallSeconds * 1_000)
      throw stalled(site.options.stallSeconds, missing === "" ? pending.map(explain) : [missing], command);
    if (isBegun) await replacePods(site, nodesToReplace(states, pace, { left, overdue }));
    await site.wait(POLL_MILLISECONDS);
  }
}

/** Those for which it is so, and the others. */
function divide<Item>(
  items: readonly Item[],
  isSo: (item: Item) => boolean,
): readonly [readonly Item[], readonly Item[]] {
  return [items.filter(isSo), items.filter((item) => !isSo(item))];
}

/**
 * Nodes that are updated to this template or gone, of those that the update began with. What counts as progress counts once:
 * an agent that comes and goes, and nodes that join, would otherwise keep the datastore locked for ever.
 */
function nodesReached(
  view: RolloutView | undefined,
  awaited: readonly string[],
  states: readonly NodeState[],
): readonly string[] {
  const byName = new Map(states.map((state) => [state.node, state]));
  return awaited.flatMap((node) => {
    const state = byName.get(node);
    if (state === undefined) return [`${node} is gone`];
    return isUpdated(state) ? [`${node} has ${view?.revision}`] : [];
  });
}

/** Whose update has begun, or cannot begin, for longer than the limit. `busySince`: is brought up to date. */
function overdueNodes(
  busySince: Map<string, number>,
  states: readonly NodeState[],
  { now, limit }: { readonly now: Date; readonly limit: number | undefined },
): ReadonlySet<string> {
  for (const state of states) {
    if (!isBusy(state)) busySince.delete(state.node);
    else if (!busySince.has(state.node)) busySince.set(state.node, now.getTime());
  }
  if (limit === undefined) return new Set();
  const latest = now.getTime() - limit * 1_000;
  return new Set(
    states.map(({ node }) => node).filter((node) => (busySince.get(node) ?? Number.POSITIVE_INFINITY) <= latest),
  );
}

function leftText(state: NodeState, seconds: number | undefined): string {
  return `${describe(state)}. It is not updated after ${seconds} s: the update goes on without it; ${FORMER_AGENT_IS_BEHIND}`;
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

function describe({ node, why, state }: NodeState): string {
  return `Node ${node}: ${why || (state === "old" ? "its pod is of the earlier release" : state)}`;
}

function explain({ node, why, state }: NodeState): string {
  return describe({ node, state, why: why || (state === "old" ? "waits until another node is done" : why) });
}

function stalled(seconds: number, lines: readonly string[], command: RunCommand): PluginError {
  const message = `The rolling update of the node agents has made no progress for ${seconds} s: ${shortened(lines).join("; ")}`;
  const orBack = command === "upgrade apply" ? "; or go back with upgrade rollback" : "";
  return new PluginError("not-ready", message, {
    details: `remove the cause, or delete the Node if it does not come back, and run ${command} again${orBack}`,
  });
}

/** One that is another pod by now was replaced by the orchestrator. */
async function replacePods({ objects, progress }: RolloutSite, next: readonly NodeState[]): Promise<void> {
  for (const { node, pod } of next) {
    if (pod === undefined) continue;
    const { uid, namespace } = fieldsIn(pod, "metadata");
    progress(`Node ${node}: pod ${nameOf(pod)} is deleted, so that its next one starts`);
    await objects
      .remove(`/api/v1/namespaces/${namespace}/pods/${nameOf(pod)}`, { preconditions: { uid } })
      .catch((failure: unknown) => {
        if (!(failure instanceof PluginError) || failure.kind !== "resource-changed") throw failure;
      });
  }
}
