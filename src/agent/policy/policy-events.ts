/**
 * Tells those who write policies that one is not carried out, by an Event in its namespace (`kubectl get events`), and
 * again about every hour while it lasts.
 *
 * Every node with pods of the policy knows it. The name of the event is the same on all of them, and each waits for a
 * random time first, the longer the more nodes there are: the API refuses all but the first one, until it forgets events,
 * after an hour usually. A node sends one a minute at most, for the namespaces in turn: tenants could make up any number.
 */

import { API_VERSION } from "../../identity.ts";
import type { OnceEach } from "../../log/once-each.ts";
import { nameInKey, parseKey } from "../../model/keys.ts";
import { ORCHESTRATOR_POLICY } from "../../model/orchestrator-policy.ts";
import { LONGEST_MILLISECONDS } from "../../timers.ts";
import { Wakeup } from "../../wakeup.ts";
import type { AgentClock } from "../means.ts";
import { type EventClient, sendEvent, warningEvent } from "../warning-events.ts";

/** A policy of a namespace that applies to pods of this node. */
export interface ClosedPolicy {
  readonly key: string;
  readonly reason: string;
}

export interface PolicyEventMeans {
  readonly openClient: () => Promise<EventClient>;
  readonly clock: AgentClock;
  readonly node: string;
  readonly reports: OnceEach;
}

/** Before an event, so that not all nodes send it at once: at least, and for each node of the cluster. */
const SPREAD_MILLISECONDS = 10_000;
const SPREAD_OF_NODE_MILLISECONDS = 20;
/** After an event. */
const PACE_MILLISECONDS = 60_000;
/**
 * The API forgets events after an hour and up to a minute more, unless it is configured otherwise. It would refuse one
 * that comes before, and the next one would come an hour later.
 */
const REPEAT_MILLISECONDS = 65 * 60_000;
/** Their turn is known. */
const MOST_NAMESPACES = 1_000;

export class PolicyEvents {
  private closed: readonly ClosedPolicy[] = [];
  private nodes = 0;
  /** By key and reason: when those that are closed were told. */
  private told = new Map<string, number>();
  /** Those that had an event, the last one last. */
  private readonly servedNamespaces = new Set<string>();
  private readonly wakeup = new Wakeup();

  constructor(private readonly means: PolicyEventMeans) {}

  /** All that are closed now, and how many nodes the cluster has. */
  update(closed: readonly ClosedPolicy[], nodes: number): void {
    const wanted = new Set(closed.map(identityOf));
    this.told = new Map([...this.told].filter(([identity]) => wanted.has(identity)));
    this.closed = closed;
    this.nodes = nodes;
    if (this.untilDue() === 0) this.wakeup.notify();
  }

  /** Resolves when the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { wait, random, elapsed } = this.means.clock;
    while (!signal.aborted) {
      const pause = this.untilDue();
      if (pause > 0) {
        await wait(pause, AbortSignal.any([signal, this.wakeup.signal]));
        this.wakeup.reset();
        continue;
      }
      await wait(random() * Math.max(SPREAD_MILLISECONDS, this.nodes * SPREAD_OF_NODE_MILLISECONDS), signal);
      const next = this.nextPolicy();
      if (signal.aborted || next === undefined) continue;
      this.told.set(identityOf(next), elapsed());
      const outcome = await this.send(next, signal);
      await wait(PACE_MILLISECONDS, signal);
      if (outcome === "failed") this.told.delete(identityOf(next));
    }
  }

  /** Milliseconds until a policy is to be told. */
  private untilDue(): number {
    return this.closed.reduce((least, each) => Math.min(least, this.untilTold(each)), LONGEST_MILLISECONDS);
  }

  private untilTold(policy: ClosedPolicy): number {
    const toldAt = this.told.get(identityOf(policy));
    return toldAt === undefined ? 0 : Math.max(0, toldAt + REPEAT_MILLISECONDS - this.means.clock.elapsed());
  }

  /** Of the namespace that has waited longest for an event. */
  private nextPolicy(): ClosedPolicy | undefined {
    const order = [...this.servedNamespaces];
    let [best, bestPlace] = [undefined as ClosedPolicy | undefined, Number.POSITIVE_INFINITY];
    for (const each of this.closed) {
      if (this.untilTold(each) > 0) continue;
      const place = order.indexOf(namespaceOf(each));
      if (place < bestPlace) [best, bestPlace] = [each, place];
    }
    if (best === undefined) return undefined;
    const namespace = namespaceOf(best);
    this.servedNamespaces.delete(namespace);
    this.servedNamespaces.add(namespace);
    for (const oldest of this.servedNamespaces) {
      if (this.servedNamespaces.size <= MOST_NAMESPACES) break;
      this.servedNamespaces.delete(oldest);
    }
    return best;
  }

  private async send(policy: ClosedPolicy, signal: AbortSignal): Promise<"sent" | "failed"> {
    const { openClient, clock, node, reports } = this.means;
    const failure = await sendEvent(openClient, eventOf(policy, { node, now: clock.now() }), signal);
    if (failure === undefined) reports.forget();
    else if (!signal.aborted) reports.report(`Cannot write events about policies: ${failure}`);
    return failure === undefined ? "sent" : "failed";
  }
}

/** Another reason is another event. */
function identityOf({ key, reason }: ClosedPolicy): string {
  return `${key}\n${reason}`;
}

function namespaceOf({ key }: ClosedPolicy): string {
  const parts = parseKey(key);
  return (parts?.kind === "resource" ? parts.namespace : undefined) ?? "default";
}

/** Pure. */
export function eventOf(policy: ClosedPolicy, origin: { readonly node: string; readonly now: Date }) {
  const name = nameInKey(policy.key);
  const isOfOrchestrator = name.startsWith(ORCHESTRATOR_POLICY);
  const about = {
    apiVersion: isOfOrchestrator ? "networking.k8s.io/v1" : API_VERSION,
    kind: "NetworkPolicy",
    namespace: namespaceOf(policy),
    name: isOfOrchestrator ? name.slice(ORCHESTRATOR_POLICY.length) : name,
  };
  const message = `It denies more than it says: ${policy.reason}`;
  const warning = { topic: "policy", distinction: identityOf(policy), about, reason: "PolicyNotCarriedOut", message };
  return warningEvent(warning, origin);
}
