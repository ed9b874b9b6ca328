/**
 * Large policies wait behind the changes of others, so that a tenant's change does not wait for the kernel's work on them:
 *
 *   update ──▶ without the policies of namespaces that change many ──▶ at once
 *          └─▶ these wait for a turn, one namespace after another, alternately the cheapest and the one that has waited
 *              longest: it comes when there is no update for as long as the last turn took, or a second after it, or
 *              after the first update since then that took others along
 *
 * Only NetworkPolicies wait, and those of one namespace take effect together: nobody but the pods of the namespace is
 * judged by them. Whatever else changes does so at once; if it affects the pods of a namespace that waits, its policies take
 * effect in the same update (`takeAffected`). So its pods are always judged as the datastore said at one moment.
 * What administrators write for the whole cluster lets nothing wait, nor does anything while there is no table.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { parseKey } from "../../model/keys.ts";
import type { NetworkPolicy, NetworkPolicySpec } from "../../model/network-policy.ts";
import { typesOf } from "../../model/policy-spec.ts";
import type { AffectedNamespaces } from "../../policy/compile/compiler.ts";
import type { PolicyChanges, PolicyUpdate } from "../../policy/inputs.ts";
import { sizeOfPolicy, type WrittenSize } from "../../policy/policy-size.ts";
import type { AgentClock } from "../means.ts";
import type { WaitingFacts } from "./facts.ts";

type PolicyChange = RecordChange<NetworkPolicy>;

/**
 * Of one namespace: what these changes cost, in shares of the largest that takes effect at once. More than 1 waits.
 */
export type CostOf = (namespace: string, changes: readonly PolicyChange[]) => number;

/** If what differs in the policies of a namespace is more than this, they wait. */
export const LARGE: WrittenSize = { lists: 100, rules: 4_000 };

/** What a namespace's policies cost depends on how they are enforced at the moment. */
export interface EnforcedPolicies {
  /** So many lists and rules more can make other policies of the namespace deny, or not deny any more. */
  readonly reachesLimit: (size: WrittenSize) => boolean;
  /** Not if the policy denies because of a limit or another problem, before the change or after it. */
  readonly isCarriedOut: (change: PolicyChange) => boolean;
}

/** Lists that stay keep their sets. The rules of a policy are written again together. */
export function costOfChanges(
  changes: readonly PolicyChange[],
  { reachesLimit, isCarriedOut }: EnforcedPolicies,
): number {
  const lists = new Set<string>();
  let rules = 0;
  for (const change of changes) {
    const before = change.previous?.spec;
    const after = change.kind === "put" ? change.value.spec : undefined;
    const specs = [before, after].filter((spec) => spec !== undefined);
    // Counting so many takes time, which is better spent in their turn.
    if (specs.some(({ ingress = [], egress = [] }) => ingress.length + egress.length > LARGE.rules)) return UNCOUNTED;
    const isInPlace = before !== undefined && after !== undefined && isSameButRules(before, after);
    const keepsSets = isInPlace && isCarriedOut(change);
    if (keepsSets && Bun.deepEquals(before, after)) continue;
    const [former = NO_LISTS, next = NO_LISTS] = specs.map((spec) => sizeOfPolicy(spec).lists);
    for (const list of keepsSets ? former.symmetricDifference(next) : former.union(next)) lists.add(list);
    for (const spec of specs) rules += sizeOfPolicy(spec).rules;
  }
  if (reachesLimit({ lists: lists.size, rules })) return UNCOUNTED;
  return Math.max(lists.size / LARGE.lists, rules / LARGE.rules);
}

const UNCOUNTED = Number.POSITIVE_INFINITY;
const NO_LISTS: ReadonlySet<string> = new Set();

/** Otherwise it may be evaluated for other pods than before, which need all of its sets. */
function isSameButRules(before: NetworkPolicySpec, after: NetworkPolicySpec): boolean {
  const shape = ({ ingress: _, egress: __, ...rest }: NetworkPolicySpec) => rest;
  return Bun.deepEquals([shape(before), typesOf(before)], [shape(after), typesOf(after)]);
}

interface WaitingNamespace {
  /** By key, each with its last change. */
  readonly changes: ReadonlyMap<string, PolicyChange>;
  readonly cost: number;
  /** Monotonic milliseconds. */
  readonly since: number;
}

