/**
 * Keeps the table of floating IPs equal to what the endpoints of this node claim.
 *
 *   changes of endpoints -> claims of this node -> one address, one pod -> what differs -> one batch
 *
 * The kernel is only accessed if a claim of this node has changed. If it refuses, its content stays, and the next change
 * or comparison tries again: enforcement of policy does not depend on it.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import {
  describeConflict,
  type FloatingAddress,
  type FloatingClaim,
  floatingClaim,
  planFloating,
} from "../../firewall/floating-addresses.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";

export interface FloatingMeans {
  readonly node: string;
  /** Makes exactly these addresses lead to pods. */
  readonly write: (addresses: readonly FloatingAddress[]) => Promise<void>;
  readonly report: (message: string) => void;
}

export class FloatingKeeper {
  private readonly claims = new Map<string, FloatingClaim>();
  private isKnown = false;
  private isEnabled = true;
  private reported: ReadonlySet<string> = new Set();

  constructor(private readonly means: FloatingMeans) {}

  /**
   * The first call has every endpoint: what a former agent has left is corrected. While it is not enabled, no address leads
   * to a pod.
   */
  async update(
    changes: readonly RecordChange<WorkloadEndpoint>[],
    { isEnabled }: { readonly isEnabled: boolean },
  ): Promise<void> {
    let isChanged = !this.isKnown || isEnabled !== this.isEnabled;
    this.isKnown = true;
    this.isEnabled = isEnabled;
    for (const change of changes) if (this.note(change)) isChanged = true;
    if (isChanged) await this.write();
  }

  /** Returns whether the claims of this node have changed. An unreadable endpoint has none. */
  private note(change: RecordChange<WorkloadEndpoint>): boolean {
    const { key } = change;
    const claim = change.kind === "put" ? floatingClaim(key, change.value, this.means.node) : undefined;
    if (Bun.deepEquals(claim, this.claims.get(key))) return false;
    if (claim === undefined) this.claims.delete(key);
    else this.claims.set(key, claim);
    return true;
  }

  private async write(): Promise<void> {
    const { addresses, conflicts } = planFloating(this.isEnabled ? this.claims.values() : []);
    const messages = conflicts.map(describeConflict);
    try {
      await this.means.write(addresses);
    } catch (failure) {
      const reason = failure instanceof Error ? failure.message : String(failure);
      messages.push(`Cannot lead floating IPs to pods: ${reason}`);
    }
    this.report(messages);
  }

  /** The same message is not repeated until its cause is gone. */
  private report(messages: readonly string[]): void {
    for (const message of messages) if (!this.reported.has(message)) this.means.report(message);
    this.reported = new Set(messages);
  }
}
