/**
 * The nftables tables that all pods of this host share, beside that of policy: outgoing NAT, floating IPs, the guard against
 * spoofed addresses with the sources that pods may use, host ports and the guard of the loopback. While the agent runs it
 * is their only writer but for the calls of plugins, which complete the guard before a pod joins, and assign and release
 * its host ports.
 *
 *   pools, nodes, endpoints ──▶ what is wanted ──▶ what differs is written
 *   another program changes rules (nft flush ruleset, a reload of a firewall) ──▶ everything is compared, within a second
 *
 * A table that the kernel refuses does not keep the others from being written.
 */
import { describeFailure } from "../../errors.ts";
import { applyFloating } from "../../firewall/apply-floating.ts";
import { requireGuard } from "../../firewall/apply-guard.ts";
import { applyNat } from "../../firewall/apply-nat.ts";
import type { ClusterSources } from "../../firewall/cluster-sources.ts";
import type { FloatingAddress } from "../../firewall/floating-addresses.ts";
import type { NatPool } from "../../firewall/nat-table.ts";
import type { RecordedSources } from "../../firewall/recorded-sources.ts";
import { setClusterSources } from "../../firewall/source-prefixes.ts";
import type { NetfilterAccess } from "../../linux/netfilter-access.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { readGeneration } from "../../linux/nftables/commit.ts";
import type { TableReference } from "../../linux/nftables/ruleset.ts";
import { type Link, listLinks } from "../../linux/rtnetlink/link.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import { type OnceEach, onceEach } from "../../log/once-each.ts";
import { comparedTables, type TablesHost, tableNames, type WantedNow } from "../../upkeep/restore-tables.ts";

/** As often as the table of policy. */
const CHECK_MILLISECONDS = 1_000;
/** Filters of links may change without any rule; and what the kernel has refused is tried again. */
const COMPARE_MILLISECONDS = 60_000;

export interface HostTablesMeans extends TablesHost {
  readonly netfilter: NetfilterAccess;
  readonly elapsed: () => number;
  /** Given the links of the host. Not if another plugin connects all of its pods. */
  readonly hasGuard: (links: readonly Link[]) => boolean;
  /** Of those of the links whose pods may use further sources; `undefined`: not known yet. */
  readonly sources: (links: readonly Link[]) => readonly RecordedSources[] | undefined;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
  readonly problems: OnceEach;
}

export class HostTables {
  /** What is not known yet stays as a former agent has left it. */
  private nat: readonly NatPool[] | undefined;
  private floating: readonly FloatingAddress[] | undefined;
  private clusterSources: ClusterSources | undefined;
  /** Of the ruleset when everything was compared; every change by any program increments it. */
  private generation: number | undefined;
  private comparedAt = 0;
  /** To compare at all: not one of the problems that a comparison finds. */
  private readonly failures: OnceEach;

  constructor(private readonly means: HostTablesMeans) {
    this.failures = onceEach((message) => means.log(message, "WARNING"));
  }

  /** Masquerades for exactly these pools; returns whether anything had to be changed. */
  setNat(pools: readonly NatPool[]): Promise<boolean> {
    this.nat = pools;
    return this.write((socket) => applyNat(socket, pools));
  }

  /** Makes exactly these addresses lead to pods. */
  async setFloating(addresses: readonly FloatingAddress[]): Promise<void> {
    this.floating = addresses;
    await this.write((socket) => applyFloating(socket, addresses));
  }

  /** Excludes these from the further sources of pods; returns whether anything had to be changed. */
  setClusterSources(sources: ClusterSources): Promise<boolean> {
    this.clusterSources = sources;
    return this.write(async (socket) => {
      await requireGuard(socket);
      return setClusterSources(socket, sources);
    });
  }

  /** What `sources` returns may have changed. */
  sourcesChanged(): void {
    this.generation = undefined;
  }

  /** Until the signal is aborted. */
  async run(wait: (milliseconds: number, signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.check();
      await wait(CHECK_MILLISECONDS, signal);
    }
  }

  /** One small read, unless rules of any program have changed. If it fails, the next check compares. */
  async check(): Promise<void> {
    const { netfilter, elapsed, log, problems } = this.means;
    try {
      await netfilter.withSocket(async (socket) => {
        const generation = readGeneration(socket);
        const isDue = elapsed() - this.comparedAt >= COMPARE_MILLISECONDS;
        if (generation === this.generation && !isDue) return;
        this.generation = generation;
        this.comparedAt = elapsed();
        const names = tableNames(await this.compare(socket));
        problems.endRound();
        this.failures.forget();
        if (names.length > 0) log(`Wrote the nftables tables of this host again: ${names.join(", ")}`, "INFO");
      });
    } catch (failure) {
      this.generation = undefined;
      this.failures.report(`Cannot compare the nftables tables of this host: ${describeFailure(failure)}`);
    }
  }

  /** Returns the tables that were written. */
  private async compare(socket: NetlinkSocket): Promise<readonly TableReference[]> {
    const { kernel, hasGuard, hostPorts, sources, problems } = this.means;
    const written: TableReference[] = [];
    const links = withRouteSocket(kernel, listLinks);
    const wanted: WantedNow = {
      pools: () => this.nat,
      floating: () => this.floating,
      clusterSources: () => this.clusterSources,
      sources: () => {
        const known = sources(links);
        // The next check looks again.
        if (known === undefined) this.generation = undefined;
        return known ?? [];
      },
      hasGuard: () => hasGuard(links),
    };
    for (const { what, compare } of comparedTables({ kernel, hostPorts }, wanted, problems.report)) {
      try {
        written.push(...(await compare(socket)));
      } catch (failure) {
        problems.report(`Cannot restore ${what}: ${describeFailure(failure)}`);
      }
    }
    return written;
  }

  /** If it fails, the next check tries again. */
  private async write<Value>(work: (socket: NetlinkSocket) => Value | Promise<Value>): Promise<Value> {
    try {
      return await this.means.netfilter.withSocket(work);
    } catch (failure) {
      this.generation = undefined;
      throw failure;
    }
  }
}
