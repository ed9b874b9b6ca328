/**
 * How long a released address rests.
 *
 * Every node tracks the connections of the pods that its own pods have talked to, and packets of a tracked
 * connection pass without policy. DEL and the agents forget those of a pod that is gone, but an agent may be stopped,
 * or late. So an address is not used by another owner before the kernel has forgotten them by itself: 120 s after the
 * last packet for UDP (`nf_conntrack_udp_timeout_stream`), plus a minute by which the clocks of two nodes may differ.
 * (TCP is tracked for longer, but a new connection with the sequence numbers of an old one is not.)
 *
 * A block remembers when each of its free addresses was released, and who had it:
 *
 *   any address   the node's addresses that have rested come first; if all rest, the one that has rested longest
 *   by its name   at once for the same owner, for another one after its rest
 *
 * Releases of former releases are not remembered, and their writers drop what a block remembers: such addresses do
 * not rest. Pure.
 */
import type { BlockAttribute, IPAMBlock, Release } from "../model/ipam-block.ts";
import { NAMESPACE_ATTRIBUTE, NETWORK_ATTRIBUTE } from "../model/ipam-block.ts";

export const REST_MILLISECONDS = 180_000;

/**
 * How long the address still rests, in milliseconds; 0 if it has rested. The time was written by the clock of another
 * node: a release in the future counts as one of now, and one further ahead than a rest is not believed, so that no clock
 * keeps an address for longer than two rests.
 */
export function restLeft(release: Release | undefined, now: Date): number {
  if (release === undefined) return 0;
  const age = now.getTime() - release.at * 1000;
  return Math.abs(age) > REST_MILLISECONDS ? 0 : REST_MILLISECONDS - Math.max(age, 0);
}

/** Whether a free address of the block rests. */
export function hasResting(block: IPAMBlock, now: Date): boolean {
  return longestRestLeft(block, now) > 0;
}

/** Until no free address of the block rests, in milliseconds. */
export function longestRestLeft(block: IPAMBlock, now: Date): number {
  const free = Object.entries(block.released ?? {}).filter(
    ([ordinal]) => block.allocations[Number(ordinal)] === undefined,
  );
  return Math.max(0, ...free.map(([, release]) => restLeft(release, now)));
}

/** The namespace of a pod owns its addresses; for a container without a pod, the network does. */
export function releaseBy(owner: BlockAttribute | undefined, now: Date): Release {
  const { [NAMESPACE_ATTRIBUTE]: namespace, [NETWORK_ATTRIBUTE]: network } = owner?.secondary ?? {};
  const at = Math.floor(now.getTime() / 1000);
  if (namespace !== undefined) return { at, namespace };
  return network === undefined ? { at } : { at, network };
}

/** Whether the address was released by the namespace, or the network, that asks for it. */
export function isFormerOwner(release: Release, asking: BlockAttribute): boolean {
  const { namespace, network } = releaseBy(asking, new Date(0));
  if (namespace !== undefined) return release.namespace === namespace;
  return network !== undefined && release.network === network;
}

/** `namespace "shop"`, for messages. */
export function describeFormerOwner({ namespace, network }: Omit<Release, "at">): string | undefined {
  if (namespace !== undefined) return `namespace ${JSON.stringify(namespace)}`;
  return network === undefined ? undefined : `a container of network ${JSON.stringify(network)}`;
}

/** The block without the releases that no longer matter: of addresses that have rested, or are in use. */
export function withoutRested(block: IPAMBlock, now: Date): IPAMBlock {
  return withReleases(
    block,
    Object.entries(block.released ?? {}).filter(
      ([ordinal, release]) => block.allocations[Number(ordinal)] === undefined && restLeft(release, now) > 0,
    ),
  );
}

export function withReleases(block: IPAMBlock, releases: readonly (readonly [string, Release])[]): IPAMBlock {
  const { released: _, ...others } = block;
  return releases.length === 0 ? others : { ...others, released: Object.fromEntries(releases) };
}