/** The decision: which policies wait, and which of them take effect next. */
export class WaitingPolicies {
  /** The namespace that has waited longest first. */
  private readonly namespaces = new Map<string, WaitingNamespace>();
  private order: "cheapest" | "longest waiting" = "cheapest";

  constructor(
    private readonly costOf: CostOf,
    private readonly elapsed: AgentClock["elapsed"],
  ) {}

  get isEmpty(): boolean {
    return this.count === 0;
  }

  /** Of namespaces. */
  get count(): number {
    return this.namespaces.size;
  }

  /** By key: what the kernel has of the policies that wait, `undefined` if it has none. */
  get former(): ReadonlyMap<string, NetworkPolicy | undefined> {
    const all = this.namespaces.values().flatMap(({ changes }) => changes.values());
    return new Map(all.map(({ key, previous }) => [key, previous] as const));
  }

  get facts(): WaitingFacts {
    const [longest] = this.namespaces.values();
    return { namespaces: this.count, milliseconds: longest === undefined ? 0 : this.elapsed() - longest.since };
  }

  /** Returns what takes effect at once; the rest waits. */
  divide(changes: PolicyChanges): PolicyChanges {
    const ofNamespaces = Map.groupBy(changes.networkPolicies, ({ key }) => namespaceIn(key));
    for (const [namespace, own] of ofNamespaces) {
      if (namespace === undefined) continue;
      const waiting = this.namespaces.get(namespace);
      const all = merged(waiting?.changes, own);
      const cost = this.costOf(namespace, [...all.values()]);
      if (waiting === undefined && cost <= 1) continue;
      this.namespaces.set(namespace, { changes: all, cost, since: waiting?.since ?? this.elapsed() });
      ofNamespaces.delete(namespace);
    }
    const networkPolicies = [...ofNamespaces.values()].flat();
    if (!CLUSTER_WIDE.some((kind) => changes[kind].length > 0)) return { ...changes, networkPolicies };
    return {
      ...changes,
      networkPolicies: [...networkPolicies, ...(this.takeAffected(() => "all")?.networkPolicies ?? [])],
    };
  }

  /**
   * What waits for one namespace: alternately the one that costs least, so that it does not wait for all others, and the one
   * that has waited longest, so that each has its turn after twice as many as had waited before it.
   */
  takeNext(): PolicyChanges | undefined {
    const all = [...this.namespaces];
    const [longest] = all;
    if (longest === undefined) return undefined;
    const cheapest = all.reduce((least, each) => (each[1].cost < least[1].cost ? each : least), longest);
    const [next] = this.order === "cheapest" ? cheapest : longest;
    this.order = this.order === "cheapest" ? "longest waiting" : "cheapest";
    return this.take([next]);
  }

  /** What waits for these namespaces. */
  takeAffected(affected: () => AffectedNamespaces): PolicyChanges | undefined {
    if (this.isEmpty) return undefined;
    const wanted = affected();
    return this.take([...this.namespaces.keys()].filter((namespace) => wanted === "all" || wanted.has(namespace)));
  }

  private take(namespaces: readonly string[]): PolicyChanges | undefined {
    const networkPolicies = namespaces.flatMap((each) => [...(this.namespaces.get(each)?.changes.values() ?? [])]);
    for (const each of namespaces) this.namespaces.delete(each);
    return networkPolicies.length === 0 ? undefined : { ...NO_CHANGES, networkPolicies };
  }
}

/** A policy that had waited keeps what it was before. */
function merged(waiting: ReadonlyMap<string, PolicyChange> | undefined, own: readonly PolicyChange[]) {
  const all = new Map(waiting);
  for (const change of own) all.set(change.key, { ...change, previous: (all.get(change.key) ?? change).previous });
  return all;
}

const CLUSTER_WIDE = ["globalNetworkPolicies", "hostEndpoints", "tiers", "configurations"] as const;

const NO_CHANGES: PolicyChanges = {
  endpoints: [],
  containerLabels: [],
  hostEndpoints: [],
  profiles: [],
  networkPolicies: [],
  globalNetworkPolicies: [],
  networkSets: [],
  globalNetworkSets: [],
  tiers: [],
  configurations: [],
  serviceEndpoints: [],
};

