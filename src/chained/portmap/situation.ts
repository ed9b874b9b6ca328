/**
 * Everything that stands in the way of a holding, read once. Deciding what to do
 * about it is in plan.ts.
 */
import type { Family } from "../../ip/address.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { findElements, listElements } from "../../linux/nftables/read.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { type Claim, isForAnyAddress } from "./claim.ts";
import { anyAddressKey, HELD_PER_ADDRESS, podKey, portKey } from "./elements.ts";
import { type Holding, type KeptRecord, recordOf } from "./holding.ts";
import { isOwnedBy, type Kept, readKept } from "./kept.ts";
import { isNetnsGone } from "./netns-mark.ts";
import { type Base, holdersPerAddress, readBase } from "./survey.ts";
import { needsNeighbourRule, SET, tableOf } from "./table.ts";

/** Somebody else, or the owner's own past. */
export interface Rival {
  readonly kept: Kept;
  /** As the comment beside the port names it, perhaps cut. */
  readonly name: string;
  readonly isGone: boolean;
}

export interface Situation {
  readonly base: Base;
  /** What the owner has already. */
  readonly own: Kept;
  /** Who has a key that the holding wants, by the key in hex: several hold one port on single addresses. */
  readonly rivals: ReadonlyMap<string, readonly Rival[]>;
  /** Ports (keys for any address, in hex) that are held on single addresses, or were and the note of it stayed. */
  readonly heldPerAddress: ReadonlySet<string>;
  /** Prefix lengths of every neighbour in the table. */
  readonly lengths: readonly number[];
}

export function readSituation(socket: NetlinkSocket, holding: Holding): Situation {
  const { family, owner, records } = holding;
  const rivals = new Map<string, readonly Rival[]>();
  const heldPerAddress = new Set<string>();
  const known = new Map<string, Rival>();
  const meet = (element: NftElement) => {
    const id = element.data instanceof Uint8Array ? element.data : HELD_PER_ADDRESS;
    const rival = known.get(id.toHex()) ?? readRival(socket, family, element, id);
    known.set(id.toHex(), rival);
    return rival;
  };
  for (const record of records) {
    for (const key of keysOf(record)) {
      const [element] = findElements(socket, tableOf(family), SET.owners, [key]);
      if (element === undefined || isOwnedBy(element, owner.id)) continue;
      if (!isOwnedBy(element, HELD_PER_ADDRESS)) rivals.set(key.toHex(), [meet(element)]);
      else if (isAboutEveryAddress(record)) {
        heldPerAddress.add(key.toHex());
        const holders = holdersPerAddress(socket, family, key).filter((each) => !isOwnedBy(each, owner.id));
        rivals.set(key.toHex(), holders.map(meet));
      }
    }
  }
  const lengths = neighbourLengths(socket, holding);
  return {
    base: readBase(socket, family, lengths),
    own: readKept(socket, family, owner.id),
    rivals,
    heldPerAddress,
    lengths,
  };
}

/** Whoever has a single address is in the way of every address, not of another single one. */
function isAboutEveryAddress(record: KeptRecord): boolean {
  return record.kind === "port" && isForAnyAddress(record.claim);
}

/** A port of a single address collides with itself and with the same port of every address. */
function keysOf(record: KeptRecord): readonly Uint8Array[] {
  if (record.kind === "source") return [podKey(record.hidden.podAddress)];
  return claimKeys(record.claim);
}

export function claimKeys(claim: Claim): readonly Uint8Array[] {
  return isForAnyAddress(claim) ? [portKey(claim)] : [portKey(claim), anyAddressKey(claim)];
}

function readRival(socket: NetlinkSocket, family: Family, element: NftElement, id: Uint8Array): Rival {
  const kept = readKept(socket, family, id);
  return { kept, name: element.comment ?? id.toHex(), isGone: isNetnsGone(kept.netns) };
}

/** Of everybody, since a repair makes the rules of all anew. */
function neighbourLengths(socket: NetlinkSocket, holding: Holding): readonly number[] {
  const lengths = new Set<number>();
  const note = (record: KeptRecord | undefined) => {
    if (record?.kind !== "source") return;
    if (needsNeighbourRule(holding.family, record.hidden.length)) lengths.add(record.hidden.length);
  };
  for (const element of listElements(socket, tableOf(holding.family), SET.attachments)) {
    note(recordOf(holding.family, element));
  }
  for (const record of holding.records) note(record);
  return [...lengths];
}
