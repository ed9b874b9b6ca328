/**
 * What an owner really has at this moment, element by element. For a DEL or ADD
 * that met something unexpected: another owner, or an element that was removed
 * by hand.
 */
import type { Family } from "../../ip/address.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { findElements, listElements } from "../../linux/nftables/read.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import {
  claimOf,
  isPodKey,
  isRecordKeyOf,
  isSourceOf,
  masqueradedSourceOf,
  podKey,
  portElement,
  portKey,
  sourceElement,
} from "./elements.ts";
import { type PortRecord, recordOf } from "./port-records.ts";
import { SET, tableOf } from "./table.ts";

export interface OwnedElements {
  readonly family: Family;
  readonly id: Uint8Array;
  readonly records: readonly PortRecord[];
  readonly netns: string | undefined;
  /** The existing keys that belong to the owner, by set. */
  readonly keys: Readonly<Record<string, readonly Uint8Array[]>>;
}

/** Reads whole maps, so that an element without a record is found too. */
export function readOwnedElements(socket: NetlinkSocket, family: Family, id: Uint8Array): OwnedElements {
  const table = tableOf(family);
  const notes = listElements(socket, table, SET.attachments).filter(({ key }) => isRecordKeyOf(id, key));
  const owned = listElements(socket, table, SET.owners).filter((element) => isOwnedBy(element, id));
  const noted = notes.flatMap((note) => recordOf(family, note) ?? []);
  const records = [...noted, ...recordsWithoutNote(socket, { family, owned, noted })];
  const keys: Record<string, Uint8Array[]> = {
    [SET.attachments]: notes.map(({ key }) => key),
    [SET.owners]: owned.map(({ key }) => key),
  };
  const keep = (set: string, key: Uint8Array) => {
    keys[set] ??= [];
    if (!keys[set].some((known) => Bun.deepEquals(known, key))) keys[set].push(key);
  };
  const find = (set: string, key: Uint8Array) => findElements(socket, table, set, [key])[0];

  for (const record of records) {
    const key = keyOf(record);
    const owner = find(SET.owners, key);
    if (owner !== undefined && !isOwnedBy(owner, id)) continue;
    if (record.kind === "source") {
      const source = sourceElement(record.masqueraded).key;
      if (find(SET.sources, source) !== undefined) keep(SET.sources, source);
      continue;
    }
    const port = find(SET.ports, key);
    const leadsToPod = Bun.deepEquals(port?.data, portElement(record.claim).data);
    if (port !== undefined && (owner !== undefined || leadsToPod)) keep(SET.ports, key);
    for (const set of [SET.counted, SET.hostLoopback]) if (find(set, key) !== undefined) keep(set, key);
  }
  return { family, id, records, netns: notes.find(({ comment }) => comment !== undefined)?.comment, keys };
}

interface Owned {
  readonly family: Family;
  readonly owned: readonly NftElement[];
  readonly noted: readonly PortRecord[];
}

/** What the owner has without a record; the prefix length of a source is lost then. */
function recordsWithoutNote(socket: NetlinkSocket, { family, owned, noted }: Owned): readonly PortRecord[] {
  const table = tableOf(family);
  const lost = owned.filter(({ key }) => !noted.some((record) => Bun.deepEquals(keyOf(record), key)));
  return lost.flatMap(({ key }): readonly PortRecord[] => {
    if (!isPodKey(key)) {
      const [port] = findElements(socket, table, SET.ports, [key]);
      return [{ kind: "port", claim: claimOf(family, key, port?.data) }];
    }
    const sources = listElements(socket, table, SET.sources).filter((source) => isSourceOf(key, source));
    return sources.map((source) => ({ kind: "source", masqueraded: masqueradedSourceOf(family, source) }));
  });
}

function keyOf(record: PortRecord): Uint8Array {
  return record.kind === "port" ? portKey(record.claim) : podKey(record.masqueraded.podAddress);
}

/** Removes exactly what was read; for a batch that is refused if anything changed since. */
export function removeChanges({ family, keys }: OwnedElements): NftChange[] {
  const table = tableOf(family);
  return Object.entries(keys)
    .filter(([, list]) => list.length > 0)
    .map(([set, list]) => ({ kind: "delete-elements", table, set, elements: list.map((key) => ({ key })) }));
}

export function isOwnedBy({ data }: NftElement, id: Uint8Array): boolean {
  return Bun.deepEquals(data, id);
}
