/** The floating IPs of this node's pods, as their endpoints record them. */
import type { Datastore } from "../../datastore/datastore.ts";
import { pagesBelow } from "../../datastore/pages.ts";
import {
  describeConflict,
  type FloatingAddress,
  type FloatingClaim,
  floatingClaim,
  planFloating,
} from "../../firewall/floating-addresses.ts";
import { resourcesPrefix } from "../../model/keys.ts";
import { readableEndpoint } from "./recorded-sources.ts";

/** Of all endpoints: with another IPAM plugin nothing else names the namespaces of those of this node. */
export async function readFloating(
  store: Datastore,
  node: string,
  warn: (message: string) => void,
): Promise<readonly FloatingAddress[]> {
  const claims: FloatingClaim[] = [];
  for await (const { entries } of pagesBelow(store, resourcesPrefix("workloadendpoints"), { node })) {
    for (const entry of entries) {
      const endpoint = readableEndpoint(entry);
      const claim = endpoint && floatingClaim(entry.key, endpoint, node);
      if (claim !== undefined) claims.push(claim);
    }
  }
  const { addresses, conflicts } = planFloating(claims);
  for (const conflict of conflicts) warn(describeConflict(conflict));
  return addresses;
}
