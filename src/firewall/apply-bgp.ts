/** The only writer of the table that guards BGP. It compares with the kernel, so that it also repairs what other programs did. */
import type { NetlinkSocket } from "../linux/netlink-socket.ts";
import { commitCompared } from "../linux/nftables/commit.ts";
import { findTable, listElements, listRuleHeads } from "../linux/nftables/read.ts";
import { type NftChange, tableRemoval } from "../linux/nftables/ruleset.ts";
import { BGP_TABLE, type BgpEnd, bgpTableChanges, elementsOfSets, isBgpTableIntact } from "./bgp-table.ts";

/** Guards exactly these sessions; without any there is no table. Returns whether something was written. */
export function applyBgpGuard(socket: NetlinkSocket, ends: readonly BgpEnd[]): boolean {
  return commitCompared(socket, () => changesFor(socket, ends));
}

/** Sessions seldom change: the table is replaced as a whole. */
function changesFor(socket: NetlinkSocket, ends: readonly BgpEnd[]): readonly NftChange[] {
  if (ends.length === 0) return findTable(socket, BGP_TABLE) === undefined ? [] : tableRemoval(BGP_TABLE);
  const isCurrent = isBgpTableIntact(listRuleHeads(socket, BGP_TABLE)) && hasExactly(socket, ends);
  return isCurrent ? [] : bgpTableChanges(ends);
}

function hasExactly(socket: NetlinkSocket, ends: readonly BgpEnd[]): boolean {
  return elementsOfSets(ends).every(({ set, elements }) => {
    const present = listElements(socket, BGP_TABLE, set).map(({ key }) => key.toHex());
    const wanted = new Set(elements.map(({ key }) => key.toHex()));
    return wanted.size === present.length && present.every((key) => wanted.has(key));
  });
}
