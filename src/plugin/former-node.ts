/**
 * Removes the endpoint of an attachment that was recorded when the node had another
 * name: the name of an endpoint contains that of its node, so that a call under the
 * new name does not find it.
 */
import type { Entry } from "../datastore/datastore.ts";
import { pagesBelow } from "../datastore/pages.ts";
import { MOST_IN_ONE_REQUEST } from "../datastore/preconditions.ts";
import type { Address } from "../ip/address.ts";
import { formatPrefix, singlePrefix } from "../ip/prefix.ts";
import { wantedNode } from "../ipam/node-machine.ts";
import { decodeNode } from "../ipam/records.ts";
import { resourcesPrefix } from "../model/keys.ts";
import type { Session } from "./session.ts";
import { endpointRemoval, readStoredEndpoint } from "./stored-endpoint.ts";
import type { Workload } from "./workload.ts";

/** `addresses`: those that the attachment has or had on this host. */
export async function removeEndpointOfFormerNode(
  workload: Workload,
  session: Session,
  addresses: readonly Address[],
): Promise<void> {
  const store = await session.store();
  const prefix = resourcesPrefix("workloadendpoints", workload.namespace);
  for await (const { entries } of pagesBelow(store, prefix, { size: MOST_IN_ONE_REQUEST })) {
    const candidates = entries
      .filter(({ key, value }) => key !== workload.endpointKey && value.includes(workload.containerId))
      .filter((entry) => hasAddressOf(entry, addresses));
    for (const entry of candidates) {
      if (await isOfOtherMachine(entry, session)) continue;
      const changes = endpointRemoval(workload, entry);
      if (changes.length > 0) await store.commit(changes);
    }
  }
}

/** Another host may have a container with the same ID: its endpoint has other addresses. */
function hasAddressOf(entry: Entry, addresses: readonly Address[]): boolean {
  const networks = addresses.map((address) => formatPrefix(singlePrefix(address)));
  return readStoredEndpoint(entry).ipNetworks.some((each) => networks.includes(each));
}

/** Other IPAM plugins may assign one address on two hosts: a node that another machine has registered is another host. */
async function isOfOtherMachine(entry: Entry, session: Session): Promise<boolean> {
  const { node } = readStoredEndpoint(entry);
  if (node === undefined) return false;
  const { answers } = await (await session.store()).read([wantedNode(node)]);
  const registered = answers[0]?.[0];
  const machine = registered && decodeNode(registered).machine;
  return machine !== undefined && machine !== session.surroundings.machineIdentity();
}
