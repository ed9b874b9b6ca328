/**
 * Keeps the routes from this host to its own workloads as their endpoints say.
 *
 *   changes of endpoints ┐
 *   events of the kernel ┴─▶ suspect addresses ─▶ all as it should be? ─▶ done
 *                                                 └─ no ─▶ compare everything ─▶ seen twice? ─▶ restore or remove
 *
 * A call in progress records its endpoint before it makes the link and its routes, and the record may reach this process
 * after the kernel's event: so a difference counts only if it is seen again some time later. A route is removed only if the
 * datastore itself confirms that it is stale: a watch may be behind without anybody noticing. What the plugin does at the
 * same time is not disturbed: it accepts that a route of its link is there already, or is already gone.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { type Address, formatAddress, parseAddress } from "../../ip/address.ts";
import { isKernelError } from "../../linux/kernel-error.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import { ROUTE_PROTOCOL } from "../../linux/rtnetlink/route.ts";
import type { RouteEvent } from "../../linux/rtnetlink/route-monitor.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { identityOf, type RouteDifference } from "../../routing/compare-routes.ts";
import { quietReport } from "../quiet-report.ts";
import { describeClash, describeRefusal, describeResolved, describeUnknown } from "./describe-routes.ts";
import { EndpointIndex } from "./endpoint-index.ts";
import type { RouteKernel } from "./kernel-routes.ts";
import {
  type HostState,
  isHostRoute,
  isLinkOf,
  isWorkloadLink,
  type LocalNetwork,
  localRouteDifferences,
  type RoutedEndpoint,
  routedEndpoint,
  unknownLinks,
} from "./local-routes.ts";
import type { RecordedEndpoints } from "./recorded-endpoints.ts";

export interface RouteMeans extends LocalNetwork {
  readonly node: string;
  readonly kernel: RouteKernel;
  /** The endpoints of this node as the datastore has them now; `undefined` if it cannot be reached. */
  readonly recorded: () => Promise<RecordedEndpoints | undefined>;
  readonly report: (message: string) => void;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
}

/** How long a difference must last. */
export const CONFIRM_MILLISECONDS = 400;
/** How long a container must be unknown: its DEL deletes the endpoint before the link. */
const UNKNOWN_MILLISECONDS = 60_000;
/** After the datastore has contradicted, it is not read again for this long. */
const TRUST_MILLISECONDS = 10_000;

export class RouteKeeper {
  private readonly endpoints = new EndpointIndex();
  private readonly suspects = new Set<string>();
  /** The endpoints are known. */
  private isReady = false;
  private isEnabled = true;
  private mustCompare = false;
  /** The differences of the last comparison, and when each was first seen. */
  private seen: ReadonlyMap<string, number> = new Map();
  /** Links without an endpoint, by their index, and when each was first seen. */
  private unknown: ReadonlyMap<number, number> = new Map();
  private readBefore = Number.NEGATIVE_INFINITY;

  readonly report: (message: string) => void;

  constructor(private readonly means: RouteMeans) {
    this.report = quietReport(means);
  }

  /** Whether something may differ. */
  get isDoubtful(): boolean {
    return this.isReady && this.isEnabled && (this.mustCompare || this.suspects.size > 0);
  }

  /** While it is not enabled, no route is set or removed. */
  setEnabled(isEnabled: boolean): void {
    if (isEnabled && !this.isEnabled) this.distrust();
    this.isEnabled = isEnabled;
  }

  /** The first call has every endpoint. */
  update(changes: readonly RecordChange<WorkloadEndpoint>[]): void {
    if (!this.isReady) this.distrust();
    this.isReady = true;
    for (const change of changes) {
      const endpoint = change.kind === "put" ? routedEndpoint(change.value, this.means.node) : undefined;
      const former = this.endpoints.set(change.key, endpoint);
      // The annotations or labels of an endpoint change more often than its addresses.
      if (Bun.deepEquals(former, endpoint)) continue;
      this.suspect([...(former?.addresses ?? []), ...(endpoint?.addresses ?? [])]);
    }
  }

  notice(events: readonly RouteEvent[]): void {
    for (const event of events) {
      if (event.kind === "link") {
        for (const { addresses } of this.endpoints.ofInterface(event.link.name)) this.suspect(addresses);
      } else if (isHostRoute(event.route)) {
        const { network } = event.route.destination;
        const isNewOfOurs = event.kind === "put" && event.route.protocol === ROUTE_PROTOCOL.own;
        if (isNewOfOurs || this.endpoints.ofAddress(formatAddress(network)).length > 0) this.suspect([network]);
      }
    }
  }

  /** The next look compares everything. */
  distrust(): void {
    this.mustCompare = true;
  }

