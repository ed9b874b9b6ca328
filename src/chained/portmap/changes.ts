/**
 * The steps of a batch that gives an owner its ports, or takes them away. Pure.
 *
 * The kernel takes a batch whole or not at all, and says EEXIST when a key is
 * there with other data. So `add owner, delete owner` in front removes only what
 * is still the owner's, without looking first and without a lock.
 */
import type { Family } from "../../ip/address.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import type { Owner } from "./attachment.ts";
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
import type { Holding, KeptRecord } from "./holding.ts";
import { SET, tableOf } from "./table.ts";

/** Gives the owner all its records; EEXIST where it has some already, or somebody else has one of its ports. */
export function takeChanges(holding: Holding): NftChange[] {
  const { family, owner, records, netns } = holding;
  const owners: NftElement[] = [];
  const ports: NftElement[] = [];
  const masquerade: NftElement[] = [];
  const attachments: NftElement[] = [];
  const perAddress: Claim[] = [];
  let index = 0;
  for (const record of records) {
    attachments.push(recordElement(owner, index++, record, netns));
    if (record.kind === "port") {
      owners.push(ownerElement(portKey(record.claim), owner));
      ports.push(portElement(record.claim));
      if (!isForAnyAddress(record.claim)) perAddress.push(record.claim);
    } else {
      owners.push(ownerElement(podKey(record.hidden.podAddress), owner));
      masquerade.push(sourceElement(record.hidden));
    }
  }
  const table = tableOf(family);
  const changes: NftChange[] = [
    ...perAddress.flatMap(countChanges),
    { kind: "add-elements", table, set: SET.owners, elements: owners },
    { kind: "create-elements", table, set: SET.attachments, elements: attachments },
    { kind: "create-elements", table, set: SET.ports, elements: ports },
  ];
  if (masquerade.length > 0) changes.push({ kind: "add-elements", table, set: SET.sources, elements: masquerade });
  return changes;
}

/** Takes everything away; refused as a whole where one of them is not the owner's any more, or gone. */
export function releaseChanges(family: Family, owner: Owner, records: readonly KeptRecord[]): NftChange[] {
  const owned: NftElement[] = [];
  const ports: NftElement[] = [];
  const sources: NftElement[] = [];
  const counted: NftElement[] = [];
  const attachments: NftElement[] = [];
  const pods = new Set<bigint>();
  let index = 0;
  for (const record of records) {
    attachments.push({ key: recordKey(owner.id, index++) });
    if (record.kind === "port") {
      owned.push({ key: portKey(record.claim), data: owner.id });
      ports.push({ key: portKey(record.claim) });
      if (!isForAnyAddress(record.claim)) counted.push({ key: portKey(record.claim) });
    } else {
      const { podAddress } = record.hidden;
      if (!pods.has(podAddress.value)) owned.push({ key: podKey(podAddress), data: owner.id });
      pods.add(podAddress.value);
      sources.push(sourceElement(record.hidden));
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
  if (counted.length > 0) changes.push({ kind: "delete-elements", table, set: SET.counted, elements: counted });
  return changes;
}

/**
 * Gives up the port for good when no single address holds it any more: EBUSY
 * while one does, EEXIST where somebody has it on every address.
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

/** Nobody may have the port on every address from now on. */
function countChanges(claim: Claim): NftChange[] {
  const table = tableOf(claim.family);
  return [
    { kind: "add-chain", table, chain: { name: countingChain(claim) } },
    { kind: "add-elements", table, set: SET.owners, elements: [heldPerAddressElement(claim)] },
    { kind: "add-elements", table, set: SET.counted, elements: [countedElement(claim)] },
  ];
}
