/** Keeps the table that guards the BGP sessions of this host as the plan says, also after other programs changed rules. */
import { describeFailure } from "../../errors.ts";
import { applyBgpGuard } from "../../firewall/apply-bgp.ts";
import type { BgpEnd } from "../../firewall/bgp-table.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import { readGeneration } from "../../linux/nftables/commit.ts";
import { type OnceEach, onceEach } from "../once-each.ts";

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
  #peers: readonly BgpEnd[] | undefined;
  /** Of the ruleset before it was compared; every change by any program increments it. */
  #generation: number | undefined;

  constructor(means: PeerGuardMeans) {
    this.#means = means;
    this.#failures = onceEach(means.report);
  }

  /** Guards the sessions with these peers from now on. What the kernel refuses is reported, and tried again. */
  guard(peers: readonly BgpEnd[]): void {
    this.#peers = peers;
    this.#generation = undefined;
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

  /** One small read, unless rules of any program have changed. */
  #check(): void {
    if (this.#peers === undefined) return;
    try {
      this.#socket ??= this.#means.kernel.openSocket("netfilter");
      const generation = readGeneration(this.#socket);
      if (generation === this.#generation) return;
      applyBgpGuard(this.#socket, this.#peers);
      this.#generation = generation;
      this.#failures.forget();
    } catch (failure) {
      // The socket may still contain unread replies.
      this.#close();
      this.#failures.report(`Cannot guard the BGP sessions of this host: ${describeFailure(failure)}`);
    }
  }

  #close(): void {
    if (this.#socket !== undefined) closeNetlinkSocket(this.#socket);
    this.#socket = undefined;
  }
}
