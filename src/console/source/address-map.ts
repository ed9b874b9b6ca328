/**
 * What pools, blocks and single addresses are, for the map of the console. Pure.
 *
 * Who may list blocks may know which addresses are in use; whose they are is said of namespaces whose pods the reader may list.
 */
import { allocationAt } from "../../admin/ipam/address-blocks.ts";
import { type Allocation, allocationsOf, keptOfAllocation } from "../../admin/ipam/blocks.ts";
import { type RestState, restState } from "../../admin/ipam/rest-state.ts";
import { poolUsage } from "../../admin/ipam/usage.ts";
import { counted } from "../../counted.ts";
import { identity } from "../../identity.ts";
import { type Address, formatAddress } from "../../ip/address.ts";
import { comparePrefixes, formatPrefix, type Prefix, prefixContains, prefixCovers } from "../../ip/prefix.ts";
import { addressAt, attributesOf, ordinalIn } from "../../ipam/block.ts";
import type { Pool as IpamPool } from "../../ipam/pools.ts";
import { describeFormerOwner, restLeftIn } from "../../ipam/rest.ts";
import { affineNode, type IPAMBlock, NODE_ATTRIBUTE } from "../../model/ipam-block.ts";
import { endOfKeeping, isWaiting } from "../../model/kept-address.ts";
import { tunnelTitle } from "../../model/tunnel-address.ts";
import { ADDRESS_USES, type AddressDetail, type AddressUse, type Block, type Pool } from "../api/addresses.ts";
import { creationOf, forecastOf } from "./forecast.ts";

export interface MappedPool extends IpamPool {
  /** `VXLAN (CrossSubnet)`, `none`. */
  readonly encapsulation: string;
}

export interface AddressRecords {
  readonly pools: readonly MappedPool[];
  /** In the order of their addresses. */
  readonly blocks: readonly IPAMBlock[];
  readonly unreadableBlocks: readonly Prefix[];
  readonly reserved: readonly Prefix[];
  /** By address: why it counts as leaked. */
  readonly leaked: ReadonlyMap<string, string>;
  readonly now: Date;
}

/** Whose names the reader may see. */
export interface NameSight {
  readonly nodes: boolean;
  /** `undefined`: containers without a namespace. */
  readonly podsOf: (namespace: string | undefined) => boolean;
}

export const EVERY_NAME: NameSight = { nodes: true, podsOf: () => true };

type Circumstances = Pick<AddressRecords, "reserved" | "leaked" | "now">;

/** A letter of `ADDRESS_USES` for each address. */
function useOf(block: IPAMBlock, { reserved, leaked, now }: Circumstances): string {
  const within = reserved.filter((prefix) => prefixCovers(prefix, block.cidr) || prefixCovers(block.cidr, prefix));
  const node = affineNode(block);
  const hasLeaks = leaked.size > 0;
  let letters = "";
  for (let ordinal = 0; ordinal < block.allocations.length; ordinal++) {
    const attribute = attributesOf(block, ordinal);
    const secondary = attribute?.secondary;
    if (secondary === undefined) letters += freeLetter(block, ordinal, { reserved: within, now });
    else if (hasLeaks && leaked.has(formatAddress(addressAt(block, ordinal)))) letters += "l";
    else if (tunnelTitle(secondary) !== undefined) letters += "t";
    else if (isWaiting(attribute)) letters += "k";
    else letters += secondary[NODE_ATTRIBUTE] === undefined || secondary[NODE_ATTRIBUTE] === node ? "u" : "b";
  }
  return letters;
}

function freeLetter(block: IPAMBlock, ordinal: number, { reserved, now }: Omit<Circumstances, "leaked">): AddressUse {
  if (block.allocations[ordinal] !== undefined) return "u";
  if (reserved.length > 0 && reserved.some((prefix) => prefixContains(prefix, addressAt(block, ordinal)))) return "r";
  return restLeftIn(block, ordinal, now) > 0 ? "R" : ".";
}

const MOST_LETTERS = 4_096;

export function blockOf(block: IPAMBlock, records: Circumstances, sight: NameSight): Block {
  const use = useOf(block, records);
  const node = sight.nodes ? affineNode(block) : undefined;
  return {
    cidr: formatPrefix(block.cidr),
    ...(node === undefined ? {} : { node }),
    free: countOf(use, ".") + countOf(use, "R"),
    ...(use.length > MOST_LETTERS ? {} : { use }),
  };
}

function countOf(use: string, letter: AddressUse): number {
  let count = 0;
  for (let at = use.indexOf(letter); at >= 0; at = use.indexOf(letter, at + 1)) count += 1;
  return count;
}

export function blocksIn(pool: Pick<MappedPool, "cidr">, { blocks }: AddressRecords): readonly IPAMBlock[] {
  return blocks.filter(({ cidr }) => prefixCovers(pool.cidr, cidr));
}

export function poolOf(pool: MappedPool, records: AddressRecords): Pool {
  const blocks = blocksIn(pool, records);
  const usage = poolUsage(pool, { blocks, unreadable: records.unreadableBlocks, reserved: records.reserved });
  const counts = { borrowed: 0, leaked: 0, kept: 0, resting: 0 };
  for (const block of blocks) {
    const use = useOf(block, records);
    counts.borrowed += countOf(use, "b");
    counts.leaked += countOf(use, "l");
    counts.kept += countOf(use, "k");
    counts.resting += countOf(use, "R");
  }
  const growth = { used: usage.used, free: usage.free, now: records.now.getTime() };
  const forecast = pool.disabled ? undefined : forecastOf({ ...growth, blocksCreated: blocks.map(creationOf) });
  const { name, blockLength, disabled, nodeSelector, namespaces, encapsulation } = pool;
  return {
    ...{ name, cidr: usage.cidr, blockSize: blockLength, disabled, nodeSelector, encapsulation },
    ...(namespaces === undefined ? {} : { namespaceSelector: namespaces.selector }),
    counts: {
      ...{ size: String(usage.size), used: Number(usage.used), reserved: Number(usage.reserved), ...counts },
      blocks: blocks.length + usage.unreadableBlocks.length,
    },
    ...(forecast === undefined ? {} : { forecast }),
  };
}

