/** CHECK: every element and every rule of the attachment's ports is as ADD left it. */
import type { CheckCall } from "../../cni/call.ts";
import { PluginError } from "../../errors.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { findChain, findElements } from "../../linux/nftables/read.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { isSameContainer, type Owner } from "./attachment.ts";
import { type Claim, formatHostPort, isForAnyAddress } from "./claim.ts";
import { anyAddressKey, podKey, portElement, portKey, sourceElement } from "./elements.ts";
import { fieldsOf, type Holding, type KeptRecord } from "./holding.ts";
import { isOwnedBy } from "./kept.ts";
import { loopbackSourcesAllowed } from "./pod-link.ts";
import { decodeRequest } from "./request.ts";
import { chainsOf } from "./rules.ts";
import type { Surroundings } from "./surroundings.ts";
import { readBase } from "./survey.ts";
import { needsNeighbourRule, SET, tableOf } from "./table.ts";
import { findRecords } from "./view.ts";
import { wantedBy } from "./wanted.ts";

export async function check(call: CheckCall, surroundings: Surroundings): Promise<void> {
  const { holdings, loopbackLink } = wantedBy(call, decodeRequest(call));
  if (holdings.length === 0) return;
  const netfilter = await surroundings.loadNetfilter();
  const problems = await netfilter.withSocket((socket) =>
    holdings.flatMap((holding) => [...tableProblems(socket, holding), ...elementProblems(socket, holding)]),
  );
  if (loopbackLink !== undefined && !loopbackSourcesAllowed(loopbackLink)) {
    problems.push(`127.0.0.1 is not let out by link "${loopbackLink.name}" (route_localnet)`);
  }
  if (problems.length === 0) return;
  throw new PluginError("check-failed", `Cannot confirm the host ports of the container: ${problems.join("; ")}`);
}

function tableProblems(socket: NetlinkSocket, { family, records }: Holding): readonly string[] {
  const table = tableOf(family);
  const problems: string[] = [];
  for (const chain of chainsOf(family)) {
    const found = findChain(socket, table, chain.name);
    if (found === undefined) problems.push(`table ${table.family} "${table.name}" has no chain "${chain.name}"`);
    else if (!Bun.deepEquals(found.base, chain.base)) problems.push(`chain "${chain.name}" is hooked in elsewhere`);
  }
  const lengths = records.flatMap((record) =>
    record.kind === "source" && needsNeighbourRule(family, record.hidden.length) ? [record.hidden.length] : [],
  );
  const base = readBase(socket, family, lengths);
  if (base.isIntact && base.neighbourLengths.length === lengths.length) return problems;
  return [...problems, `the rules of table ${table.family} "${table.name}" are not as they were made`];
}

/** A port that another interface of the same container has is well; sources are hidden for whoever has a port. */
function elementProblems(socket: NetlinkSocket, { family, owner, records }: Holding): readonly string[] {
  const find = (set: string, key: Uint8Array) => findElements(socket, tableOf(family), set, [key])[0];
  const kept = findRecords(socket, family, owner.id).records;
  const isNoted = (record: KeptRecord) => kept.some((each) => Bun.deepEquals(fieldsOf(each), fieldsOf(record)));
  const isKeptFromAll = (claim: Claim) =>
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
      if (!isKeptFromAll(claim)) problems.push(`host port ${formatHostPort(claim)} is free on every address`);
      const leads = Bun.deepEquals(find(SET.ports, portKey(claim))?.data, portElement(claim).data);
      if (!leads) problems.push(`host port ${formatHostPort(claim)} does not lead to the container`);
    } else if (!isOfSameContainer(holder, owner)) {
      problems.push(`host port ${formatHostPort(claim)} belongs to "${holder.comment ?? "somebody else"}"`);
    }
  }
  if (held === 0) return problems;
  for (const record of records) {
    if (record.kind !== "source") continue;
    const { source, length, podAddress } = record.hidden;
    const podOwner = find(SET.owners, podKey(podAddress));
    const isHidden = find(SET.sources, sourceElement(record.hidden).key) !== undefined;
    const isOwned = podOwner !== undefined && isOwnedBy(podOwner, owner.id);
    if (isHidden && isOwned && isNoted(record)) continue;
    problems.push(`source ${formatPrefix({ network: source, length })} is not hidden from the container`);
  }
  return problems;
}

function isOfSameContainer({ data }: NftElement, { id }: Owner): boolean {
  return data instanceof Uint8Array && isSameContainer(data, id);
}
