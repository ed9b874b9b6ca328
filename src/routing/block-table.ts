/** The blocks by key, and by the nodes that have addresses in them. */
import { type Address, formatAddress } from "../ip/address.ts";
import { prefixContains } from "../ip/prefix.ts";
import type { RoutedBlock } from "./facts.ts";
import { isSameBlock } from "./routed-block.ts";

export class BlockTable {
  private readonly byKey = new Map<string, RoutedBlock>();
  /** Lists: a node has few blocks. */
  private readonly keysByNode = new Map<string, readonly string[]>();

  /** `undefined` removes the block. Returns the nodes that had or have addresses in it; `undefined` if nothing has changed. */
  set(key: string, block: RoutedBlock | undefined): ReadonlySet<string> | undefined {
    const former = this.byKey.get(key);
    if (former === block || (former !== undefined && block !== undefined && isSameBlock(former, block)))
      return undefined;
    const before = nodesOf(former);
    const after = nodesOf(block);
    for (const node of before) if (!after.has(node)) this.exclude(node, key);
    for (const node of after) if (!before.has(node)) this.include(node, key);
    if (block === undefined) this.byKey.delete(key);
    else this.byKey.set(key, block);
    return before.union(after);
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

  /** Whether a block says that the address is on the node. */
  hasAddress(node: string, address: Address): boolean {
    for (const key of this.keysOf(node)) {
      const block = this.byKey.get(key);
      if (block === undefined || !prefixContains(block.prefix, address)) continue;
      if ((block.borrowed.get(formatAddress(address))?.node ?? block.node) === node) return true;
    }
    return false;
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
