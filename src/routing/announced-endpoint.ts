/** What BGP needs to know of an endpoint of the node that is planned for. Pure. */
import { parseAddress } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import { isFinished } from "../model/finished-pods.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";
import type { AnnouncedEndpoint } from "./facts.ts";

/** `undefined` if it belongs to another node, or its pod has ended: then its addresses may be another pod's. */
export function announcedEndpoint({ spec, status }: WorkloadEndpoint, node: string): AnnouncedEndpoint | undefined {
  if (spec.node !== node || isFinished({ status })) return undefined;
  return {
    addresses: (spec.ipNetworks ?? []).flatMap(
      (text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? [],
    ),
    floating: (spec.ipNATs ?? []).flatMap(({ externalIP }) => parseAddress(externalIP) ?? []),
  };
}
