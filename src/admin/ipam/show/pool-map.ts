/**
 * The blocks of a pool as cells of a map, in the order of their addresses. Pure.
 *
 *   pool  10.0.0.0/8 ──> window  10.4.0.0/14      the part with blocks, if the pool has too many to draw
 *                    ──> cell    10.4.0.0/26      one block, or 2^n of them if the window has too many too
 *
 * Sizes of IPv6 pools exceed 2^53, hence bigint.
 */
import { addressBits } from "../../../ip/address.ts";
import {
  comparePrefixes,
  lastAddress,
  type Prefix,
  prefixAround,
  prefixCovers,
  prefixSize,
} from "../../../ip/prefix.ts";
import { affineNode, type IPAMBlock } from "../../../model/ipam-block.ts";

/** The most cells that a map has: 64 rows of 64. */
const MOST_CELL_BITS = 12;
/** A window is at least one row of cells. */
const ROW_BITS = 6;

export interface MappedPool {
  readonly name: string;
  readonly cidr: Prefix;
  /** The prefix length of its blocks. */
  readonly blockLength: number;
  readonly disabled: boolean;
}

export interface MapRecords {
  readonly blocks: readonly IPAMBlock[];
  /** The CIDRs of unreadable blocks. */
  readonly unreadable: readonly Prefix[];
  readonly reserved: readonly Prefix[];
}

/** A part of the pool: one block, or several. */
export interface Cell {
  readonly blocks: number;
  readonly used: number;
  readonly isUnreadable: boolean;
  /** The nodes of its blocks; `undefined` among them for a block without a node. */
  readonly nodes: ReadonlySet<string | undefined>;
}

export interface PoolMap {
  readonly pool: MappedPool;
  /** The part of the pool that is drawn; the rest of it has no blocks. */
  readonly window: Prefix;
  /** The prefix length of a cell. */
  readonly cellLength: number;
  /** Cells that have blocks, by their index in the window. */
  readonly cells: ReadonlyMap<number, Cell>;
  /** Cells without blocks that are reserved as a whole. */
  readonly reservedCells: (index: number) => boolean;
  readonly blocks: number;
  readonly used: number;
}

export function mapPool(pool: MappedPool, records: MapRecords): PoolMap {
  const blocks = records.blocks.filter(({ cidr }) => prefixCovers(pool.cidr, cidr));
  const unreadable = records.unreadable.filter((cidr) => prefixCovers(pool.cidr, cidr));
  const reserved = records.reserved.filter((cidr) => prefixCovers(pool.cidr, cidr) || prefixCovers(cidr, pool.cidr));
  const window = windowOf(pool, [...blocks.map(({ cidr }) => cidr), ...unreadable]);
  const cellLength = Math.min(pool.blockLength, window.length + MOST_CELL_BITS);
  const indexOf = ({ network }: Prefix) => cellIndex(network.value, window, cellLength);
  const cells = new Map<number, Cell>();
  for (const block of blocks) {
    const index = indexOf(block.cidr);
    cells.set(index, withBlock(cells.get(index) ?? EMPTY, block));
  }
  for (const cidr of unreadable) {
    const index = indexOf(cidr);
    cells.set(index, { ...(cells.get(index) ?? EMPTY), isUnreadable: true });
  }
  return {
    pool,
    window,
    cellLength,
    cells,
    reservedCells: (index) => reserved.some((cidr) => prefixCovers(cidr, cellAt(window, cellLength, index))),
    blocks: blocks.length + unreadable.length,
    used: blocks.reduce((sum, block) => sum + usedIn(block), 0),
  };
}

export function cellCount({ window, cellLength }: Pick<PoolMap, "window" | "cellLength">): number {
  return 2 ** (cellLength - window.length);
}

export function cellAt(window: Prefix, cellLength: number, index: number): Prefix {
  const { family, value } = window.network;
  const bits = BigInt(addressBits(family) - cellLength);
  return { network: { family, value: value + (BigInt(index) << bits) }, length: cellLength };
}

/** The number of addresses in a cell. */
export function cellSize({ window, cellLength }: Pick<PoolMap, "window" | "cellLength">): bigint {
  return prefixSize({ network: window.network, length: cellLength });
}

const EMPTY: Cell = { blocks: 0, used: 0, isUnreadable: false, nodes: new Set() };

function withBlock(cell: Cell, block: IPAMBlock): Cell {
  return {
    ...cell,
    blocks: cell.blocks + 1,
    used: cell.used + usedIn(block),
    nodes: new Set([...cell.nodes, affineNode(block)]),
  };
}

function usedIn({ allocations }: IPAMBlock): number {
  return allocations.reduce<number>((sum, index) => (index === undefined ? sum : sum + 1), 0);
}

/** The whole pool if it can be drawn with a cell for each block; otherwise the smallest part of it that has all blocks. */
function windowOf({ cidr, blockLength }: MappedPool, blocks: readonly Prefix[]): Prefix {
  const sorted = blocks.toSorted(comparePrefixes);
  const [start, end] = [sorted[0], sorted.at(-1)];
  if (start === undefined || end === undefined || blockLength - cidr.length <= MOST_CELL_BITS) return cidr;
  const [first, last] = [start.network.value, lastAddress(end).value];
  const bits = addressBits(cidr.network.family);
  const common = bits - (first ^ last).toString(2).length;
  const length = Math.max(cidr.length, Math.min(common, blockLength - ROW_BITS));
  return prefixAround({ family: cidr.network.family, value: first }, length);
}

function cellIndex(value: bigint, window: Prefix, cellLength: number): number {
  const bits = BigInt(addressBits(window.network.family) - cellLength);
  return Number((value - window.network.value) >> bits);
}
