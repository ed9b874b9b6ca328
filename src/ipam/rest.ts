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
 * not rest.
 *
 * A pool, or the cluster, may set a longer rest (`cooldownSeconds`). Then it is not cut short: if all addresses rest,
 * none is given. Whoever assigns an address of such a pool writes the setting into the block, so that whoever releases
 * one, and reads no pool, knows for how long the release has to be remembered. `now` is the time of the datastore
 * (allocator-means.ts). Pure.
 */
import { LONGEST_COOLDOWN_SECONDS } from "../model/cooldown.ts";
import type { BlockAttribute, IPAMBlock, Release } from "../model/ipam-block.ts";
import { NAMESPACE_ATTRIBUTE, NETWORK_ATTRIBUTE } from "../model/ipam-block.ts";

export const REST_MILLISECONDS = 180_000;

/**
 * The time of a release is cut to whole seconds, as is that of the server that tells it, and both arrive late: a rest
 * that was set is longer by as much as the two together may be wrong.
 */
const ROUNDING_MILLISECONDS = 3_000;

/** Seconds that a setting asks for; 0: none. An API server without validation rules accepts any number. */
export function cooldownOf(seconds: number | undefined): number {
  return Math.min(Math.max(seconds ?? 0, 0), LONGEST_COOLDOWN_SECONDS);
}

/**
 * How long the address still rests, in milliseconds; 0 if it has rested. The time may have been written by the clock of
 * another node: a release in the future counts as one of now, and one further ahead than a rest is not believed, so that no
 * clock keeps an address for longer than two rests. With a setting (`cooldown`, in seconds) it is, up to the longest one.
 */
export function restLeft(release: Release | undefined, now: Date, cooldown = 0): number {
  if (release === undefined) return 0;
  const age = now.getTime() - release.at * 1000;
  if (cooldown === 0) return Math.abs(age) > REST_MILLISECONDS ? 0 : REST_MILLISECONDS - Math.max(age, 0);
  const rest = Math.max(cooldown * 1000, REST_MILLISECONDS) + ROUNDING_MILLISECONDS;
  return age < -LONGEST_COOLDOWN_SECONDS * 1000 ? 0 : Math.max(rest - Math.max(age, 0), 0);
}

/** The same, by the setting that the block knows. */
export function restLeftIn(block: IPAMBlock, ordinal: number, now: Date): number {
  return restLeft(block.released?.[ordinal], now, cooldownOf(block.cooldownSeconds));
}

/** Whether a free address of the block rests by a setting: nothing may forget its release. */
export function hasCooling(block: IPAMBlock, now: Date): boolean {
  return cooldownOf(block.cooldownSeconds) > 0 && hasResting(block, now);
}

/** The block with the setting that applies to it, which releases from it go by. */
export function withCooldown(block: IPAMBlock, cooldown: number): IPAMBlock {
  if ((block.cooldownSeconds ?? 0) === cooldown) return block;
  const { cooldownSeconds: _, ...others } = block;
  return cooldown === 0 ? others : { ...others, cooldownSeconds: cooldown };
}

/** Whether a free address of the block rests. */
export function hasResting(block: IPAMBlock, now: Date): boolean {
  return longestRestLeft(block, now) > 0;
}

/** Until no free address of the block rests, in milliseconds. */
export function longestRestLeft(block: IPAMBlock, now: Date): number {
  return Math.max(0, ...restingOrdinals(block, now).map((ordinal) => restLeftIn(block, ordinal, now)));
}

/** Of the free addresses of the block, those that rest. */
export function restingOrdinals(block: IPAMBlock, now: Date): readonly number[] {
  return Object.keys(block.released ?? {})
    .map(Number)
    .filter((ordinal) => block.allocations[ordinal] === undefined && restLeftIn(block, ordinal, now) > 0);
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
      ([ordinal]) => block.allocations[Number(ordinal)] === undefined && restLeftIn(block, Number(ordinal), now) > 0,
    ),
  );
}

export function withReleases(block: IPAMBlock, releases: readonly (readonly [string, Release])[]): IPAMBlock {
  const { released: _, ...others } = block;
  return releases.length === 0 ? others : { ...others, released: Object.fromEntries(releases) };
}