/** Blocks that no pool contains. */
function strayBlocks({ pools, blocks }: AddressRecords): readonly IPAMBlock[] {
  return blocks.filter((block) => pools.every(({ cidr }) => !prefixCovers(cidr, block.cidr)));
}

export function strayProblem(records: AddressRecords): string | undefined {
  const used = strayBlocks(records).flatMap(allocationsOf).length;
  return used === 0
    ? undefined
    : `${counted(used, "address is in use that no pool contains", "addresses are in use that no pool contains")}`;
}

export function inOrder(blocks: readonly IPAMBlock[]): readonly IPAMBlock[] {
  return blocks.toSorted((left, right) => comparePrefixes(left.cidr, right.cidr));
}

const { adminTool } = identity;

/** `records.blocks`: those of any size that may have the address. */
export function addressDetail(address: Address, records: AddressRecords, sight: NameSight): AddressDetail {
  const text = formatAddress(address);
  const pool = records.pools.find(({ cidr }) => prefixContains(cidr, address))?.name;
  const around = records.blocks.filter(({ cidr }) => prefixContains(cidr, address));
  const block = around.find((each) => allocationAt(each, address) !== undefined) ?? around[0];
  const place = { address: text, ...(pool === undefined ? {} : { pool }) };
  if (block === undefined) {
    const isReserved = records.reserved.some((prefix) => prefixContains(prefix, address));
    return { ...place, use: isReserved ? "r" : ".", ...freeReason({ pool, isReserved }) };
  }
  const within = { ...place, block: formatPrefix(block.cidr) };
  const use = letterAt(block, address, records);
  const allocation = allocationAt(block, address);
  if (allocation !== undefined) return { ...within, use, ...ownerPart(allocation, { text, use, records, sight }) };
  const node = sight.nodes ? affineNode(block) : undefined;
  return {
    ...{ ...within, use },
    ...(node === undefined ? {} : { node }),
    ...(use === "R"
      ? restReason(restState(block, address, records.now), sight)
      : freeReason({ pool, isReserved: use === "r" })),
  };
}

function letterAt(block: IPAMBlock, address: Address, records: AddressRecords): AddressUse {
  const letter = useOf(block, records)[ordinalIn(block, address) ?? -1];
  return LETTERS.find((each) => each === letter) ?? ".";
}

const LETTERS = Object.keys(ADDRESS_USES) as readonly AddressUse[];

function ownerPart(
  allocation: Allocation,
  { text, use, records, sight }: { text: string; use: AddressUse; records: AddressRecords; sight: NameSight },
): Partial<AddressDetail> {
  const { handle, secondary } = allocation;
  const { pod, namespace, container, timestamp, [NODE_ATTRIBUTE]: node } = secondary;
  const tunnel = tunnelTitle(secondary);
  const since = Date.parse(timestamp ?? "");
  const isShown = tunnel === undefined ? sight.podsOf(namespace) : sight.nodes;
  const owner =
    tunnel !== undefined
      ? `${tunnel} of node ${node ?? "unknown"}`
      : pod !== undefined
        ? `pod ${namespace ?? "unknown"}/${pod}`
        : `container ${container ?? handle ?? "unknown"}`;
  const leak = use === "l" ? records.leaked.get(text) : undefined;
  return {
    ...(node === undefined || !sight.nodes ? {} : { node }),
    ...(isShown ? { owner } : {}),
    ...(Number.isNaN(since) ? {} : { since }),
    ...(isShown && handle !== undefined ? { handle } : {}),
    ...(use === "k" ? waitingReason(allocation, isShown) : {}),
    ...(leak === undefined
      ? {}
      : { reason: isShown ? leak : "it has no endpoint: what had it is gone", command: `${adminTool} ipam check` }),
  };
}

function waitingReason(allocation: Allocation, isShown: boolean): Partial<AddressDetail> {
  const kept = keptOfAllocation(allocation);
  const end = kept && endOfKeeping(kept)?.toISOString();
  const until = end === undefined ? "until it is released" : `until ${end}`;
  const { pod, namespace } = allocation.secondary;
  const command = isShown && pod !== undefined ? `${adminTool} ipam release --pod ${namespace}/${pod}` : undefined;
  return {
    reason: `it waits for its owner ${until}: nobody else gets it`,
    ...(command === undefined ? {} : { command }),
  };
}

function freeReason({ pool, isReserved }: { pool: string | undefined; isReserved: boolean }): Partial<AddressDetail> {
  if (isReserved)
    return { reason: "an IPReservation covers it: it is not assigned", command: `${adminTool} get ipreservations` };
  return pool === undefined ? { reason: "no pool contains it: it is not assigned" } : {};
}

function restReason(rest: RestState | undefined, sight: NameSight): Partial<AddressDetail> {
  if (rest === undefined) return {};
  const { at, restsUntil, ...former } = rest;
  const by = sight.podsOf(former.namespace) ? describeFormerOwner(former) : undefined;
  const until = `it rests for other owners until ${restsUntil}`;
  return { since: Date.parse(at), reason: `released${by === undefined ? "" : ` by ${by}`}; ${until}` };
}
