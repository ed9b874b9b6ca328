/** The endpoints that use addresses: for commands that take addresses or endpoints away. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach } from "../../datastore/read-each.ts";
import { type Address, formatAddress, parseAddress } from "../../ip/address.ts";
import { parseInterfaceAddress } from "../../ip/prefix.ts";
import { withHeldAddresses } from "../../ipam/proven-endpoint.ts";
import { claimsOf, withoutClaims } from "../../model/claimed-endpoint.ts";
import { resourcesPrefix } from "../../model/keys.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../model/workload-endpoint.ts";
import { findBlocks } from "./blocks.ts";

export interface AddressUser {
  readonly endpoint: WorkloadEndpoint;
  readonly entry: Entry;
  /** All its addresses, as texts. */
  readonly addresses: readonly string[];
}

/** Unreadable endpoints are left out. An address that only annotations of a pod claim is not in use by it. */
export async function findEndpoints(store: Datastore): Promise<readonly AddressUser[]> {
  const entries = await readAllEntries(store, resourcesPrefix("workloadendpoints"));
  const found = readEach(entries, (entry) => ({
    entry,
    endpoint: workloadEndpoint.read(entry.value, entry.key),
  })).readable;
  const areSomeClaimed = found.some(({ endpoint }) => claimsOf(withoutClaims(endpoint)) !== undefined);
  const blocks = areSomeClaimed ? (await findBlocks(store)).readable : [];
  return found.map(({ entry, endpoint: recorded }) => {
    const endpoint = withHeldAddresses(recorded, blocks);
    return { endpoint, entry, addresses: addressesOfEndpoint(endpoint).map(formatAddress) };
  });
}

export function usersOfAddresses(all: readonly AddressUser[], addresses: readonly Address[]): readonly AddressUser[] {
  const texts = new Set(addresses.map(formatAddress));
  return all.filter((user) => user.addresses.some((each) => texts.has(each)));
}

export function addressesOfEndpoint({ spec }: Pick<WorkloadEndpoint, "spec">): readonly Address[] {
  return (spec.ipNetworks ?? []).flatMap((text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? []);
}

export function nameOfEndpoint({ metadata }: WorkloadEndpoint): string {
  return `workloadendpoint/${metadata.namespace}/${metadata.name}`;
}

/** `workloadendpoint/default/n1-cni-c1-eth0 (container "c1" on node n1)` */
export function describeUser({ endpoint }: Pick<AddressUser, "endpoint">): string {
  const { pod, workload: name, containerID, node } = endpoint.spec;
  const workload =
    pod === undefined ? `container "${name ?? containerID ?? ""}"` : `pod ${endpoint.metadata.namespace}/${pod}`;
  return `${nameOfEndpoint(endpoint)} (${workload}${node === undefined ? "" : ` on node ${node}`})`;
}
