/** Acquires the Lease, renews it, and gives it back at the end. */

import { parseJson } from "../../parse-json.ts";
import type { KubeClient, KubeRequest } from "../api.ts";
import { requireOk } from "../require-ok.ts";
import type { Leadership } from "./leadership.ts";
import { claimOf, LEASE_TIMES, type Lease, type LeaseSpec, leaseIn, releaseOf, type SeenLease } from "./lease.ts";

export interface ElectorMeans {
  readonly client: Pick<KubeClient, "request">;
  readonly namespace: string;
  /** Of the Lease. */
  readonly name: string;
  /** Of this process; unique. */
  readonly identity: string;
  readonly now: () => Date;
  readonly elapsed: () => number;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
  /** Whether a Lease that this process does not hold may be acquired; always if absent. */
  readonly mayAcquire?: () => boolean;
  /** Called after each attempt to acquire or renew it. */
  readonly onAttempt?: () => void;
}

export class Elector implements Leadership {
  private seen: SeenLease | undefined;
  private seenText = "";
  /** When the last successful renewal was sent. */
  private renewedAt: number | undefined;
  private askedTime: number;
  private waiting: (() => void)[] = [];
  private problem = "";
  private reportedLeading = false;
  private foreignLooks = 0;

  constructor(private readonly means: ElectorMeans) {
    this.askedTime = means.elapsed();
  }

  /** When it last tried, with or without success. */
  get askedAt(): number {
    return this.askedTime;
  }

  /** Counted from when the renewal was sent: others count from when they see it, which is later. */
  isLeading(): boolean {
    return this.remaining() > 0;
  }

  /** Milliseconds for which it leads if it is not renewed; 0 if it does not lead. */
  remaining(): number {
    if (this.renewedAt === undefined) return 0;
    return Math.max(0, this.renewedAt + LEASE_TIMES.renewDeadlineMilliseconds - this.means.elapsed());
  }

  /** The identity of the present leader; empty if nobody is. */
  get holder(): string {
    return this.seen?.lease.spec.holderIdentity ?? "";
  }

  /** When the present leader renewed it, as the leader's clock says; empty if there is none. */
  get renewTime(): string {
    return this.seen?.lease.spec.renewTime ?? "";
  }

  /** How often it found a Lease that this process did not hold: while it stays the same, no other process has had it. */
  get timesNotOwn(): number {
    return this.foreignLooks;
  }

  async whenLeading(signal: AbortSignal): Promise<void> {
    while (!this.isLeading() && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.waiting.push(resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
      await promise;
    }
  }

  /** Resolves when the signal is aborted and the lease is given back. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.attempt(signal);
      await this.means.wait(LEASE_TIMES.retryMilliseconds, signal);
    }
    await this.giveBack();
  }

  private async attempt(signal: AbortSignal): Promise<void> {
    this.askedTime = this.means.elapsed();
    try {
      await this.read(signal);
      await this.claim(signal);
      this.problem = "";
    } catch (failure) {
      this.reportOnce(failure instanceof Error ? failure.message : String(failure));
    }
    this.reportLeadership();
    this.means.onAttempt?.();
  }

  /** Compared with the last report: the time to renew may have run out between two attempts. */
  private reportLeadership(): void {
    const isLeading = this.isLeading();
    if (isLeading === this.reportedLeading) return;
    this.reportedLeading = isLeading;
    if (isLeading) this.means.log("Acquired the lease: this replica writes from now on", "INFO");
    else this.means.log("Lost the lease: this replica does not write until it has it again", "WARNING");
  }

  private async read(signal: AbortSignal): Promise<void> {
    const request: KubeRequest = { method: "GET", path: this.path, signal };
    const response = await this.means.client.request(request);
    if (response.status === 404) this.seen = undefined;
    else this.see(requireOk(response, request));
  }

  private see(text: string): void {
    if (this.seen !== undefined && text === this.seenText) return;
    this.seenText = text;
    this.seen = { lease: leaseIn(parseJson(text)), since: this.means.elapsed() };
  }

  private async claim(signal: AbortSignal): Promise<void> {
    const { identity, now, elapsed, mayAcquire = () => true } = this.means;
    const sentAt = elapsed();
    const isForeign = this.seen !== undefined && this.holder !== identity;
    if (isForeign) this.foreignLooks += 1;
    const spec = isForeign && !mayAcquire() ? undefined : claimOf(this.seen, { identity, now: now(), elapsed: sentAt });
    if (spec === undefined) {
      this.renewedAt = undefined;
      return;
    }
    if (!(await this.write(this.seen?.lease, spec, signal))) return;
    this.renewedAt = sentAt;
    for (const wake of this.waiting.splice(0)) wake();
  }

  /** `false` if another was faster. */
  private async write(lease: Lease | undefined, spec: LeaseSpec, signal?: AbortSignal): Promise<boolean> {
    const { namespace, name } = this.means;
    const request: KubeRequest = {
      method: lease === undefined ? "POST" : "PUT",
      path: lease === undefined ? this.collection : this.path,
      body: JSON.stringify({
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        // With the resourceVersion that was read: a write in between is refused.
        metadata: lease?.metadata ?? { namespace, name },
        spec,
      }),
      ...(signal === undefined ? {} : { signal }),
    };
    const response = await this.means.client.request(request);
    if (response.status === 409) return false;
    this.see(requireOk(response, request));
    return true;
  }

  private async giveBack(): Promise<void> {
    const { seen } = this;
    this.renewedAt = undefined;
    const spec = seen && releaseOf(seen.lease, this.means.identity, this.means.now());
    if (seen === undefined || spec === undefined) return;
    // If it fails, the lease expires.
    await this.write(seen.lease, spec).catch(() => {});
  }

  private reportOnce(message: string): void {
    if (message !== this.problem) this.means.log(`Cannot renew the lease: ${message}`, "WARNING");
    this.problem = message;
  }

  private get collection(): string {
    return `/apis/coordination.k8s.io/v1/namespaces/${this.means.namespace}/leases`;
  }

  private get path(): string {
    return `${this.collection}/${this.means.name}`;
  }
}
