/** How current a replica is, for health checks and metrics. */
import type { PluginError } from "../../errors.ts";

export type ReplicaStatus =
  /** No snapshot yet. `failure`: the error of the last attempt. */
  | { readonly state: "listing"; readonly since: number; readonly failure?: PluginError | undefined }
  /** A watch is open. `heardAt`: when it last delivered something; an idle store may send nothing for minutes. Infinite if there is nothing to hear. */
  | { readonly state: "in sync"; readonly since: number; readonly heardAt: number }
  /** No watch has been open since `since`; the snapshot is of `heardAt`. */
  | {
      readonly state: "stale";
      readonly since: number;
      readonly heardAt: number;
      readonly failure?: PluginError | undefined;
    };

/** How old what the replica knows may be: while nothing changes, not what it knows is old, but when it was last confirmed. */
export function ageOf(status: ReplicaStatus, now: number): number {
  return Math.max(0, now - (status.state === "listing" ? status.since : status.heardAt));
}

/** A watch that is lost sooner did not end the time without one. */
const BRIEF_MILLISECONDS = 1_000;

export class FeedStatus {
  /** When a watch last delivered something. */
  heardAt = Number.NEGATIVE_INFINITY;
  private status: ReplicaStatus;
  /** Since when there was no watch before the present one. */
  private staleSince: number | undefined;

  constructor(now: number) {
    this.status = { state: "listing", since: now };
  }

  get current(): ReplicaStatus {
    return this.status.state === "in sync" ? { ...this.status, heardAt: this.heardAt } : this.status;
  }

  hear(at: number): void {
    this.heardAt = at;
  }

  sync(now: number): void {
    const { state, since } = this.status;
    if (state === "in sync") return;
    this.staleSince = state === "stale" ? since : undefined;
    this.status = { state: "in sync", since: now, heardAt: now };
  }

  lose(now: number, failure: PluginError): void {
    const { state, since } = this.status;
    if (state !== "in sync") this.status = { ...this.status, failure };
    else {
      const wasBrief = now - since < BRIEF_MILLISECONDS;
      const staleSince = (wasBrief ? this.staleSince : undefined) ?? now;
      // A watch that was open for a moment has confirmed nothing.
      this.status = { state: "stale", since: staleSince, heardAt: Math.min(this.heardAt, staleSince), failure };
    }
  }

  /** How long there has been no failure. */
  wellFor(now: number): number {
    return this.status.state === "in sync" ? now - this.status.since : 0;
  }
}

const WORST_FIRST = ["listing", "stale", "in sync"] as const;

/** The status of a replica is the worst of its feeds, since the earliest of them, with what was heard the longest ago. */
export function worstOf(statuses: readonly ReplicaStatus[]): ReplicaStatus {
  const rank = ({ state }: ReplicaStatus) => WORST_FIRST.indexOf(state);
  const [worst] = statuses.toSorted((left, right) => rank(left) - rank(right) || left.since - right.since);
  if (worst === undefined) return { state: "in sync", since: 0, heardAt: 0 };
  if (worst.state === "listing") return worst;
  return { ...worst, heardAt: Math.min(...statuses.map((each) => ("heardAt" in each ? each.heardAt : worst.heardAt))) };
}
