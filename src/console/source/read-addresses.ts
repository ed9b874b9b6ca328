/** Pools, blocks and addresses as one reader may see them. */
import { blocksOf } from "../../admin/ipam/address-blocks.ts";
import { blockAt, findBlocks } from "../../admin/ipam/blocks.ts";
import { findReserved, poolsIn } from "../../admin/ipam/pools.ts";
import { describeUnreadable } from "../../admin/ipam/unreadable-records.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach, type Unreadable } from "../../datastore/read-each.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { type Address, parseAddress } from "../../ip/address.ts";
import { attributesOf, ordinalIn } from "../../ipam/block.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import { NAMESPACE_ATTRIBUTE } from "../../model/ipam-block.ts";
import { POOL } from "../../model/kinds.ts";
import { quoted } from "../../quote.ts";
import type { AddressDetail, PoolMapAnswer, Pools } from "../api/addresses.ts";
import {
  type AddressRecords,
  addressDetail,
  blockOf,
  blocksIn,
  inOrder,
  type MappedPool,
  type NameSight,
  poolOf,
  strayProblem,
} from "./address-map.ts";
import { BLOCKS_TEXT, POOLS_TEXT, type SeenRecords } from "./visible-store.ts";

export interface AddressMeans {
  readonly store: SeenRecords;
  /** `namespaces`: of whose pods the names are shown if they may be. */
  sightOf(namespaces: readonly string[]): Promise<NameSight>;
  /** By address: why it counts as leaked; or why that is not known. */
  readonly leaks: ReadonlyMap<string, string> | "may not see" | "not searched yet" | "too many";
  readonly now: Date;
}

interface Read extends AddressRecords {
  readonly unreadable: readonly Unreadable[];
}

async function readRecords({ store, leaks, now }: AddressMeans, address?: Address): Promise<Read> {
  const leaked: ReadonlyMap<string, string> = typeof leaks === "string" ? new Map() : leaks;
  const entries = await readAllEntries(store, POOL.prefix());
  const specs = readEach(entries, ({ value, key }) => POOL.codec.read(value, key)).readable;
  const encapsulations = new Map(specs.map((pool) => [pool.metadata.name, encapsulationOf(pool)]));
  const [pools, reserved] = [poolsIn(entries), await findReserved(store)];
  const blocks = address === undefined ? await findBlocks(store) : await blocksOf(store, address);
  return {
    ...{ leaked, now, reserved: reserved.readable, blocks: inOrder(blocks.readable) },
    pools: pools.readable.map(
      (pool): MappedPool => ({ ...pool, encapsulation: encapsulations.get(pool.name) ?? "none" }),
    ),
    unreadableBlocks: blocks.unreadable.flatMap(({ key }) => blockAt(key) ?? []),
    unreadable: [pools, reserved, blocks].flatMap((each) => each.unreadable),
  };
}

function encapsulationOf({ spec: { vxlanMode, ipipMode } }: IPPool): string {
  if (vxlanMode !== "Never") return vxlanMode === "Always" ? "VXLAN" : `VXLAN (${vxlanMode})`;
  if (ipipMode !== "Never") return ipipMode === "Always" ? "IPIP" : `IPIP (${ipipMode})`;
  return "none";
}

const LEAKS_TEXT = "which addresses are leaked";
const TOO_MANY_TEXT = "leaked addresses are not searched for here: too many addresses are in use";
const SEARCH_TEXT = "leaked addresses are being searched for: none is counted yet";

/** None without the blocks: counts of zero would be wrong. */
export async function readPools(means: AddressMeans): Promise<Pools> {
  const records = await readRecords(means);
  const { hidden = [] } = means.store;
  const pools = hidden.includes(BLOCKS_TEXT) ? [] : records.pools;
  const stray = hidden.includes(POOLS_TEXT) ? undefined : strayProblem(records);
  return {
    at: means.now.getTime(),
    pools: pools.map((pool) => poolOf(pool, records)),
    problems: [
      ...records.unreadable.map((each) => ({ message: describeUnreadable(each).message })),
      ...(stray === undefined ? [] : [{ message: stray, command: `${identity.adminTool} ipam check` }]),
      ...(means.leaks === "not searched yet" ? [{ message: SEARCH_TEXT }] : []),
      ...(means.leaks === "too many" ? [{ message: TOO_MANY_TEXT, command: `${identity.adminTool} ipam check` }] : []),
    ],
    hidden: [...hidden, ...(means.leaks === "may not see" ? [LEAKS_TEXT] : [])],
  };
}

export async function* readPoolMap(name: string, means: AddressMeans): AsyncIterable<PoolMapAnswer> {
  const records = await readRecords(means);
  requireSeen(`Cannot show pool ${quoted(name)}`, means.store);
  const pool = records.pools.find((each) => each.name === name);
  if (pool === undefined)
    throw new PluginError("resource-missing", `Cannot show pool ${quoted(name)}: there is no such pool`, {
      details: `${identity.adminTool} get ippools lists them`,
    });
  const sight = await means.sightOf([]);
  yield { pool: poolOf(pool, records) };
  for (const block of blocksIn(pool, records)) yield { block: blockOf(block, records, sight) };
}

export async function readAddress(text: string, means: AddressMeans): Promise<AddressDetail> {
  const address = parseAddress(text);
  if (address === undefined)
    throw new PluginError("resource-invalid", `Cannot show address ${quoted(text)}: it is not an IP address`, {
      details: "use an address such as 10.0.0.1 or fd00::1",
    });
  const records = await readRecords(means, address);
  requireSeen(`Cannot show address ${quoted(text)}`, means.store);
  const [unreadable] = records.unreadable;
  if (unreadable !== undefined && records.blocks.length === 0)
    throw new PluginError("record-malformed", describeUnreadable(unreadable).message);
  return addressDetail(address, records, await means.sightOf(ownersOf(address, records)));
}

/** The namespaces that have the address, or had it. */
function ownersOf(address: Address, { blocks }: AddressRecords): readonly string[] {
  return blocks.flatMap((block) => {
    const ordinal = ordinalIn(block, address) ?? -1;
    const present = attributesOf(block, ordinal)?.secondary[NAMESPACE_ATTRIBUTE];
    return [present, block.released?.[ordinal]?.namespace].filter((namespace) => namespace !== undefined);
  });
}

function requireSeen(action: string, { hidden = [] }: SeenRecords): void {
  const [missing] = hidden.filter((text) => text === BLOCKS_TEXT || text === POOLS_TEXT);
  if (missing === undefined) return;
  throw new PluginError("api-unavailable", `${action}: you may not list ${missing}`, {
    details: `an administrator can allow you to list ippools, ipreservations and ipamblocks of this product's API`,
  });
}
