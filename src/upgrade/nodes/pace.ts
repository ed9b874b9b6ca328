/**
 * How many nodes are updated at once, how long that takes, and which nodes the update goes on without. Pure.
 *
 * The orchestrator replaces as many pods at once as the DaemonSet allows, usually one, and stops behind a node that does not
 * come back. While the datastore is locked that is too slow: the tool deletes further pods itself, up to a limit, once one
 * node shows that the new release works.
 */
import type { Fields } from "../../kube/objects.ts";
import { SHARE_OF_NODES } from "../../model/installation/spec.ts";
import type { Facts } from "../engine/facts.ts";
import type { UpgradeOptions } from "../engine/options.ts";
import { fieldsIn } from "../object-fields.ts";
import type { NodeState } from "./pods.ts";

/** An estimate, with an image that has to be pulled. */
export const SECONDS_PER_NODE = 20;
/** Of the nodes, while the datastore is locked. */
const LOCKED_SHARE = "10%";
const NODE_SECONDS = 300;

export interface Pace {
  /** So many nodes may be without a working agent because of the update. */
  readonly atOnce: number;
  /** The tool deletes pods; otherwise only the orchestrator does. */
  readonly isForced: boolean;
  /** A node whose update takes longer is not waited for; `undefined`: each is. */
  readonly nodeSeconds: number | undefined;
}

/** `count`: of the nodes. `daemonSet`: absent if it is not known. */
export function rolloutPace(
  { facts, options }: { readonly facts: Pick<Facts, "storage">; readonly options: PaceOptions },
  count: number,
  daemonSet: Fields | undefined,
): Pace {
  const strategy = fieldsIn(daemonSet ?? {}, "spec", "updateStrategy");
  const own = nodesOf(fieldsIn(strategy, "rollingUpdate")["maxUnavailable"], count) ?? 1;
  const isLocked = facts.storage === "former";
  const wanted = nodesOf(options.maxUnavailable ?? (isLocked ? LOCKED_SHARE : undefined), count);
  // With OnDelete a person wants to choose each pod.
  if (strategy["type"] === "OnDelete") return { atOnce: 1, isForced: false, nodeSeconds: undefined };
  return {
    atOnce: Math.max(own, wanted ?? 1),
    isForced: wanted !== undefined,
    nodeSeconds: isLocked ? nodeSecondsOf(options) : undefined,
  };
}

type PaceOptions = Pick<UpgradeOptions, "maxUnavailable" | "nodeSeconds" | "stallSeconds">;

/** Shorter than the time after which the update stops, or it would stop first. */
function nodeSecondsOf({ nodeSeconds, stallSeconds }: PaceOptions): number {
  return nodeSeconds ?? Math.min(NODE_SECONDS, stallSeconds / 2);
}

/** A share is rounded up, as the orchestrator does it. */
function nodesOf(value: unknown, count: number): number | undefined {
  if (typeof value === "number") return Math.max(1, value);
  if (typeof value !== "string" || !SHARE_OF_NODES.test(value)) return undefined;
  return Math.max(1, Math.ceil((count * Number.parseInt(value, 10)) / 100));
}

/** The first node is updated alone. */
export function rolloutSeconds(count: number, { atOnce }: Pick<Pace, "atOnce">): number {
  const rounds = 1 + Math.ceil(Math.max(0, count - 1) / atOnce);
  return rounds * SECONDS_PER_NODE;
}

/**
 * Of the nodes whose update takes too long, those that the update goes on without. None if there are more of them than are
 * updated, or more than may be missing, not counting those that are down: then the release is to blame, and the way back must
 * stay open.
 */
export function nodesToLeave(
  states: readonly NodeState[],
  overdue: ReadonlySet<string>,
  { atOnce }: Pick<Pace, "atOnce">,
): ReadonlySet<string> {
  const late = states.filter((state) => !isUpdated(state) && overdue.has(state.node));
  const isTooMany = late.length > states.filter(isUpdated).length || late.filter(isBlamed).length > atOnce;
  return new Set(isTooMany ? [] : late.map(({ node }) => node));
}

/**
 * Nodes whose pods the tool has to delete now. The orchestrator chooses the first one; if that does not come back, another
 * one has to show that the release works.
 */
export function nodesToReplace(
  states: readonly NodeState[],
  { atOnce, isForced }: Pace,
  { left, overdue }: { readonly left: ReadonlySet<string>; readonly overdue: ReadonlySet<string> },
): readonly NodeState[] {
  const isProven = states.some(isUpdated);
  // On etcd: the orchestrator waits for pods that are as ready as they become.
  const isBlocked = states.some(({ state }) => state === "accepted");
  const late = states.filter(({ node }) => overdue.has(node));
  const isTurnOfAnother = late.length > 0 && late.filter(isBlamed).length <= atOnce;
  if (isProven ? !(isForced || isBlocked) : !(isForced && isTurnOfAnother)) return [];
  const isExcused = (state: NodeState) =>
    isProven ? left.has(state.node) || (overdue.has(state.node) && !isBlamed(state)) : overdue.has(state.node);
  const busy = states.filter((each) => isBusy(each) && !isExcused(each)).length;
  const limit = isProven && isForced ? atOnce : 1;
  return states.filter(isWaiting).slice(0, Math.max(0, limit - busy));
}

/** That it is not updated may be because of the release. */
function isBlamed({ isDown }: NodeState): boolean {
  return isDown !== true;
}

export function isUpdated({ state }: NodeState): boolean {
  return state === "ready" || state === "accepted";
}

/** Its update has begun, or cannot begin. */
export function isBusy(state: NodeState): boolean {
  return !isUpdated(state) && !isWaiting(state);
}

/** For its turn. */
function isWaiting({ state, why }: NodeState): boolean {
  return state === "old" && why === "";
}
