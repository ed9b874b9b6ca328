/** The floating IPs of this node's pods, as their endpoints record them, or the host if endpoints are pods. */
import type { Datastore } from "../../datastore/datastore.ts";
import { pagesBelow } from "../../datastore/pages.ts";
import {
  describeConflict,
  type FloatingAddress,
  type FloatingClaim,
  floatingClaim,
  floatingPairs,
  planFloating,
} from "../../firewall/floating-addresses.ts";
import type { AttachmentRecord } from "../../ipam/attachment-record.ts";
import { resourcesPrefix } from "../../model/keys.ts";
import { areEndpointsPods, attachmentsOf, type MarkedLinks, readableEndpoint } from "./recorded-sources.ts";

/** Of all endpoints: with another IPAM plugin nothing else names the namespaces of those of this node. */
export async function readFloating(
  store: Datastore,
  { node, allowsFloating, ...links }: MarkedLinks & { readonly node: string; readonly allowsFloating: boolean },
  warn: (message: string) => void,
): Promise<readonly FloatingAddress[]> {
  const claims: FloatingClaim[] = [];
  if (areEndpointsPods(store)) return allowsFloating ? planned(attachmentsOf(links).map(claimOf), warn) : [];
  for await (const { entries } of pagesBelow(store, resourcesPrefix("workloadendpoints"), { node })) {
    for (const entry of entries) {
      const endpoint = readableEndpoint(entry);
      const claim = endpoint && floatingClaim(entry.key, endpoint, node);
      if (claim !== undefined) claims.push(claim);
    }
  }
  return planned(claims, warn);
}

function claimOf({ mark, floating }: AttachmentRecord): FloatingClaim {
  return { key: mark, addresses: floatingPairs(floating) };
}

function planned(claims: readonly FloatingClaim[], warn: (message: string) => void): readonly FloatingAddress[] {
  const { addresses, conflicts } = planFloating(claims);
  for (const conflict of conflicts) warn(describeConflict(conflict));
  return addresses;
}