/** Before a turn, for others: what was written together does not arrive at once. */
const LEAST_PAUSE_MILLISECONDS = 100;
/** A turn comes then, however many updates there are. */
const LONGEST_PAUSE_MILLISECONDS = 1_000;

export interface TurnMeans extends Pick<AgentClock, "elapsed" | "wait"> {
  readonly waiting: WaitingPolicies;
  readonly hasTable: () => boolean;
}

/** What takes effect, one update after another. Ends with the updates; what still waits then is left out. */
export async function* inTurns(
  updates: AsyncIterable<PolicyUpdate>,
  { waiting, hasTable, elapsed, wait }: TurnMeans,
): AsyncGenerator<PolicyUpdate, void> {
  const iterator = updates[Symbol.asyncIterator]();
  let asked: AskedUpdate | undefined;
  let snapshot: PolicyUpdate["snapshot"] | undefined;
  const pauseAfter = (what: "turn" | "joined", began = elapsed()) => ({
    ...{ what, since: elapsed() },
    milliseconds: Math.max(LEAST_PAUSE_MILLISECONDS, elapsed() - began),
  });
  let pause = pauseAfter("turn");
  const left = () => Math.max(0, pause.since + LONGEST_PAUSE_MILLISECONDS - elapsed());
  try {
    while (true) {
      // Only asked for when it is needed: what comes meanwhile is merged into it.
      asked ??= askFor(iterator);
      if (waiting.isEmpty) {
        await asked.update;
        pause = pauseAfter("turn");
      } else await comesWithin(asked, Math.min(pause.milliseconds, left()), wait);
      if (asked.hasCome) {
        const next = await asked.update;
        asked = undefined;
        if (next.done === true) return;
        ({ snapshot } = next.value);
        const changes = hasTable() ? waiting.divide(next.value.changes) : next.value.changes;
        const [began, count] = [elapsed(), waiting.count];
        if (changes === next.value.changes || hasAny(changes)) yield { snapshot, changes };
        // As after a turn; but only once, so that those that join do not keep others waiting.
        if (waiting.count < count && pause.what === "turn") pause = pauseAfter("joined", began);
        if (left() > 0) continue;
      }
      const changes = waiting.takeNext();
      if (changes === undefined || snapshot === undefined) continue;
      const began = elapsed();
      yield { snapshot, changes };
      pause = pauseAfter("turn", began);
    }
  } finally {
    // Not awaited: an update that was asked for may never come.
    void iterator.return?.();
  }
}

/** Waiting for longer than this is worth a line in the log. */
const LONG_MILLISECONDS = 10_000;

/** Called again and again: reports that policies wait for long, and not again until none does. */
export function reportLongWaits(report: (message: string) => void): (facts: WaitingFacts) => void {
  let isReported = false;
  return ({ namespaces, milliseconds }) => {
    const isLong = milliseconds > LONG_MILLISECONDS;
    const seconds = Math.round(milliseconds / 1_000);
    if (isLong && !isReported)
      report(`Large changes of policies wait behind others, the first for ${seconds} s; namespaces: ${namespaces}`);
    isReported = isLong;
  };
}

interface AskedUpdate {
  readonly update: Promise<IteratorResult<PolicyUpdate>>;
  hasCome: boolean;
}

function askFor(iterator: AsyncIterator<PolicyUpdate>): AskedUpdate {
  const asked = { update: iterator.next(), hasCome: false };
  const come = () => {
    asked.hasCome = true;
  };
  asked.update.then(come, come);
  return asked;
}

/** Resolves when the update has come, or when the time is over. */
async function comesWithin(asked: AskedUpdate, milliseconds: number, wait: AgentClock["wait"]): Promise<void> {
  if (asked.hasCome) return;
  const coming = new AbortController();
  const come = () => coming.abort();
  asked.update.then(come, come);
  await wait(milliseconds, coming.signal);
}

function hasAny(changes: PolicyChanges): boolean {
  return Object.values(changes).some((each) => each.length > 0);
}

function namespaceIn(key: string): string | undefined {
  const parts = parseKey(key);
  return parts?.kind === "resource" ? parts.namespace : undefined;
}
