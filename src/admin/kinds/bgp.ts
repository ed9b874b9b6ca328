/** The kinds of BGP. */
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach } from "../../datastore/read-each.ts";
import type { BGPConfiguration } from "../../model/bgp-configuration.ts";
import type { BGPFilter } from "../../model/bgp-filter.ts";
import type { BGPPeer } from "../../model/bgp-peer.ts";
import { BGP_CONFIGURATION, BGP_FILTER, BGP_PEER } from "../../model/kinds.ts";
import type { AdminKind, StoredResource } from "./kind.ts";

export const BGP_CONFIGURATION_ROW: AdminKind<BGPConfiguration> = {
  ...BGP_CONFIGURATION,
  columns: [
    { header: "MESH", alias: "MESHENABLED", cell: ({ spec }) => `${spec.nodeToNodeMeshEnabled ?? ""}` },
    { header: "ASN", alias: "ASNUMBER", cell: ({ spec }) => `${spec.asNumber ?? ""}` },
    { header: "PORT", cell: ({ spec }) => `${spec.listenPort ?? ""}`, isWide: true },
    { header: "SERVICES", cell: ({ spec }) => serviceNetworks(spec).join(","), isWide: true },
  ],
};

function serviceNetworks(spec: BGPConfiguration["spec"]): readonly string[] {
  const { serviceClusterIPs = [], serviceExternalIPs = [], serviceLoadBalancerIPs = [] } = spec;
  return [...serviceClusterIPs, ...serviceExternalIPs, ...serviceLoadBalancerIPs].map(({ cidr }) => cidr);
}

export const BGP_PEER_ROW: AdminKind<BGPPeer> = {
  ...BGP_PEER,
  columns: [
    { header: "PEER", alias: "PEERIP", cell: ({ spec }) => spec.peerIP ?? spec.peerSelector ?? "" },
    { header: "NODE", cell: ({ spec }) => spec.node ?? spec.nodeSelector ?? "(global)" },
    { header: "ASN", cell: ({ spec }) => `${spec.asNumber ?? ""}` },
    { header: "FILTERS", cell: ({ spec }) => (spec.filters ?? []).join(","), isWide: true },
  ],
};

export const BGP_FILTER_ROW: AdminKind<BGPFilter> = {
  ...BGP_FILTER,
  columns: [
    { header: "EXPORT V4", alias: "NUMEXPORTV4", cell: ({ spec }) => `${spec.exportV4?.length ?? 0}` },
    { header: "IMPORT V4", alias: "NUMIMPORTV4", cell: ({ spec }) => `${spec.importV4?.length ?? 0}` },
    { header: "EXPORT V6", alias: "NUMEXPORTV6", cell: ({ spec }) => `${spec.exportV6?.length ?? 0}` },
    { header: "IMPORT V6", alias: "NUMIMPORTV6", cell: ({ spec }) => `${spec.importV6?.length ?? 0}` },
  ],
  usersOf: peersWithFilter,
  remedyIfInUse: "remove it from these peers first, or use --force: their sessions end, because a filter is missing",
};

async function peersWithFilter(store: Datastore, { resource }: StoredResource<BGPFilter>): Promise<readonly string[]> {
  const entries = await readAllEntries(store, BGP_PEER.prefix());
  return readEach(entries, ({ key, value }) => BGP_PEER.codec.read(value, key))
    .readable.filter(({ spec }) => spec.filters?.includes(resource.metadata.name))
    .map(({ metadata }) => `bgppeer/${metadata.name}`);
}
