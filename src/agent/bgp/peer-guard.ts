/** Keeps the table that guards the BGP sessions of this host as the plan says, also after other programs changed rules. */
import { describeFailure } from "../../errors.ts";
import { applyBgpGuard } from "../../firewall/apply-bgp.ts";
import { BGP_TABLE, type BgpEnd } from "../../firewall/bgp-table.ts";
import { portOf } from "../../linux/netlink-group.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import { TableMonitor } from "../../linux/nftables/monitor.ts";
import { type OnceEach, onceEach } from "../../log/once-each.ts";

/** As often as the other tables. */
const CHECK_MILLISECONDS = 1_000;

export interface PeerGuardMeans {
  readonly kernel: SocketOpener;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly report: (message: string) => void;
}

export class PeerGuard {
  readonly #means: PeerGuardMeans;
  readonly #failures: OnceEach;
  #socket: NetlinkSocket | undefined;
  /** `undefined`: not known yet; what a former agent has left stays. */
  #ends: readonly BgpEnd[] | undefined;
  /** Whether the kernel has them, unless the monitor says otherwise. */
  #isApplied = false;
  #monitor: TableMonitor | undefined;

  constructor(means: PeerGuardMeans) {
    this.#means = means;
    this.#failures = onceEach(means.report);
  }

  /** Guards these sessions from now on. What the kernel refuses is reported, and tried again. */
  guard(ends: readonly BgpEnd[]): void {
    if (Bun.deepEquals(ends, this.#ends)) return;
    this.#ends = ends;
    this.#isApplied = false;
    this.#check();
  }

  /** Until the signal is aborted. The table stays. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#check();
      await this.#means.wait(CHECK_MILLISECONDS, signal);
    }
    this.#close();
  }

  #check(): void {
    const ends = this.#ends;
    if (ends === undefined) return;
    try {
      if (this.#isApplied && (this.#monitor === undefined || this.#monitor.read().kind === "nothing")) return;
      this.#isApplied = false;
      this.#socket ??= this.#means.kernel.openSocket("netfilter");
      // Before the comparison, so that no change is missed.
      if (ends.length > 0) this.#monitor ??= new TableMonitor(this.#means.kernel, BGP_TABLE, portOf(this.#socket));
      applyBgpGuard(this.#socket, ends);
      // A host without sessions does not listen: rulesets of megabytes may be loaded on it.
      if (ends.length === 0) this.#closeMonitor();
      this.#isApplied = true;
      this.#failures.forget();
    } catch (failure) {
      // The sockets may still contain unread replies.
      this.#close();
      this.#failures.report(`Cannot guard the BGP sessions of this host: ${describeFailure(failure)}`);
    }
  }

  #close(): void {
    this.#closeMonitor();
    if (this.#socket !== undefined) closeNetlinkSocket(this.#socket);
    this.#socket = undefined;
  }

  #closeMonitor(): void {
    this.#monitor?.close();
    this.#monitor = undefined;
  }
}
