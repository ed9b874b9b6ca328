/**
 * Endpoints of this host that nothing leads to. With another IPAM plugin than ours an endpoint is a commit of its own: a
 * request of an ADD that had given up may arrive after the DEL of its container. IPAM holds no address for the container, so
 * no search for leaks finds the endpoint, and policies and routes would count its former addresses for ever.
 *
 * Links and routes of the host, and our IPAM, tell what counts as such, for longer than any ADD takes and without a write of
 * the endpoint. An ADD writes it, even if it is equal, so what was judged is deleted by its revision.
 */
import type { Datastore } from "../datastore/datastore.ts";
import { formatAddress } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import { GRACE_MILLISECONDS, type HostLinks } from "../ipam/leaks/find.ts";
import { type NodeRecords, readNodeRecords } from "../ipam/leaks/node-records.ts";
import { formatMark, isMark } from "../ipam/link-mark.ts";
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
export class OrphanedEndpoints {
  private seen: ReadonlyMap<string, Sighting> = new Map();

  constructor(
    private readonly store: Datastore,
    private readonly means: Means,
  ) {}

  /** Calls `removed` with the key of each that was deleted. Fails if the node may be another machine's. */
  async remove(
    endpoints: KnownEndpoints,
    host: Host,
    { removed, signal }: { readonly removed: (key: string) => void; readonly signal: AbortSignal },
  ): Promise<void> {
    const unseen = Array.from(endpoints).filter(([, endpoint]) => isWithoutLink(endpoint, host));
    const now = this.means.elapsed();
    const sightings = new Map(unseen.flatMap(([key]) => this.sightingOf(key, endpoints.revisionOf(key), now)));
    this.seen = sightings;
    const lasting = unseen.filter(([key]) => now - (sightings.get(key)?.at ?? now) >= GRACE_MILLISECONDS);
    if (lasting.length === 0) return;
    const since = await registeredSince(this.store, host, this.means);
    const records = await readNodeRecords(this.store, host.node);
    for (const [key, endpoint] of lasting) {
      const revision = sightings.get(key)?.revision;
      if (revision === undefined || !isCreatedSince(endpoint, since) || isHeld(endpoint, records)) continue;
      if (signal.aborted) return;
      if ((await this.store.commit([{ kind: "delete", key, revision }])).ok) removed(key);
    }
  }

  private sightingOf(key: string, revision: string | undefined, now: number): readonly [string, Sighting][] {
    if (revision === undefined) return [];
    const earlier = this.seen.get(key);
    return [[key, earlier?.revision === revision ? earlier : { revision, at: now }]];
  }
}

/**
 * Of a container that an ADD of this node has attached, and of which the host has no link and no route. A route to the link
 * of another container says that the address is that one's by now.
 */
export function isWithoutLink(
  { metadata, spec }: WorkloadEndpoint,
  { node, links }: Pick<Host, "node" | "links">,
): boolean {
  const { containerID: containerId, endpoint: ifname, ipNetworks = [] } = spec;
  const network = metadata.annotations?.[NETWORK_ANNOTATION];
  if (spec.node !== node || network === undefined || containerId === undefined || ifname === undefined) return false;
  if (links.marks.has(formatMark({ network, containerId, ifname }))) return false;
  return !ipNetworks.some((text) => {
    const alias = links.routed.get(addressIn(text));
    return alias !== undefined && !isMark(alias);
  });
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
