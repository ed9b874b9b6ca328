/**
 * Addresses of the annotation `ipAddrsNoIpam`: IPAM neither checks nor records
 * them, only the endpoint names them. The pools are read all the same: they decide
 * what the host masquerades.
 */
import { EMPTY_RESULT } from "../cni/result.ts";
import { PluginError } from "../errors.ts";
import { type Address, formatAddress } from "../ip/address.ts";
import { formatPrefix, singlePrefix } from "../ip/prefix.ts";
import { readyForAssigning, WANTED_CLUSTER } from "../ipam/cluster.ts";
import { requireOwnNodeEntry, wantedNode } from "../ipam/node-machine.ts";
import { decodePools } from "../ipam/records.ts";
import { thisMachine } from "../ipam/session.ts";
import { resourcesPrefix } from "../model/keys.ts";
import type { AddRequest, Registered } from "./add-request.ts";
import type { Annotated } from "./annotations.ts";
import { logAnnouncements } from "./log-announcements.ts";
import { record, undoRegistration } from "./registration.ts";
import type { Session } from "./session.ts";
import { readStoredEndpoint } from "./stored-endpoint.ts";

export async function registerWithoutIpam(
  { workload, podFacts, found, requireContainer }: AddRequest,
  { value: addresses, place }: Annotated<readonly Address[]>,
  session: Session,
): Promise<Registered> {
  const ofHost = addresses.find(session.surroundings.host.isHostAddress);
  if (ofHost !== undefined) throw refusal(ofHost, place, "this host, or its gateway, has it");
  const store = await session.store();
  const { answers } = await store.read([
    WANTED_CLUSTER,
    wantedNode(session.node),
    { kind: "prefix", prefix: resourcesPrefix("ippools") },
    { kind: "key", key: workload.endpointKey },
  ]);
  const [cluster, node, poolEntries = [], [endpoint] = []] = answers;
  readyForAssigning(cluster, session);
  requireOwnNodeEntry(node, thisMachine(session));
  if (found.kind === "own-links" && endpoint !== undefined) {
    requireSame(addresses, readStoredEndpoint(endpoint).ipNetworks, place);
  }
  await record({ workload, podFacts, addresses, requireContainer }, session);
  const pools = decodePools(poolEntries).pools;
  logAnnouncements(podFacts.requests, pools, session);
  session.note({ addresses: addresses.map(formatAddress), ipam: "none" });
  const { routes, dns } = EMPTY_RESULT;
  return { addresses, routes, dns, pools, undo: () => undoRegistration(workload, session) };
}

/** A container in use keeps its addresses. */
function requireSame(addresses: readonly Address[], before: readonly string[], place: string): void {
  const other = addresses.find((address) => !before.includes(formatPrefix(singlePrefix(address))));
  if (other === undefined) return;
  throw refusal(other, place, `the container already has ${before.join(", ")} in this network; run DEL first`);
}

function refusal(address: Address, place: string, state: string): PluginError {
  return new PluginError("address-taken", `Cannot assign address "${formatAddress(address)}" (${place}): ${state}`);
}
