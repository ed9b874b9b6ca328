/** The records of IPAM, decoded. Each record is decoded once, and everything is the same object until one changes. */
import type { Entry } from "../../src/datastore/datastore.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { readHandleEntry } from "../../src/ipam/all-records.ts";
import { addressAt, attributesOf } from "../../src/ipam/block.ts";
import type { IpamRecords } from "../../src/ipam/invariants.ts";
import { decodeBlock, decodePool } from "../../src/ipam/records.ts";
import { readAffinity } from "../../src/model/block-affinity.ts";
import { CONTAINER_ATTRIBUTE } from "../../src/model/kept-address.ts";
import {
  ALL_AFFINITIES_PREFIX,
  blocksPrefix,
  HANDLES_PREFIX,
  parseKey,
  resourcesPrefix,
} from "../../src/model/keys.ts";
import { type Records, unchangedWhileSame } from "./records.ts";

/** An address that is held, as its block says. */
export interface Holding {
  readonly address: string;
  readonly handle: string | undefined;
  readonly secondary: Readonly<Record<string, string>>;
}

/** Whether it is the container's: by its handle, or, if it is kept for a pod, as the one that uses it. */
export function isUsedBy({ handle, secondary }: Holding, containerId: string): boolean {
  return handle?.endsWith(`.${containerId}`) === true || secondary[CONTAINER_ATTRIBUTE] === containerId;
}

export interface IpamState extends IpamRecords {
  /** By address. */
  readonly holdings: ReadonlyMap<string, Holding>;
}

/** Returns the present state of these records. */
export function ipamReader(): (records: Records) => IpamState {
  const readPools = unchangedWhileSame([resourcesPrefix("ippools")], (entry) => decodePool(entry).cidr);
  const readBlocks = unchangedWhileSame([blocksPrefix(4), blocksPrefix(6)], decodeBlock);
  const readHandles = unchangedWhileSame([HANDLES_PREFIX], (entry) => readHandleEntry(entry));
  const readAffinities = unchangedWhileSame([ALL_AFFINITIES_PREFIX], affinityOf);
  let seen: string | undefined;
  let last: IpamState | undefined;
  return (records) => {
    if (last !== undefined && seen === records.revision) return last;
    seen = records.revision;
    const [pools, blocks] = [readPools(records), readBlocks(records)];
    const [handles, affinities] = [readHandles(records), readAffinities(records)];
    const isSame =
      last?.pools === pools && last.blocks === blocks && last.handles === handles && last.affinities === affinities;
    if (last === undefined || !isSame) last = { pools, blocks, handles, affinities, holdings: holdingsOf(blocks) };
    return last;
  };
}

function affinityOf(entry: Entry): IpamRecords["affinities"][number] | undefined {
  const parts = parseKey(entry.key);
  if (parts?.kind !== "affinity") return undefined;
  const { node, cidr, state } = readAffinity(entry.value, entry.key, parts);
  return { node, cidr, state };
}

function holdingsOf(blocks: IpamRecords["blocks"]): ReadonlyMap<string, Holding> {
  const holdings = new Map<string, Holding>();
  for (const block of blocks) {
    block.allocations.forEach((index, ordinal) => {
      if (index === undefined) return;
      const attributes = attributesOf(block, ordinal);
      const address = formatAddress(addressAt(block, ordinal));
      holdings.set(address, { address, handle: attributes?.handleId, secondary: attributes?.secondary ?? {} });
    });
  }
  return holdings;
}
