/**
 * What an owner really has at this moment, element by element. The way of a DEL
 * or an ADD that met something unexpected: another owner in its place, or an
 * element that somebody removed by hand.
 */
import type { Family } from "../../ip/address.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { findElements } from "../../linux/nftables/read.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { podKey, portElement, portKey, recordKey, sourceElement } from "./elements.ts";
import type { KeptRecord } from "./holding.ts";
import { SET, tableOf } from "./table.ts";
import { findRecords } from "./view.ts";

export interface Kept {
  readonly family: Family;
  readonly id: Uint8Array;
  readonly records: readonly KeptRecord[];
  readonly netns: string | undefined;
  /** The keys that are there and are the owner's, by set. */
  readonly keys: Readonly<Record<string, readonly Uint8Array[]>>;
}

export function readKept(socket: NetlinkSocket, family: Family, id: Uint8Array): Kept {
  const { records, netns } = findRecords(socket, family, id);
  const keys: Record<string, Uint8Array[]> = {};
  const keep = (set: string, key: Uint8Array) => {
    keys[set] ??= [];
    if (!keys[set].some((known) => Bun.deepEquals(known, key))) keys[set].push(key);
  };
  const find = (set: string, key: Uint8Array) => findElements(socket, tableOf(family), set, [key])[0];

  for (const [index, record] of records.entries()) {
    keep(SET.attachments, recordKey(id, index));
    const key = record.kind === "port" ? portKey(record.claim) : podKey(record.hidden.podAddress);
    const owner = find(SET.owners, key);
    if (owner !== undefined && !isOwnedBy(owner, id)) continue;
    if (owner !== undefined) keep(SET.owners, key);
    if (record.kind === "source") {
      const source = sourceElement(record.hidden).key;
      if (find(SET.sources, source) !== undefined) keep(SET.sources, source);
      continue;
    }
    if (Bun.deepEquals(find(SET.ports, key)?.data, portElement(record.claim).data)) keep(SET.ports, key);
    if (find(SET.counted, key) !== undefined) keep(SET.counted, key);
  }
  return { family, id, records, netns, keys };
}

/** Removes exactly what was read; for a batch that is refused if anything changed since. */
export function removeChanges({ family, keys }: Kept): NftChange[] {
  const table = tableOf(family);
  return Object.entries(keys).map(([set, list]) => ({
    kind: "delete-elements",
    table,
    set,
    elements: list.map((key) => ({ key })),
  }));
}

export function isOwnedBy({ data }: NftElement, id: Uint8Array): boolean {
  return Bun.deepEquals(data, id);
}
