/**
 * The steps of a batch that assigns ports to an owner or releases them. Pure.
 *
 * The kernel applies a batch completely or not at all, and returns EEXIST if a key
 * exists with other data. So a batch that begins with `add owner, delete owner` removes
 * only what still belongs to the owner, without a read and without a lock.
 */
import type { Family } from "../../ip/address.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { type Claim, isForAnyAddress } from "./claim.ts";
import {
  anyAddressKey,
  countedElement,
  countingChain,
  heldPerAddressElement,
  ownerElement,
  podKey,
  portElement,
  portKey,
  recordElement,
  recordKey,
  sourceElement,
} from "./elements.ts";
import type { Owner } from "./port-owner.ts";
import type { PortRecord, RecordSet } from "./port-records.ts";
import { SET, tableOf } from "./table.ts";

/** Assigns all records to the owner; EEXIST if it has some already, or another owner has one of the ports. */
export function assignChanges(recordSet: RecordSet): NftChange[] {
  const { family, owner, records, netns } = recordSet;
  const owners: NftElement[] = [];
  const ports: NftElement[] = [];
  const masquerade: NftElement[] = [];
  const attachments: NftElement[] = [];
  const perAddress: Claim[] = [];
  const hostLoopback: NftElement[] = [];
  let index = 0;
  for (const record of records) {
    attachments.push(recordElement(owner, index++, record, netns));
    if (record.kind === "port") {
      owners.push(ownerElement(portKey(record.claim), owner));
      ports.push(portElement(record.claim));
      if (!isForAnyAddress(record.claim)) perAddress.push(record.claim);
      if (record.claim.isLoopbackLeft) hostLoopback.push({ key: portKey(record.claim) });
    } else {
      owners.push(ownerElement(podKey(record.masqueraded.podAddress), owner));
      masquerade.push(sourceElement(record.masqueraded));
    }
  }
  const table = tableOf(family);
  const changes: NftChange[] = [
    ...perAddress.flatMap(countChanges),
    { kind: "add-elements", table, set: SET.owners, elements: owners },
    { kind: "create-elements", table, set: SET.attachments, elements: attachments },
    { kind: "create-elements", table, set: SET.ports, elements: ports },
  ];
  if (hostLoopback.length > 0) {
    changes.push({ kind: "add-elements", table, set: SET.hostLoopback, elements: hostLoopback });
  }
  if (masquerade.length > 0) changes.push({ kind: "add-elements", table, set: SET.sources, elements: masquerade });
  return changes;
}

/** Removes everything; refused as a whole if any of it no longer belongs to the owner or no longer exists. */
export function releaseChanges(family: Family, owner: Owner, records: readonly PortRecord[]): NftChange[] {
  const owned: NftElement[] = [];
  const ports: NftElement[] = [];
  const sources: NftElement[] = [];
  const counted: NftElement[] = [];
  const hostLoopback: NftElement[] = [];
  const attachments: NftElement[] = [];
  const pods = new Set<bigint>();
  let index = 0;
  for (const record of records) {
    attachments.push({ key: recordKey(owner.id, index++) });
    if (record.kind === "port") {
      owned.push({ key: portKey(record.claim), data: owner.id });
      ports.push({ key: portKey(record.claim) });
      if (!isForAnyAddress(record.claim)) counted.push({ key: portKey(record.claim) });
      if (record.claim.isLoopbackLeft) hostLoopback.push({ key: portKey(record.claim) });
    } else {
      const { podAddress } = record.masqueraded;
      if (!pods.has(podAddress.value)) owned.push({ key: podKey(podAddress), data: owner.id });
      pods.add(podAddress.value);
      sources.push(sourceElement(record.masqueraded));
    }
  }
  const table = tableOf(family);
  const changes: NftChange[] = [
    { kind: "add-elements", table, set: SET.owners, elements: owned },
    { kind: "delete-elements", table, set: SET.owners, elements: owned.map(({ key }) => ({ key })) },
    { kind: "delete-elements", table, set: SET.attachments, elements: attachments },
  ];
  if (ports.length > 0) changes.push({ kind: "delete-elements", table, set: SET.ports, elements: ports });
  if (sources.length > 0) changes.push({ kind: "delete-elements", table, set: SET.sources, elements: sources });
  if (hostLoopback.length > 0) {
    changes.push({ kind: "delete-elements", table, set: SET.hostLoopback, elements: hostLoopback });
  }
  if (counted.length > 0) changes.push({ kind: "delete-elements", table, set: SET.counted, elements: counted });
  return changes;
}

/**
 * Releases the port when no single address uses it any more: EBUSY while one
 * does, EEXIST if an owner has it on every address.
 */
export function uncountChanges(claim: Claim): NftChange[] {
  const table = tableOf(claim.family);
  const chain = countingChain(claim);
  return [
    { kind: "add-elements", table, set: SET.owners, elements: [heldPerAddressElement(claim)] },
    { kind: "delete-elements", table, set: SET.owners, elements: [{ key: anyAddressKey(claim) }] },
    { kind: "add-chain", table, chain: { name: chain } },
    { kind: "delete-chain", table, chain },
  ];
}

/** From now on nobody may own the port on every address. */
function countChanges(claim: Claim): NftChange[] {
  const table = tableOf(claim.family);
  return [
    { kind: "add-chain", table, chain: { name: countingChain(claim) } },
    { kind: "add-elements", table, set: SET.owners, elements: [heldPerAddressElement(claim)] },
    { kind: "add-elements", table, set: SET.counted, elements: [countedElement(claim)] },
  ];
}
