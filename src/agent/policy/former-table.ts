/**
 * What must change in the table of a former agent, or in one that another program has edited, so that it becomes the
 * desired one.
 *
 * Replacing the whole table would lose packets that are being judged at this moment: they are in the old chains, whose
 * verdict maps are empty from one instant to the next. So the maps stay, except for the elements that differ. All chains
 * are filled again, since their rules may be others.
 */
import { POLICY_TABLE } from "../../firewall/policy-table.ts";
import { identity } from "../../identity.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { findTable, listChains, listElements, listSets } from "../../linux/nftables/read.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import type { DesiredSet, DesiredTable, ElementChanges, TableDelta } from "../../policy/table/desired-table.ts";
import { hasSameData, keyText } from "./table-difference.ts";

export const TABLE_COMMENT = `written by ${identity.nodeAgent}, which reverts other changes`;

/** `undefined` if there is no table, or if its base chains or the types of its sets are others: it must be replaced. */
export function changesOfFormer(socket: NetlinkSocket, table: DesiredTable): TableDelta | undefined {
  if (findTable(socket, POLICY_TABLE)?.comment !== TABLE_COMMENT) return undefined;
  const chains = chainChanges(socket, table);
  const found = new Map(listSets(socket, POLICY_TABLE).map((set) => [set.name, set]));
  if (chains === undefined) return undefined;
  const sets = new Map<string, "created" | "deleted">();
  const elements = new Map<string, ElementChanges>();
  for (const name of found.keys()) if (!table.sets.has(name)) sets.set(name, "deleted");
  for (const [name, desired] of table.sets) {
    const former = found.get(name);
    if (former === undefined) sets.set(name, "created");
    else if (!Bun.deepEquals([former.key, former.data, former.holdsIntervals], shapeOf(desired))) return undefined;
    else {
      const changes = elementChanges(desired, listElements(socket, POLICY_TABLE, name));
      if (changes !== undefined) elements.set(name, changes);
    }
  }
  return { chains, sets, elements };
}

function chainChanges(socket: NetlinkSocket, { chains }: DesiredTable): TableDelta["chains"] | undefined {
  const found = new Map(listChains(socket, POLICY_TABLE).map((chain) => [chain.name, chain]));
  const changes = new Map<string, "created" | "changed" | "deleted">();
  for (const name of found.keys()) if (!chains.has(name)) changes.set(name, "deleted");
  for (const [name, desired] of chains) {
    const former = found.get(name);
    if (former !== undefined && !Bun.deepEquals(former.base, desired.chain.base)) return undefined;
    changes.set(name, former === undefined ? "created" : "changed");
  }
  return changes;
}

function shapeOf({ set }: DesiredSet) {
  return [set.key, set.data, set.holdsIntervals];
}

function elementChanges({ set, elements }: DesiredSet, former: readonly NftElement[]): ElementChanges | undefined {
  const before = new Map(former.map((element) => [keyText(element), element]));
  const now = new Map(Array.from(elements.values(), (element) => [keyText(element), element]));
  const removed = former.filter((element) => !hasSameData(element, now.get(keyText(element))));
  const added = [...elements.values()].filter((element) => !hasSameData(element, before.get(keyText(element))));
  if (removed.length + added.length === 0) return undefined;
  // The ends of a range belong together.
  return set.holdsIntervals ? { removed: former, added: [...elements.values()] } : { removed, added };
}
