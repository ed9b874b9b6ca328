/**
 * Endpoints of this host that nothing leads to: a request of an ADD that had given up arrived after the DEL of its
 * container. IPAM holds no address for the container any more, so no search for leaks finds the endpoint, and policies and
 * routes would count its former addresses for ever.
 *
 * What counts as such is told by the host and by IPAM, for longer than any ADD takes, and the endpoint has not been written
 * meanwhile. Whoever deletes it is guarded by the revision that was judged.
 */
import type { Change, Datastore } from "../datastore/datastore.ts";
import { formatAddress } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import { GRACE_MILLISECONDS, type HostLinks } from "../ipam/leaks/find.ts";
import { type NodeRecords, readNodeRecords } from "../ipam/leaks/node-records.ts";
import { formatMark } from "../ipam/link-mark.ts";
import { NETWORK_ANNOTATION } from "../model/endpoint-labels.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";
import { type RegisteredHost, registeredSince, type SearchMeans } from "./host-leaks.ts";

/** All endpoints that are known, as the agent follows them. */
export interface KnownEndpoints extends Iterable<readonly [string, WorkloadEndpoint]> {
  revisionOf(key: string): string | undefined;
}

interface Host extends RegisteredHost {
  readonly links: Pick<HostLinks, "marks" | "routed">;
}

interface Means extends Pick<SearchMeans, "machineIdentity"> {
  /** Milliseconds since any fixed moment. */
  readonly elapsed: () => number;
}

interface Sighting {
  readonly revision: string;
  readonly at: number;
}

/** Remembers from pass to pass what the host shows no sign of. */
export class LeftEndpoints {
  private seen: ReadonlyMap<string, Sighting> = new Map();

  constructor(
    private readonly store: Datastore,
    private readonly means: Means,
  ) {}

  /** Returns the keys of those that were deleted. Fails if the node may be another machine's. */
  async remove(endpoints: KnownEndpoints, host: Host): Promise<readonly string[]> {
    const unseen = Array.from(endpoints).filter((each) => isWithoutLink(each[1], host));
    const now = this.means.elapsed();
    this.seen = new Map(unseen.flatMap(([key]) => this.sightingOf(key, endpoints.revisionOf(key), now)));
    const lasting = unseen.filter(([key]) => now - (this.seen.get(key)?.at ?? now) >= GRACE_MILLISECONDS);
    if (lasting.length === 0) return [];
    const since = await registeredSince(this.store, host, this.means);
    const records = await readNodeRecords(this.store, host.node);
    const left = lasting.filter(([, endpoint]) => isCreatedSince(endpoint, since) && !isHeld(endpoint, records));
    const removed: string[] = [];
    for (const [key] of left) if (await this.isDeleted(key)) removed.push(key);
    return removed;
  }

  private sightingOf(key: string, revision: string | undefined, now: number): readonly [string, Sighting][] {
    if (revision === undefined) return [];
    const earlier = this.seen.get(key);
    return [[key, earlier?.revision === revision ? earlier : { revision, at: now }]];
  }

  private async isDeleted(key: string): Promise<boolean> {
    const revision = this.seen.get(key)?.revision;
    if (revision === undefined) return false;
    const change: Change = { kind: "delete", key, revision };
    return (await this.store.commit([change])).ok;
  }
}

/** Of a container that an ADD of this node has attached, and of which the host has no link and no route. */
function isWithoutLink({ metadata, spec }: WorkloadEndpoint, { node, links }: Host): boolean {
  const { containerID: containerId, endpoint: ifname, ipNetworks = [] } = spec;
  const network = metadata.annotations?.[NETWORK_ANNOTATION];
  if (spec.node !== node || network === undefined || containerId === undefined || ifname === undefined) return false;
  if (links.marks.has(formatMark({ network, containerId, ifname }))) return false;
  return !ipNetworks.some((text) => links.routed.has(addressIn(text)));
}

function addressIn(text: string): string {
  const read = parseInterfaceAddress(text);
  return read === undefined ? "" : formatAddress(read.address);
}

/** One that is older may be of another machine that had the name of this node. */
function isCreatedSince({ metadata }: WorkloadEndpoint, since: Date): boolean {
  return Date.parse(metadata.creationTimestamp ?? "") >= since.getTime();
}

/** Whether IPAM still holds something for its container: then the search for leaks judges both. */
function isHeld({ spec }: WorkloadEndpoint, { allocations }: NodeRecords): boolean {
  return allocations.some(({ containerId }) => containerId === spec.containerID);
}
