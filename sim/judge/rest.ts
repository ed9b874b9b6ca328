/**
 * A released address rests: other nodes may still track connections of its former owner. Who asks for it by name gets it
 * only in the namespace that released it; everybody else gets another one, if the block or another one of the node in the
 * same pool has one that has rested. Judged by what the blocks were, and not by what they remember of releases.
 */
import { formatAddress, parseAddress } from "../../src/ip/address.ts";
import { formatPrefix, prefixContains, prefixCovers } from "../../src/ip/prefix.ts";
import { addressAt } from "../../src/ipam/block.ts";
import { REST_MILLISECONDS } from "../../src/ipam/rest.ts";
import { affineNode, type IPAMBlock, NAMESPACE_ATTRIBUTE, NODE_ATTRIBUTE } from "../../src/model/ipam-block.ts";
import type { Invariant, World } from "./invariant.ts";
import { type Holding, type IpamState, ipamReader } from "./ipam-state.ts";

/** From the decision of a call to its write, which may arrive late. */
const LATENESS = 60_000;

interface Freed {
  readonly at: number;
  readonly namespace: string | undefined;
}

export function releasedAddressesRest(read = ipamReader()): Invariant {
  const memory = new RestMemory();
  let last: IpamState | undefined;
  return {
    name: "released addresses rest",
    when: "after each step",
    check(world) {
      const state = read(world.records);
      const before = last;
      last = state;
      if (before === undefined || before.holdings === state.holdings) return [];
      memory.now = world.now;
      const taken = [...state.holdings.values()].filter(({ address }) => !before.holdings.has(address));
      const found = taken.flatMap((holding) => memory.whyTooEarly(holding, { world, before }) ?? []);
      memory.note(before, state);
      return found;
    },
  };
}

class RestMemory {
  now = 0;
  private readonly freed = new Map<string, Freed>();
  /** When a block was first seen with its node. */
  private readonly seen = new Map<string, number>();

  note(before: IpamState, state: IpamState): void {
    for (const { address, secondary } of before.holdings.values()) {
      if (!state.holdings.has(address))
        this.freed.set(address, { at: this.now, namespace: secondary[NAMESPACE_ATTRIBUTE] });
    }
    if (before.blocks === state.blocks) return;
    const present = new Set(state.blocks.map(titleOf));
    for (const title of present) if (!this.seen.has(title)) this.seen.set(title, this.now);
    for (const title of this.seen.keys()) if (!present.has(title)) this.seen.delete(title);
    for (const block of before.blocks) {
      if (state.blocks.some(({ cidr }) => formatPrefix(cidr) === formatPrefix(block.cidr))) continue;
      for (let ordinal = 0; ordinal < block.allocations.length; ordinal++)
        this.freed.delete(formatAddress(addressAt(block, ordinal)));
    }
  }

  /** `undefined` if the address may be taken. */
  whyTooEarly(
    { address, secondary }: Holding,
    { world, before }: { readonly world: World; readonly before: IpamState },
  ): string | undefined {
    const freed = this.freed.get(address);
    if (freed === undefined || this.now - freed.at > REST_MILLISECONDS - LATENESS) return undefined;
    const since = `${address} was released ${((this.now - freed.at) / 1_000).toFixed(1)} s ago`;
    const namespace = secondary[NAMESPACE_ATTRIBUTE];
    const pod = world.pods.get(`${namespace}/${secondary["pod"]}`);
    if (pod?.asksFor === address) {
      if (namespace === freed.namespace) return undefined;
      return `${since} by namespace "${freed.namespace}", and is given by name to pod ${namespace}/${pod.name}`;
    }
    const rested = this.restedBeside(address, before, secondary[NODE_ATTRIBUTE]);
    return rested === undefined ? undefined : `${since}, and is taken before ${rested}`;
  }

  /** An address that could have been taken instead. */
  private restedBeside(text: string, { blocks, pools }: IpamState, node: string | undefined): string | undefined {
    const address = parseAddress(text);
    const own = blocks.find(({ cidr }) => address !== undefined && prefixContains(cidr, address));
    if (own === undefined || affineNode(own) !== node) return undefined;
    const pool = pools.find((each) => prefixCovers(each, own.cidr));
    const candidates = blocks.filter(
      (block) =>
        affineNode(block) === node &&
        pool !== undefined &&
        prefixCovers(pool, block.cidr) &&
        this.now - (this.seen.get(titleOf(block)) ?? this.now) > LATENESS,
    );
    return candidates.flatMap((block) => this.restedIn(block)).at(0);
  }

  private restedIn(block: IPAMBlock): readonly string[] {
    return block.unallocated.flatMap((ordinal) => {
      const text = formatAddress(addressAt(block, ordinal));
      const { at } = this.freed.get(text) ?? { at: Number.NEGATIVE_INFINITY };
      return block.allocations[ordinal] === undefined && this.now - at > REST_MILLISECONDS + LATENESS ? [text] : [];
    });
  }
}

function titleOf(block: IPAMBlock): string {
  return `${formatPrefix(block.cidr)} ${affineNode(block) ?? ""}`;
}
