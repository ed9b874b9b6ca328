/**
 * Everything that conflicts with the requested records, read once. What to do
 * about it is decided in conflict-plan.ts.
 */
import type { Family } from "../../ip/address.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { isNetnsGone } from "../../linux/netns-mark.ts";
import { findElements, listElements } from "../../linux/nftables/read.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { type Claim, isForAnyAddress } from "./claim.ts";
import { anyAddressKey, HELD_PER_ADDRESS, podKey, portKey } from "./elements.ts";
import { isOwnedBy, type OwnedElements, readOwnedElements } from "./owned-elements.ts";
import { type PortRecord, type RecordSet, recordOf } from "./port-records.ts";
import { type Base, holdersPerAddress, readBase } from "./read-table.ts";
import { needsNeighbourRule, SET, tableOf } from "./table.ts";

/** Another owner of something that is requested. */
export interface Rival {
  readonly kept: OwnedElements;
  /** From the comment of the port, possibly truncated. */
  readonly name: string;
  readonly isGone: boolean;
}

export interface Conflicts {
  readonly base: Base;
  /** What the owner has already. */
  readonly own: OwnedElements;
  /** The owners of each requested key, by the key in hex: several may own one port on single addresses. */
  readonly rivals: ReadonlyMap<string, readonly Rival[]>;
  /** Ports (keys for any address, in hex) with the note that they are in use on single addresses, even if they no longer are. */
  readonly heldPerAddress: ReadonlySet<string>;
  /** Prefix lengths of every neighbour in the table. */
  readonly lengths: readonly number[];
}

export function readConflicts(socket: NetlinkSocket, recordSet: RecordSet): Conflicts {
  const { family, owner, records } = recordSet;
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
  const lengths = neighbourLengths(socket, recordSet);
  return {
    base: readBase(socket, family, lengths),
    own: readOwnedElements(socket, family, owner.id),
    rivals,
    heldPerAddress,
    lengths,
  };
}

/** An owner of a single address conflicts with every address, but not with another single one. */
function isAboutEveryAddress(record: PortRecord): boolean {
  return record.kind === "port" && isForAnyAddress(record.claim);
}

/** A port of a single address conflicts with itself and with the same port of every address. */
export function keysOf(record: PortRecord): readonly Uint8Array[] {
  if (record.kind === "source") return [podKey(record.masqueraded.podAddress)];
  return claimKeys(record.claim);
}

export function claimKeys(claim: Claim): readonly Uint8Array[] {
  return isForAnyAddress(claim) ? [portKey(claim)] : [portKey(claim), anyAddressKey(claim)];
}

function readRival(socket: NetlinkSocket, family: Family, element: NftElement, id: Uint8Array): Rival {
  const kept = readOwnedElements(socket, family, id);
  return { kept, name: element.comment ?? id.toHex(), isGone: isNetnsGone(kept.netns) };
}

/** Of all owners, since a repair writes the rules of all of them. */
function neighbourLengths(socket: NetlinkSocket, recordSet: RecordSet): readonly number[] {
  const lengths = new Set<number>();
  const note = (record: PortRecord | undefined) => {
    if (record?.kind !== "source") return;
    if (needsNeighbourRule(recordSet.family, record.masqueraded.length)) lengths.add(record.masqueraded.length);
  };
  for (const element of listElements(socket, tableOf(recordSet.family), SET.attachments)) {
    note(recordOf(recordSet.family, element));
  }
  for (const record of recordSet.records) note(record);
  return [...lengths];
}
