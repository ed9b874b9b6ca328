/**
 * The only writer of the table of floating IPs. It compares what the kernel has with
 * what is wanted, so that it also repairs what other programs did: an intact table
 * gets elements, any other is replaced in one batch, and one that leads nowhere is
 * removed.
 */
import type { NetlinkSocket } from "../linux/netlink-socket.ts";
import { commitCompared } from "../linux/nftables/commit.ts";
import { findTable, listElements, listRuleHeads } from "../linux/nftables/read.ts";
import { type NftChange, tableRemoval } from "../linux/nftables/ruleset.ts";
import { type FloatingAddress, floatingChanges, hairpinSources } from "./floating-addresses.ts";
import { floatingElementChanges, floatingOfElement, floatingTableChanges } from "./floating-rules.ts";
import {
  FLOATING_TABLE,
  type FloatingMapPurpose,
  floatingMap,
  isFloatingIntact,
  isFloatingWithoutRecords,
} from "./floating-table.ts";

/** Makes exactly these addresses lead to pods; returns whether something was written. */
export function applyFloating(socket: NetlinkSocket, addresses: readonly FloatingAddress[]): boolean {
  return commitCompared(socket, () => changesFor(socket, addresses));
}

/** What an agent that recorded nothing on the host has led to pods; nothing once the table was written by this release. */
export function readFloatingWithoutRecords(socket: NetlinkSocket): readonly FloatingAddress[] {
  if (findTable(socket, FLOATING_TABLE) === undefined) return [];
  return isFloatingWithoutRecords(listRuleHeads(socket, FLOATING_TABLE)) ? readMap(socket, "external") : [];
}

function changesFor(socket: NetlinkSocket, addresses: readonly FloatingAddress[]): readonly NftChange[] {
  if (addresses.length === 0)
    return findTable(socket, FLOATING_TABLE) === undefined ? [] : tableRemoval(FLOATING_TABLE);
  if (!isFloatingIntact(listRuleHeads(socket, FLOATING_TABLE))) return floatingTableChanges(addresses);
  return [
    ...floatingElementChanges("external", floatingChanges(readMap(socket, "external"), addresses)),
    ...floatingElementChanges("hairpin", floatingChanges(readMap(socket, "hairpin"), hairpinSources(addresses))),
  ];
}

function readMap(socket: NetlinkSocket, purpose: FloatingMapPurpose): readonly FloatingAddress[] {
  const elements = ([4, 6] as const).flatMap((family) =>
    listElements(socket, FLOATING_TABLE, floatingMap(purpose, family)),
  );
  return elements.flatMap((element) => floatingOfElement(purpose, element) ?? []);
}
