/** Reads all IPAM records, page by page: for checks and reports, never during an ADD. */
import type { Datastore, Entry } from "../datastore/datastore.ts";
import { readAllEntries } from "../datastore/pages.ts";
import { readEach, type Unreadable } from "../datastore/read-each.ts";
import { PluginError } from "../errors.ts";
import { parsePrefix } from "../ip/prefix.ts";
import { type Keys, PRODUCT_KEYS } from "../model/keys.ts";
import type { IpamRecords } from "./invariants.ts";
import { markOverlapping } from "./overlapping-pools.ts";
import { decodeAffinity, decodeBlock, decodeHandle, decodePool } from "./records.ts";

/** Fails at the first unreadable record. */
export async function readAllRecords(store: Datastore): Promise<IpamRecords> {
  const { records, unreadable } = await readValidRecords(store);
  if (unreadable[0]) throw unreadable[0].failure;
  return records;
}

/** The readable records, and separately the unreadable ones. `keys`: the key layout, for another product's records. */
export async function readValidRecords(
  store: Datastore,
  keys: Keys = PRODUCT_KEYS,
): Promise<{ readonly records: IpamRecords; readonly unreadable: readonly Unreadable[] }> {
  const pools = readEach(await readAllEntries(store, keys.resourcesPrefix("ippools")), decodePool);
  const affinities = readEach(await readAllEntries(store, keys.allAffinitiesPrefix), (entry) =>
    affinityOf(entry, keys),
  );
  const handles = readEach(await readAllEntries(store, keys.allHandlesPrefix), (entry) => readHandleEntry(entry, keys));
  const blockEntries = [
    ...(await readAllEntries(store, keys.blocksPrefix(4))),
    ...(await readAllEntries(store, keys.blocksPrefix(6))),
  ];
  const blocks = readEach(blockEntries, decodeBlock);
  return {
    records: {
      pools: pools.readable.map(({ cidr }) => cidr),
      overlappingPools: markOverlapping(pools.readable).flatMap(({ name, overlaps }) =>
        overlaps === undefined ? [] : [{ name, overlaps }],
      ),
      blocks: blocks.readable,
      handles: handles.readable,
      affinities: affinities.readable,
    },
    unreadable: [pools, affinities, handles, blocks].flatMap(({ unreadable }) => unreadable),
  };
}

function affinityOf(entry: Entry, keys: Keys): IpamRecords["affinities"][number] | undefined {
  const parts = keys.parseKey(entry.key);
  const affinity = decodeAffinity(entry, keys);
  if (parts?.kind !== "affinity" || !affinity) return undefined;
  return { node: parts.node, cidr: affinity.cidr, state: affinity.state };
}

/** Throws if the name of one of the handle's blocks is not a valid CIDR. */
export function readHandleEntry(entry: Entry, keys: Keys = PRODUCT_KEYS): IpamRecords["handles"][number] | undefined {
  const parts = keys.parseKey(entry.key);
  if (parts?.kind !== "handle") return undefined;
  const { blocks } = decodeHandle(entry);
  const wrong = Object.keys(blocks).find((name) => !parsePrefix(name));
  if (wrong === undefined) return { handleId: parts.handleId, blocks };
  throw new PluginError("record-malformed", `Cannot read IPAMHandle at "${entry.key}": "${wrong}" is not a block`);
}
