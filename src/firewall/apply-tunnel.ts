/**
 * The only writer of the table that guards tunnels. It compares what the kernel has with what is wanted, so that it also
 * repairs what other programs did: an intact table gets elements, any other is replaced in one batch.
 */
import { type Address, formatAddress } from "../ip/address.ts";
import type { NetlinkSocket } from "../linux/netlink-socket.ts";
import { commitCompared, tryCommit } from "../linux/nftables/commit.ts";
import { findTable, listElements, listRuleHeads } from "../linux/nftables/read.ts";
import { type NftChange, tableRemoval } from "../linux/nftables/ruleset.ts";
import {
  GUARDED_TUNNELS,
  type GuardedPorts,
  ruleComments,
  senderChanges,
  senderOfElement,
  senderSet,
  TUNNEL_TABLE,
  tunnelOfComment,
  tunnelTableChanges,
} from "./tunnel-table.ts";

/** Without any tunnels there is no table. */
export interface GuardedTunnels extends GuardedPorts {
  /** The addresses of all nodes. */
  readonly senders: readonly Address[];
  /** There may be more of both than are known: nothing is removed. */
  readonly isPartial: boolean;
}

/** Returns whether something was written. */
export function applyTunnelGuard(socket: NetlinkSocket, wanted: GuardedTunnels): boolean {
  return commitCompared(socket, () => changesFor(socket, wanted));
}

/** Without reading. Returns `false` if the kernel's table is not what was expected; then nothing is changed. */
export function changeSenders(socket: NetlinkSocket, removed: readonly Address[], added: readonly Address[]): boolean {
  const changes = senderChanges(removed, added);
  return changes.length === 0 || tryCommit(socket, changes).length === 0;
}

function changesFor(socket: NetlinkSocket, wanted: GuardedTunnels): readonly NftChange[] {
  const comments = listRuleHeads(socket, TUNNEL_TABLE).map(({ comment }) => comment);
  const present = presentSenders(socket);
  const guarded = comments.map((comment) => tunnelOfComment(comment ?? ""));
  const tunnels = GUARDED_TUNNELS.filter(
    (name) => wanted.tunnels.includes(name) || (wanted.isPartial && guarded.includes(name)),
  );
  const senders = wanted.isPartial ? [...wanted.senders, ...without(present, wanted.senders)] : wanted.senders;
  if (tunnels.length === 0) return findTable(socket, TUNNEL_TABLE) === undefined ? [] : tableRemoval(TUNNEL_TABLE);
  const guardedPorts = { ...wanted, tunnels };
  if (!Bun.deepEquals(comments, ruleComments(guardedPorts))) return tunnelTableChanges(guardedPorts, senders);
  return senderChanges(without(present, senders), without(senders, present));
}

function presentSenders(socket: NetlinkSocket): readonly Address[] {
  return ([4, 6] as const)
    .flatMap((family) => listElements(socket, TUNNEL_TABLE, senderSet(family)))
    .flatMap((element) => senderOfElement(element) ?? []);
}

function without(addresses: readonly Address[], others: readonly Address[]): readonly Address[] {
  const known = new Set(others.map(formatAddress));
  return addresses.filter((address) => !known.has(formatAddress(address)));
}
