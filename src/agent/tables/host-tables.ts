/**
 * The nftables tables that all pods of this host share, beside that of policy: outgoing NAT, floating IPs, the guard against
 * spoofed addresses with the sources that pods may use, the guard of the loopback. While the agent runs it is their only
 * writer but for the ADDs, which complete the guard before a pod joins.
 *
 *   pools, nodes, endpoints ──▶ what is wanted ──▶ what differs is written
 *   another program changes rules (nft flush ruleset, a reload of a firewall) ──▶ everything is compared, within a second
 */
import { restoreLoopbackGuard } from "../../chained/portmap/restore-guard.ts";
import { describeFailure } from "../../errors.ts";
import { applyFloating } from "../../firewall/apply-floating.ts";
import { applyGuard, requireGuard } from "../../firewall/apply-guard.ts";
import { applyNat } from "../../firewall/apply-nat.ts";
import type { ClusterSources } from "../../firewall/cluster-sources.ts";
import type { FloatingAddress } from "../../firewall/floating-addresses.ts";
import { FLOATING_TABLE } from "../../firewall/floating-table.ts";
import { GUARD_TABLE } from "../../firewall/guard-table.ts";
import { NAT_TABLE, type NatPool } from "../../firewall/nat-table.ts";
import type { RecordedSources } from "../../firewall/recorded-sources.ts";
import { setClusterSources } from "../../firewall/source-prefixes.ts";
import type { NetfilterAccess } from "../../linux/netfilter-access.ts";
import type { NetlinkSocket, SocketOpener } from "../../linux/netlink-socket.ts";
import { readGeneration } from "../../linux/nftables/commit.ts";
import { restoreSources } from "../../upkeep/restore-tables.ts";

/** As often as the table of policy. */
const CHECK_MILLISECONDS = 1_000;

export interface HostTablesMeans {
  readonly netfilter: NetfilterAccess;
  readonly kernel: SocketOpener;
  /** Not if another plugin connects all pods of the host. */
  readonly hasGuard: () => boolean;
  /** Of the links whose pods may use further sources; `undefined`: not known yet. */
  readonly sources: () => readonly RecordedSources[] | undefined;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
  /** The same problem is reported once. */
  readonly report: (message: string) => void;
}

export class HostTables {
  /** What is not known yet stays as a former agent has left it. */
  private nat: readonly NatPool[] | undefined;
  private floating: readonly FloatingAddress[] | undefined;
  private clusterSources: ClusterSources | undefined;
  /** Of the ruleset when everything was compared; every change by any program increments it. */
  private generation: number | undefined;

  constructor(private readonly means: HostTablesMeans) {}

  /** Masquerades for exactly these pools; returns whether anything had to be changed. */
  setNat(pools: readonly NatPool[]): Promise<boolean> {
    this.nat = pools;
    return this.means.netfilter.withSocket((socket) => applyNat(socket, pools));
  }

  /** Makes exactly these addresses lead to pods. */
  async setFloating(addresses: readonly FloatingAddress[]): Promise<void> {
    this.floating = addresses;
    await this.means.netfilter.withSocket((socket) => applyFloating(socket, addresses));
  }

  /** Excludes these from the further sources of pods; returns whether anything had to be changed. */
  setClusterSources(sources: ClusterSources): Promise<boolean> {
    this.clusterSources = sources;
    return this.means.netfilter.withSocket(async (socket) => {
      await requireGuard(socket);
      return setClusterSources(socket, sources);
    });
  }

  /** Until the signal is aborted. */
  async run(wait: (milliseconds: number, signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.check();
      await wait(CHECK_MILLISECONDS, signal);
    }
  }

  /** One small read, unless rules of any program have changed. */
  async check(): Promise<void> {
    const { netfilter, log, report } = this.means;
    try {
      await netfilter.withSocket(async (socket) => {
        const generation = readGeneration(socket);
        if (generation === this.generation) return;
        const sources = this.means.sources();
        const written = await this.restore(socket, sources ?? []);
        this.generation = sources && generation;
        if (written.length > 0) log(`Wrote the nftables tables of this host again: ${written.join(", ")}`, "INFO");
      });
    } catch (failure) {
      this.generation = undefined;
      report(`Cannot restore the nftables tables of this host: ${describeFailure(failure)}`);
    }
  }

  /** Returns the names of the tables that were written. */
  private async restore(socket: NetlinkSocket, sources: readonly RecordedSources[]): Promise<readonly string[]> {
    const { kernel, hasGuard, report } = this.means;
    const { nat, floating, clusterSources } = this;
    const isNatNew = nat !== undefined && (await applyNat(socket, nat));
    const guards = hasGuard()
      ? [
          await applyGuard(socket, report),
          restoreSources(kernel, socket, sources),
          clusterSources !== undefined && setClusterSources(socket, clusterSources),
        ]
      : [];
    const isFloatingNew = floating !== undefined && applyFloating(socket, floating);
    return [
      ...(isNatNew ? [NAT_TABLE] : []),
      ...(isFloatingNew ? [FLOATING_TABLE] : []),
      ...(guards.includes(true) ? [GUARD_TABLE] : []),
      ...restoreLoopbackGuard(kernel, socket, report),
    ].map(({ family, name }) => `${family} ${name}`);
  }
}
