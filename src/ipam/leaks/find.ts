/**
 * Which addresses of a node are provably no longer in use: no link on the host has
 * the mark of their attachment, no route leads to them, and no ADD can be in
 * progress. This is the sign that an address of an existing node is released by:
 * nobody else sees whether the container runs. Pure.
 *
 * ADD records an address a moment before it makes the link. So an address without a
 * link counts as leaked only after a grace period, or if the host was booted after
 * it was assigned: no link and no ADD survives a reboot.
 */

import { formatAddress } from "../../ip/address.ts";
import { prefixCovers } from "../../ip/prefix.ts";
import { affineNode, type IPAMBlock } from "../../model/ipam-block.ts";
import { isEmpty } from "../block.ts";
import { formatMark } from "../link-mark.ts";
import { hasCooling } from "../rest.ts";
import type { NodeAllocation } from "./allocations.ts";
import type { NodeRecords } from "./node-records.ts";

/** What the kernel of this host says. */
export interface HostLinks {
  /** The aliases of all links. */
  readonly marks: ReadonlySet<string>;
  /** Addresses, as text, that have a route of their own to a link, with the alias of that link; empty if it has none. */
  readonly routed: ReadonlyMap<string, string>;
  readonly bootedAt: Date;
}

export interface Leak {
  readonly allocation: NodeAllocation;
  readonly reason: string;
}

/** Longer than any ADD: a runtime gives up after a few minutes at most. */
export const GRACE_MILLISECONDS = 5 * 60 * 1000;

/** Timestamps and the time of the boot are rounded. */
const BOOT_MARGIN_MILLISECONDS = 5_000;

/** What an address is judged by. */
export interface Evidence {
  readonly links: HostLinks;
  readonly now: Date;
}

/** `since`: when this machine registered the node. What was assigned earlier may be in use on another machine. */
export function splitBySince(allocations: readonly NodeAllocation[], since: Date) {
  const isEarlier = ({ assignedAt }: NodeAllocation) => assignedAt === undefined || assignedAt < since;
  return {
    certain: allocations.filter((each) => !isEarlier(each)),
    earlier: allocations.filter(isEarlier),
  };
}

export function findLeaks(allocations: readonly NodeAllocation[], { links, now }: Evidence): readonly Leak[] {
  return allocations.flatMap((allocation): Leak[] => {
    const { ifname, assignedAt } = allocation;
    if (ifname === undefined || assignedAt === undefined || isOnHost(allocation, links)) return [];
    if (assignedAt.getTime() + BOOT_MARGIN_MILLISECONDS < links.bootedAt.getTime()) {
      return [{ allocation, reason: `the host was booted after it was assigned (${assignedAt.toISOString()})` }];
    }
    const age = now.getTime() - assignedAt.getTime();
    if (age <= GRACE_MILLISECONDS) return [];
    return [
      { allocation, reason: `the host has no link for it, ${Math.floor(age / 60_000)} minutes after it was assigned` },
    ];
  });
}

/**
 * Containers that the host shows no sign of, and that it cannot judge alone: they were assigned before this machine
 * registered the node (`earlier`), by a release that did not record when, or for another plugin, which has no link of
 * ours. By container; what the orchestrator says about their pods decides.
 */
export function findUnseen(
  allocations: readonly NodeAllocation[],
  earlier: ReadonlySet<NodeAllocation>,
  { links, now }: Evidence,
): readonly (readonly NodeAllocation[])[] {
  const isUnseen = (allocation: NodeAllocation) => {
    const { ifname, assignedAt, pod } = allocation;
    if (pod === undefined || isOnHost(allocation, links)) return false;
    if (assignedAt !== undefined && now.getTime() - assignedAt.getTime() <= GRACE_MILLISECONDS) return false;
    return ifname === undefined || assignedAt === undefined || earlier.has(allocation);
  };
  // Under the handle of what is kept for a pod, another container of it may run.
  const containers = Map.groupBy(allocations, ({ handle, containerId }) => `${handle} ${containerId}`);
  return Array.from(containers.values()).filter((held) => held.every(isUnseen));
}

function isOnHost({ address, network, containerId, ifname }: NodeAllocation, links: HostLinks): boolean {
  if (ifname !== undefined && links.marks.has(formatMark({ network, containerId, ifname }))) return true;
  // Somebody may have changed the alias of the link.
  return links.routed.has(formatAddress(address));
}

/**
 * The empty blocks of the node, except one of each pool, and those whose addresses rest by a setting: they stay with the
 * node until then. Nothing is assigned from one outside all pools. `now`: the time of the datastore.
 */
export function surplusBlocks(
  { pools, blocks }: Pick<NodeRecords, "pools" | "blocks">,
  { node, now }: { readonly node: string; readonly now: Date },
): readonly IPAMBlock[] {
  const empty = blocks.filter((block) => isEmpty(block) && affineNode(block) === node);
  const [cooling, others] = [
    empty.filter((block) => hasCooling(block, now)),
    empty.filter((block) => !hasCooling(block, now)),
  ];
  const surplus = pools.flatMap(({ cidr }) => {
    const isInPool = (block: IPAMBlock) => prefixCovers(cidr, block.cidr);
    return others.filter(isInPool).slice(cooling.some(isInPool) ? 0 : 1);
  });
  const outside = others.filter((block) => !pools.some(({ cidr }) => prefixCovers(cidr, block.cidr)));
  return [...surplus, ...outside];
}
