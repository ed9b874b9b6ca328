/** What BGP needs to know of an endpoint of the node that is planned for, and routes of one of another node. Pure. */
import { type Address, formatAddress, parseAddress } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import { addressesWithoutIpam, WITHOUT_IPAM_ANNOTATION } from "../model/endpoint-labels.ts";
import { isFinished } from "../model/finished-pods.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";
import type { AnnouncedEndpoint, RemoteEndpoint } from "./facts.ts";

/** `undefined` if it belongs to another node, or its pod has ended: then its addresses may be another pod's. */
export function announcedEndpoint({ spec, status }: WorkloadEndpoint, node: string): AnnouncedEndpoint | undefined {
  if (spec.node !== node || isFinished({ status })) return undefined;
  return {
    addresses: addressesOf(spec),
    floating: (spec.ipNATs ?? []).flatMap(({ externalIP }) => parseAddress(externalIP) ?? []),
  };
}

/** `undefined` if it is of this node, its pod has ended, or IPAM knows all its addresses. */
export function remoteEndpoint({ metadata, spec, status }: WorkloadEndpoint, node: string): RemoteEndpoint | undefined {
  const annotation = metadata.annotations?.[WITHOUT_IPAM_ANNOTATION];
  if (annotation === undefined || spec.node === undefined || spec.node === node || isFinished({ status }))
    return undefined;
  // Users can write the annotation: it only says which of the addresses that count it is about.
  const listed = addressesWithoutIpam(annotation);
  const addresses = addressesOf(spec).filter((address) => listed.has(formatAddress(address)));
  return addresses.length === 0 ? undefined : { node: spec.node, addresses };
}

function addressesOf({ ipNetworks = [] }: WorkloadEndpoint["spec"]): readonly Address[] {
  return ipNetworks.flatMap((text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? []);
}
