/** CHECK: compares every element and rule of the attachment's ports with what ADD wrote. */
import type { CheckCall } from "../../cni/call.ts";
import { PluginError } from "../../errors.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { type NetlinkSocket, ownSockets } from "../../linux/netlink-socket.ts";
import { findChain, findElements } from "../../linux/nftables/read.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { loopbackFilterState } from "../../linux/rtnetlink/loopback-filter.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import { type Claim, formatHostPort, isForAnyAddress } from "./claim.ts";
import { anyAddressKey, podKey, portElement, portKey, sourceElement } from "./elements.ts";
import { isLoopbackUnguarded, loopbackSourcesAllowed, needsLoopbackFilters } from "./loopback-sources.ts";
import type { PodLink } from "./masqueraded-sources.ts";
import { isOwnedBy } from "./owned-elements.ts";
import { isSameContainer, type Owner } from "./port-owner.ts";
import { fieldsOf, type PortRecord, type RecordSet } from "./port-records.ts";
import { findRecords } from "./read-records.ts";
import { readBase } from "./read-table.ts";
import { decodeRequest } from "./request.ts";
import { requestedRecords } from "./requested-records.ts";
import { chainsOf } from "./rules.ts";
import type { Surroundings } from "./surroundings.ts";
import { needsNeighbourRule, SET, tableOf } from "./table.ts";

export async function check(call: CheckCall, surroundings: Surroundings): Promise<void> {
  const { recordSets, loopbackLink } = requestedRecords(call, decodeRequest(call));
  if (recordSets.length === 0) return;
  const netfilter = await surroundings.loadNetfilter();
  const problems = await netfilter.withSocket((socket) =>
    recordSets.flatMap((recordSet) => [...tableProblems(socket, recordSet), ...elementProblems(socket, recordSet)]),
  );
  if (loopbackLink !== undefined) problems.push(...loopbackProblems(loopbackLink));
  if (problems.length === 0) return;
  throw new PluginError("check-failed", `Cannot confirm the host ports of the container: ${problems.join("; ")}`);
}

function loopbackProblems(link: PodLink): readonly string[] {
  if (!isLoopbackUnguarded(link) && !loopbackSourcesAllowed(link))
    return [`packets from 127.0.0.1 may not leave through link "${link.name}" (route_localnet is off)`];
  const isGuarded = withRouteSocket(ownSockets, (route) => loopbackFilterState(route, link) === "all");
  if (isGuarded || !needsLoopbackFilters(link)) return [];
  return [`link "${link.name}" lacks filters that keep its packets from the host's loopback (route_localnet is on)`];
}

function tableProblems(socket: NetlinkSocket, { family, records }: RecordSet): readonly string[] {
  const table = tableOf(family);
  const problems: string[] = [];
  for (const chain of chainsOf(family)) {
    const found = findChain(socket, table, chain.name);
    if (found === undefined) problems.push(`table ${table.family} "${table.name}" has no chain "${chain.name}"`);
    else if (!Bun.deepEquals(found.base, chain.base))
      problems.push(`chain "${chain.name}" has another hook, type or priority`);
  }
  const lengths = records.flatMap((record) =>
    record.kind === "source" && needsNeighbourRule(family, record.masqueraded.length)
      ? [record.masqueraded.length]
      : [],
  );
  const base = readBase(socket, family, lengths);
  if (base.isIntact && base.neighbourLengths.length === lengths.length) return problems;
  return [...problems, `the rules of table ${table.family} "${table.name}" differ from those that ADD wrote`];
}

/** A port owned by another interface of the same container is accepted; sources are masqueraded only for an owner of ports. */
function elementProblems(socket: NetlinkSocket, { family, owner, records }: RecordSet): readonly string[] {
  const find = (set: string, key: Uint8Array) => findElements(socket, tableOf(family), set, [key])[0];
  const kept = findRecords(socket, family, owner.id).records;
  const isNoted = (record: PortRecord) => kept.some((each) => Bun.deepEquals(fieldsOf(each), fieldsOf(record)));
  const isReservedOnAll = (claim: Claim) =>
    isForAnyAddress(claim) ||
    (find(SET.counted, portKey(claim)) !== undefined && find(SET.owners, anyAddressKey(claim)) !== undefined);
  const problems: string[] = [];
  let held = 0;
  for (const record of records) {
    if (record.kind !== "port") continue;
    const { claim } = record;
    const holder = find(SET.owners, portKey(claim));
    if (holder === undefined) problems.push(`host port ${formatHostPort(claim)} is not mapped`);
    else if (isOwnedBy(holder, owner.id)) {
      held++;
      if (!isNoted(record)) problems.push(`there is no record of host port ${formatHostPort(claim)}`);
      if (!isReservedOnAll(claim)) problems.push(`host port ${formatHostPort(claim)} is not reserved on every address`);
      const leads = Bun.deepEquals(find(SET.ports, portKey(claim))?.data, portElement(claim).data);
      if (!leads) problems.push(`host port ${formatHostPort(claim)} does not forward to the container`);
    } else if (!isOfSameContainer(holder, owner)) {
      problems.push(`host port ${formatHostPort(claim)} belongs to "${holder.comment ?? "another owner"}"`);
    }
  }
  if (held === 0) return problems;
  for (const record of records) {
    if (record.kind !== "source") continue;
    const { source, length, podAddress } = record.masqueraded;
    const podOwner = find(SET.owners, podKey(podAddress));
    const isMasqueraded = find(SET.sources, sourceElement(record.masqueraded).key) !== undefined;
    const isOwned = podOwner !== undefined && isOwnedBy(podOwner, owner.id);
    if (isMasqueraded && isOwned && isNoted(record)) continue;
    problems.push(`source ${formatPrefix({ network: source, length })} is not masqueraded for the container`);
  }
  return problems;
}

function isOfSameContainer({ data }: NftElement, { id }: Owner): boolean {
  return data instanceof Uint8Array && isSameContainer(data, id);
}
