/**
 * By which links packets to pods leave the host, for pods that another networking plugin has connected: only the kernel
 * knows their interface. Without such pods nothing is read, and the agent is not woken when routes change.
 *
 *   addresses of pods ─┐
 *   events of routes ──┴─▶ the route to each address that may have changed ─▶ its link
 */
import { addressBits, formatAddress, parseAddress } from "../../ip/address.ts";
import type { RouteEvent } from "../../linux/rtnetlink/route-monitor.ts";
import { followEvents } from "../follow-events.ts";
import type { RouteKernel } from "../local-routes/kernel-routes.ts";

/** How often all are read without a reason: the kernel does not report every route that goes with its link. */
const REFRESH_MILLISECONDS = 60_000;

export interface WorkloadLinkMeans {
  readonly kernel: Pick<RouteKernel, "linkServing">;
  readonly events: (signal: AbortSignal) => AsyncIterable<readonly RouteEvent[] | "lost">;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly report: (message: string) => void;
  /** Called with all links if another one leads to an address. */
  readonly changed: (links: ReadonlyMap<string, string>) => void;
}

export class WorkloadLinks {
  private addresses: ReadonlySet<string> = new Set();
  private links: ReadonlyMap<string, string> = new Map();
  private readonly suspects = new Set<string>();
  private needed = Promise.withResolvers<void>();

  constructor(private readonly means: WorkloadLinkMeans) {}

  /** From now on these are followed. Returns the link of each that has one. */
  follow(addresses: ReadonlySet<string>): ReadonlyMap<string, string> {
    const isSame = addresses.size === this.addresses.size && addresses.isSubsetOf(this.addresses);
    if (isSame) return this.links;
    for (const address of addresses) if (!this.addresses.has(address)) this.suspects.add(address);
    this.addresses = addresses;
    if (addresses.size > 0) this.needed.resolve();
    this.look();
    return this.links;
  }

  notice(events: readonly RouteEvent[]): void {
    for (const event of events) {
      if (event.kind === "link") this.suspectLink(event.link.name);
      else {
        const { network, length } = event.route.destination;
        if (length < addressBits(network.family)) this.distrust();
        else if (this.addresses.has(formatAddress(network))) this.suspects.add(formatAddress(network));
      }
    }
  }

  distrust(): void {
    for (const address of this.addresses) this.suspects.add(address);
  }

  /** Resolves when the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const aborted = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => aborted.resolve(), { once: true });
    if (!signal.aborted) await Promise.race([aborted.promise, this.needed.promise]);
    if (signal.aborted) return;
    const { events, wait, report } = this.means;
    const ring = () => this.lookAndTell();
    await Promise.all([followEvents(this, { events, wait, signal, report, ring }), this.refresh(signal)]);
  }

  private async refresh(signal: AbortSignal): Promise<void> {
    // What happened before the events were followed.
    while (!signal.aborted) {
      this.distrust();
      this.lookAndTell();
      await this.means.wait(REFRESH_MILLISECONDS, signal);
    }
  }

  /** Addresses without a link may have got this one. */
  private suspectLink(name: string): void {
    for (const address of this.addresses) {
      const link = this.links.get(address);
      if (link === undefined || link === name) this.suspects.add(address);
    }
  }

  private lookAndTell(): void {
    const before = this.links;
    try {
      this.look();
    } catch (failure) {
      this.means.report(
        `Cannot find the interfaces of pods: ${failure instanceof Error ? failure.message : String(failure)}`,
      );
    }
    if (this.links !== before) this.means.changed(this.links);
  }

  private look(): void {
    const now = new Map([...this.links].filter(([address]) => this.addresses.has(address)));
    for (const address of this.suspects) {
      const link = this.addresses.has(address) ? this.linkOf(address) : undefined;
      if (link === undefined) now.delete(address);
      else now.set(address, link);
    }
    this.suspects.clear();
    if (!Bun.deepEquals(now, this.links)) this.links = now;
  }

  private linkOf(address: string): string | undefined {
    const parsed = parseAddress(address);
    return parsed === undefined ? undefined : this.means.kernel.linkServing(parsed)?.name;
  }
}
