/** The blocks by key, by the nodes that have addresses in them, and by prefix; and which of them count. */
import { type Address, formatAddress } from "../ip/address.ts";
import { ordinalOf } from "../ip/block.ts";
import type { Prefix } from "../ip/prefix.ts";
import { prefixContains } from "../ip/prefix.ts";
import { PrefixIndex } from "../ip/prefix-index.ts";
import { type AroundBlock, whyIgnored } from "./counted-blocks.ts";
import type { RoutedBlock } from "./facts.ts";
import { isSameBlock } from "./routed-block.ts";

export interface BlockChange {
  /** Those that had or have addresses in the block, or in one of the others. */
  readonly nodes: ReadonlySet<string>;
  /** Other blocks that may count from now on, or no longer. */
  readonly others: readonly string[];
}

export class BlockTable {
  private readonly byKey = new Map<string, RoutedBlock>();
  /** Lists: a node has few blocks. */
  private readonly keysByNode = new Map<string, readonly string[]>();
  private readonly keysByPrefix = new PrefixIndex<string>();

  constructor(
    private readonly around: Pick<AroundBlock, "occupied" | "assignedTo"> & {
      readonly pools: () => AroundBlock["pools"];
    },
  ) {}

  /** `undefined` removes the block. Returns `undefined` if nothing has changed. */
  set(key: string, block: RoutedBlock | undefined): BlockChange | undefined {
    const former = this.byKey.get(key);
    if (former === block) return undefined;
    if (former !== undefined && block !== undefined && isSameBlock(former, block)) {
      // Other addresses of it may be assigned, or to others.
      this.byKey.set(key, block);
      return undefined;
    }
    const before = nodesOf(former);
    const after = nodesOf(block);
    for (const node of before) if (!after.has(node)) this.exclude(node, key);
    for (const node of after) if (!before.has(node)) this.include(node, key);
    if (former !== undefined && this.keysByPrefix.get(former.prefix) === key) this.keysByPrefix.delete(former.prefix);
    if (block !== undefined) this.keysByPrefix.set(block.prefix, key);
    if (block === undefined) this.byKey.delete(key);
    else this.byKey.set(key, block);
    const others = former === undefined || block === undefined ? this.overlapped(key, former ?? block) : [];
    const ofOthers = others.flatMap((other) => [...nodesOf(this.byKey.get(other))]);
    return { nodes: new Set([...before, ...after, ...ofOthers]), others };
  }

  get(key: string): RoutedBlock | undefined {
    return this.byKey.get(key);
  }

  keys(): Iterable<string> {
    return this.byKey.keys();
  }

  /** The blocks that belong to the node, or in which it has borrowed addresses. */
  keysOf(node: string): readonly string[] {
    return this.keysByNode.get(node) ?? [];
  }

  /** Whether they count or not. */
  keysOverlapping(prefix: Prefix): readonly string[] {
    return this.keysByPrefix.overlapping(prefix);
  }

  /** Why the block does not count; `undefined` if it does. */
  whyIgnored(block: RoutedBlock): string | undefined {
    const { prefix } = block;
    const overlapping = () => {
      const key = this.keysByPrefix.get(prefix);
      // Sorted: what people read does not depend on the order of changes.
      const [other] = this.keysByPrefix
        .overlapping(prefix)
        .filter((each) => each !== key)
        .toSorted();
      return other === undefined ? undefined : this.byKey.get(other)?.prefix;
    };
    return whyIgnored(block, { ...this.around, pools: this.around.pools(), overlapping });
  }

  /** The block that counts for the address. */
  blockOf(address: Address): RoutedBlock | undefined {
    for (const key of this.keysByPrefix.around(address)) {
      const block = this.byKey.get(key);
      if (block !== undefined && this.whyIgnored(block) === undefined) return block;
    }
    return undefined;
  }

  /** Whether a block says that the address is on the node. */
  hasAddress(node: string, address: Address): boolean {
    for (const key of this.keysOf(node)) {
      const block = this.byKey.get(key);
      if (block === undefined || !prefixContains(block.prefix, address)) continue;
      const holder = block.borrowed.get(formatAddress(address))?.node ?? block.node;
      if (holder === node && this.whyIgnored(block) === undefined) return true;
    }
    return false;
  }

  /** Whether a block says so. */
  isAssigned(address: Address): boolean {
    const block = this.blockOf(address);
    const ordinal = block && ordinalOf(block.prefix, address);
    return ordinal !== undefined && (((block?.assigned ?? 0n) >> BigInt(ordinal)) & 1n) === 1n;
  }

  private overlapped(key: string, block: { readonly prefix: Prefix } | undefined): readonly string[] {
    if (block === undefined) return [];
    return this.keysByPrefix.overlapping(block.prefix).filter((other) => other !== key);
  }

  private include(node: string, key: string): void {
    this.keysByNode.set(node, [...(this.keysByNode.get(node) ?? []), key]);
  }

  private exclude(node: string, key: string): void {
    const others = (this.keysByNode.get(node) ?? []).filter((each) => each !== key);
    if (others.length === 0) this.keysByNode.delete(node);
    else this.keysByNode.set(node, others);
  }
}

function nodesOf(block: RoutedBlock | undefined): ReadonlySet<string> {
  const nodes = new Set<string>();
  if (block?.node !== undefined) nodes.add(block.node);
  for (const { node } of block?.borrowed.values() ?? []) nodes.add(node);
  return nodes;
}
