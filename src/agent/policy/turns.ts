/**
 * Large policies wait behind the changes of others, so that a tenant's change does not wait for the kernel's work on them:
 *
 *   update ──▶ without the policies of namespaces that change many ──▶ at once
 *          └─▶ these wait for a turn, one namespace after another: it comes when there is no update for as long as the last
 *              turn took, or a second after the last turn
 *
 * Only NetworkPolicies wait, and those of one namespace take effect together: nobody but the pods of the namespace is
 * judged by them. Whatever else changes does so at once; if it affects the pods of a namespace that waits, its policies take
 * effect in the same update (`takeAffected`). So its pods are always judged as the datastore said at one moment.
 * What administrators write for the whole cluster lets nothing wait, nor does anything while there is no table.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { parseKey } from "../../model/keys.ts";
import type { NetworkPolicy } from "../../model/network-policy.ts";
import type { AffectedNamespaces } from "../../policy/compile/compiler.ts";
import type { PolicyChanges, PolicyUpdate } from "../../policy/inputs.ts";
import { sizeOfPolicy, type WrittenSize } from "../../policy/policy-size.ts";
import type { AgentClock } from "../means.ts";

type PolicyChange = RecordChange<NetworkPolicy>;

/** Of one namespace: whether these changes are so many that they wait. */
export type IsLarge = (namespace: string, changes: readonly PolicyChange[]) => boolean;

/** If the policies that change in a namespace have more than this, before and after together, they wait. */
export const LARGE: WrittenSize = { lists: 50, rules: 1_000 };

export function isLarge(
  changes: readonly PolicyChange[],
  reachesLimit: (size: WrittenSize) => boolean = () => false,
): boolean {
  let [lists, rules] = [0, 0];
  for (const change of changes) {
    for (const policy of [change.previous, change.kind === "put" ? change.value : undefined]) {
      if (policy === undefined) continue;
      // Counting so many takes time, which is better spent in their turn.
      const { ingress = [], egress = [] } = policy.spec;
      if (ingress.length + egress.length > LARGE.rules) return true;
      const size = sizeOfPolicy(policy.spec);
      lists += size.lists.size;
      rules += size.rules;
    }
  }
  // A small change can make a large policy deny, or not deny any more.
  return lists > LARGE.lists || rules > LARGE.rules || reachesLimit({ lists, rules });
}

/** The decision: which policies wait, and which of them take effect next. */
export class WaitingPolicies {
  /** By key, each with its last change. The namespace that has waited longest first. */
  private readonly namespaces = new Map<string, Map<string, PolicyChange>>();

  constructor(private readonly isLarge: IsLarge) {}

  get isEmpty(): boolean {
    return this.namespaces.size === 0;
  }

  /** Returns what takes effect at once; the rest waits. */
  divide(changes: PolicyChanges): PolicyChanges {
    const ofNamespaces = Map.groupBy(changes.networkPolicies, ({ key }) => namespaceIn(key));
    for (const [namespace, own] of ofNamespaces) {
      if (namespace === undefined) continue;
      const waiting = this.namespaces.get(namespace);
      if (waiting === undefined && !this.isLarge(namespace, own)) continue;
      this.namespaces.set(namespace, merged(waiting, own));
      ofNamespaces.delete(namespace);
    }
    const networkPolicies = [...ofNamespaces.values()].flat();
    if (!CLUSTER_WIDE.some((kind) => changes[kind].length > 0)) return { ...changes, networkPolicies };
    return {
      ...changes,
      networkPolicies: [...networkPolicies, ...(this.takeAffected(() => "all")?.networkPolicies ?? [])],
    };
  }

  /** What waits for the namespace that has waited longest. */
  takeNext(): PolicyChanges | undefined {
    const [next] = this.namespaces.keys();
    return next === undefined ? undefined : this.take([next]);
  }

  /** What waits for these namespaces. */
  takeAffected(affected: () => AffectedNamespaces): PolicyChanges | undefined {
    if (this.isEmpty) return undefined;
    const wanted = affected();
    return this.take([...this.namespaces.keys()].filter((namespace) => wanted === "all" || wanted.has(namespace)));
  }

  private take(namespaces: readonly string[]): PolicyChanges | undefined {
    const networkPolicies = namespaces.flatMap((each) => [...(this.namespaces.get(each)?.values() ?? [])]);
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
  let pause = { since: elapsed(), milliseconds: LEAST_PAUSE_MILLISECONDS };
  const left = () => Math.max(0, pause.since + LONGEST_PAUSE_MILLISECONDS - elapsed());
  try {
    while (true) {
      // Only asked for when it is needed: what comes meanwhile is merged into it.
      asked ??= askFor(iterator);
      if (waiting.isEmpty) {
        await asked.update;
        pause = { since: elapsed(), milliseconds: LEAST_PAUSE_MILLISECONDS };
      } else await comesWithin(asked, Math.min(pause.milliseconds, left()), wait);
      if (asked.hasCome) {
        const next = await asked.update;
        asked = undefined;
        if (next.done === true) return;
        ({ snapshot } = next.value);
        const changes = hasTable() ? waiting.divide(next.value.changes) : next.value.changes;
        if (changes === next.value.changes || hasAny(changes)) yield { snapshot, changes };
        if (left() > 0) continue;
      }
      const changes = waiting.takeNext();
      if (changes === undefined || snapshot === undefined) continue;
      const began = elapsed();
      yield { snapshot, changes };
      pause = { since: elapsed(), milliseconds: Math.max(LEAST_PAUSE_MILLISECONDS, elapsed() - began) };
    }
  } finally {
    // Not awaited: an update that was asked for may never come.
    void iterator.return?.();
  }
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
