/** Reads whole tables: for CHECK, GC, and an ADD with a conflict. */
import { addressBits, type Family } from "../../ip/address.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { listElements, listRuleHeads, listRules } from "../../linux/nftables/read.ts";
import type { NftRule } from "../../linux/nftables/ruleset.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import type { Claim } from "./claim.ts";
import { claimOf, HELD_PER_ADDRESS } from "./elements.ts";
import { OWNER_LENGTH } from "./port-owner.ts";
import { chainsOf, isNeighbourRule, neighbourRule, rulesOf } from "./rules.ts";
import { CHAIN, SET, tableOf } from "./table.ts";

/** Every owner with records in the family's table, once for each of them. */
export function listOwners(socket: NetlinkSocket, family: Family): readonly Uint8Array[] {
  const records = listElements(socket, tableOf(family), SET.attachments);
  return records.map(({ key }) => key.slice(0, OWNER_LENGTH));
}

/** Every owner of a port or of a pod's address, with records or without, once for each of those. */
export function listHolders(socket: NetlinkSocket, family: Family): readonly Uint8Array[] {
  const owners = listElements(socket, tableOf(family), SET.owners).map(({ data }) => data);
  const ids = owners.filter((data) => data instanceof Uint8Array);
  return ids.filter((id) => !Bun.deepEquals(id, HELD_PER_ADDRESS));
}

/** The owners of this port on single addresses. */
export function holdersPerAddress(
  socket: NetlinkSocket,
  family: Family,
  anyAddressKey: Uint8Array,
): readonly NftElement[] {
  const end = 4 + addressBits(family) / 8;
  return listElements(socket, tableOf(family), SET.owners).filter(
    ({ key }) =>
      !Bun.deepEquals(key, anyAddressKey) &&
      key[0] === anyAddressKey[0] &&
      Bun.deepEquals(key.slice(end), anyAddressKey.slice(end)),
  );
}

/** Ports with a note that they are in use on single addresses. */
export function listHeldPerAddress(socket: NetlinkSocket, family: Family): readonly Claim[] {
  return listElements(socket, tableOf(family), SET.owners)
    .filter(({ data }) => Bun.deepEquals(data, HELD_PER_ADDRESS))
    .map(({ key }) => claimOf(family, key, undefined));
}

export interface Base {
  readonly isIntact: boolean;
  /** The prefix lengths that `neighbours` has rules for, among those asked about. */
  readonly neighbourLengths: readonly number[];
}

/** Whether every rule is present exactly once and unchanged. */
export function readBase(socket: NetlinkSocket, family: Family, lengths: readonly number[]): Base {
  const rules = listRules(socket, tableOf(family));
  const instructions = (wanted: NftRule) =>
    rules.some((rule) => isNeighbourRule(rule) && Bun.deepEquals(rule.expressions, wanted.expressions));
  return {
    isIntact: hasRules(rules, rulesOf(family), family),
    neighbourLengths: lengths.filter((length) => instructions(neighbourRule(family, length))),
  };
}

/** Of both families: a host may have ports of one only. With nothing but its guard, which the agent restores, a table leads nowhere. */
export function readHostPortState(socket: NetlinkSocket): "intact" | "changed" | "missing" {
  const present = ([4, 6] as const).filter((family) =>
    listRuleHeads(socket, tableOf(family)).some(({ chain }) => chain !== CHAIN.guard),
  );
  if (present.length === 0) return "missing";
  return present.every((family) => readBase(socket, family, []).isIntact) ? "intact" : "changed";
}

function hasRules(found: readonly NftRule[], wanted: readonly NftRule[], family: Family): boolean {
  for (const { name } of chainsOf(family)) {
    if (isNeighbourRule({ chain: name, expressions: [] })) continue;
    const there = found.filter(({ chain }) => chain === name);
    const meant = wanted.filter(({ chain }) => chain === name);
    if (there.length !== meant.length) return false;
    for (const [index, rule] of meant.entries()) {
      if (!Bun.deepEquals(there[index]?.expressions, rule.expressions)) return false;
    }
  }
  return true;
}