  /** `unsettled`: something differs, and must be looked at again after `CONFIRM_MILLISECONDS`. */
  async look(): Promise<"settled" | "unsettled"> {
    if (!this.isReady || !this.isEnabled || this.isFine()) return "settled";
    const state = this.means.kernel.state();
    const differences = this.differences(this.endpoints.all(), state);
    const now = this.means.elapsed();
    const firstSeen = differences
      .map(identityOf)
      .map((identity) => [identity, this.seen.get(identity) ?? now] as const);
    this.seen = new Map(firstSeen);
    const due = differences.filter((_, index) => now - (firstSeen[index]?.[1] ?? now) >= CONFIRM_MILLISECONDS);
    if (due.length > 0) await this.resolve(due, state);
    await this.noteUnknown(state);
    return differences.length > due.length ? "unsettled" : "settled";
  }

  private suspect(addresses: readonly Address[]): void {
    for (const address of addresses) this.suspects.add(formatAddress(address));
  }

  private isFine(): boolean {
    const isFine = !this.mustCompare && this.seen.size === 0 && [...this.suspects].every((text) => this.isRouted(text));
    this.mustCompare = false;
    this.suspects.clear();
    return isFine;
  }

  /** Whether packets to the address go to the link of its endpoint, or to no workload if it has none. */
  private isRouted(text: string): boolean {
    const { kernel } = this.means;
    const address = parseAddress(text);
    const [owner, second] = this.endpoints.ofAddress(text);
    if (address === undefined || second !== undefined) return true;
    if (owner === undefined) {
      const serving = kernel.linkServing(address);
      return serving === undefined || !isWorkloadLink(serving) || this.isUnknown(serving);
    }
    const link = kernel.linkNamed(owner.interfaceName);
    if (link === undefined || !link.isUp || !isLinkOf(owner, link)) return true;
    return kernel.linkServing(address)?.index === link.index;
  }

  /** Nothing of it is removed. */
  private isUnknown(link: Link): boolean {
    return unknownLinks(this.endpoints.ofInterface(link.name), [link], this.means.network).length > 0;
  }

  private differences(endpoints: readonly RoutedEndpoint[], state: HostState): readonly RouteDifference[] {
    return localRouteDifferences(endpoints, state, this.means);
  }

  private async resolve(due: readonly RouteDifference[], state: HostState): Promise<void> {
    const { kernel } = this.means;
    const stale = due.filter(({ kind }) => kind === "stale");
    const wrong = [...due.filter(({ kind }) => kind !== "stale"), ...(await this.confirmed(stale, state))];
    const done: RouteDifference[] = [];
    for (const difference of wrong) {
      const refusal = kernel.resolve(difference);
      if (difference.kind === "clash") this.report(describeClash(difference.wanted, difference.present, state.links));
      else if (refusal === undefined) done.push(difference);
      else if (!isOvertaken(refusal)) this.report(describeRefusal(difference, refusal.message, state.links));
    }
    const resolved = new Set(done.map(identityOf));
    this.seen = new Map([...this.seen].filter(([identity]) => !resolved.has(identity)));
    for (const message of describeResolved(done, state.links)) this.report(message);
  }

  private async noteUnknown({ links }: HostState): Promise<void> {
    const { elapsed, network, recorded } = this.means;
    const now = elapsed();
    const unknown = unknownLinks(this.endpoints.all(), links, network);
    this.unknown = new Map(unknown.map(({ index }) => [index, this.unknown.get(index) ?? now]));
    const lasting = unknown.filter(({ index }) => now - (this.unknown.get(index) ?? now) >= UNKNOWN_MILLISECONDS);
    const found = lasting.length === 0 ? undefined : await recorded();
    if (found === undefined) return;
    const confirmed = unknownLinks(found.endpoints, lasting, network).filter(({ name }) => !found.undecided.has(name));
    if (confirmed.length > 0) this.report(describeUnknown(confirmed));
  }

  /** Those that are stale by the datastore's own answer, and still are when it arrives. */
  private async confirmed(stale: readonly RouteDifference[], state: HostState): Promise<readonly RouteDifference[]> {
    const { elapsed, recorded } = this.means;
    if (stale.length === 0 || elapsed() < this.readBefore) return [];
    const found = await recorded();
    const identities = (known: readonly RoutedEndpoint[]) => new Set(this.differences(known, state).map(identityOf));
    const [byDatastore, byReplica] = [identities(found?.endpoints ?? []), identities(this.endpoints.all())];
    const undecided = new Set(
      state.links.flatMap(({ name, index }) => (found === undefined || found.undecided.has(name) ? index : [])),
    );
    const confirmed = stale.filter((each) => {
      const identity = identityOf(each);
      if (each.kind === "stale" && each.present.linkIndex !== undefined && undecided.has(each.present.linkIndex))
        return false;
      return byDatastore.has(identity) && byReplica.has(identity);
    });
    if (confirmed.length < stale.length) this.readBefore = elapsed() + TRUST_MILLISECONDS;
    return confirmed;
  }
}

/** The link has gone, or the plugin has done it first. */
function isOvertaken(refusal: unknown): boolean {
  return isKernelError(refusal, "ENODEV", "ENETDOWN", "ENETUNREACH", "ESRCH", "EEXIST");
}
