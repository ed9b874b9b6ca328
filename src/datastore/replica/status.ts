/** How far a replica can be trusted at this moment, for health checks and metrics. */
import type { PluginError } from "../../errors.ts";

export type ReplicaStatus =
  /** No snapshot yet. `failure`: what the last attempt failed with. */
  | { readonly state: "listing"; readonly since: number; readonly failure?: PluginError | undefined }
  /** A watch is open. `heardAt`: when it last delivered something; a quiet store says nothing for minutes. */
  | { readonly state: "in sync"; readonly since: number; readonly heardAt: number }
  /** The snapshot is of `since` or a little earlier: no watch has been open from then on. */
  | { readonly state: "stale"; readonly since: number; readonly failure?: PluginError | undefined };

export class FeedStatus {
  /** When a watch last delivered something. */
  heardAt = Number.NEGATIVE_INFINITY;
  private status: ReplicaStatus;

  constructor(now: number) {
    this.status = { state: "listing", since: now };
  }

  get current(): ReplicaStatus {
    return this.status.state === "in sync" ? { ...this.status, heardAt: this.heardAt } : this.status;
  }

  hear(now: number): void {
    this.heardAt = now;
  }

  sync(now: number): void {
    if (this.status.state !== "in sync") this.status = { state: "in sync", since: now, heardAt: now };
  }

  lose(now: number, failure: PluginError): void {
    const { state, since } = this.status;
    this.status = state === "in sync" ? { state: "stale", since: now, failure } : { state, since, failure };
  }

  /** For how long there was nothing to complain of. */
  wellFor(now: number): number {
    return this.status.state === "in sync" ? now - this.status.since : 0;
  }
}

const WORST_FIRST = ["listing", "stale", "in sync"] as const;

/** A replica is as good as the worst of its feeds, and has been so for as long as the first of them. */
export function worstOf(statuses: readonly ReplicaStatus[]): ReplicaStatus {
  const rank = ({ state }: ReplicaStatus) => WORST_FIRST.indexOf(state);
  const [worst] = statuses.toSorted((left, right) => rank(left) - rank(right) || left.since - right.since);
  return worst ?? { state: "in sync", since: 0, heardAt: 0 };
}
