/**
 * Compares the policy table in the kernel with the desired one: chains, the rules of each chain by their comments, sets
 * and their elements with their verdicts. Does not compare the instructions of rules: a rule that was replaced by another with the same
 * comment is not found.
 */
import { POLICY_TABLE } from "../../firewall/policy-table.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { listChains, listElements, listRuleHeads, listSets } from "../../linux/nftables/read.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import type { DesiredChain, DesiredTable } from "../../policy/table/desired-table.ts";

/** The first difference, in words. Of the elements only those of the given sets are compared. */
export function findDifference(
  socket: NetlinkSocket,
  table: DesiredTable,
  sets: Iterable<string> = table.sets.keys(),
): string | undefined {
  return (
    differenceOfNames("chain", new Set(listChains(socket, POLICY_TABLE).map(({ name }) => name)), table.chains) ??
    differenceOfRules(socket, table) ??
    differenceOfNames("set", new Set(listSets(socket, POLICY_TABLE).map(({ name }) => name)), table.sets) ??
    differenceOfElements(socket, table, sets)
  );
}

function differenceOfNames(
  kind: string,
  found: ReadonlySet<string>,
  wanted: ReadonlyMap<string, unknown>,
): string | undefined {
  for (const name of wanted.keys()) if (!found.has(name)) return `${kind} "${name}" is missing`;
  for (const name of found) if (!wanted.has(name)) return `${kind} "${name}" was added`;
  return undefined;
}

function differenceOfRules(socket: NetlinkSocket, { chains }: DesiredTable): string | undefined {
  const found = Map.groupBy(listRuleHeads(socket, POLICY_TABLE), ({ chain }) => chain);
  for (const [name, chain] of chains)
    if (!hasComments(chain, found.get(name) ?? [])) return `the rules of chain "${name}" were changed`;
  return undefined;
}

/** A set that is missing is as one without elements. */
export function differenceOfElements(
  socket: NetlinkSocket,
  { sets }: DesiredTable,
  names: Iterable<string>,
): string | undefined {
  for (const name of names) {
    const elements = sets.get(name)?.elements ?? new Map<string, NftElement>();
    const found = new Map(listElements(socket, POLICY_TABLE, name).map((element) => [keyText(element), element]));
    if (found.size !== elements.size || !elements.values().every((each) => hasSameData(each, found.get(keyText(each)))))
      return `the elements of set "${name}" were changed`;
  }
  return undefined;
}

/** Whether these are the rules of the chain, as far as comments tell. */
function hasComments({ rules }: DesiredChain, found: readonly { readonly comment?: string }[]): boolean {
  return rules.length === found.length && rules.every(({ comment }, index) => comment === found[index]?.comment);
}

/** The same text for equal keys. */
export function keyText({ key, interval }: NftElement): string {
  return interval === "end" ? `${key.toHex()}-` : key.toHex();
}

/** Of elements with the same key: the verdict of an element of a verdict map, for example. */
export function hasSameData(element: NftElement, other: NftElement | undefined): boolean {
  return other !== undefined && (element.data === other.data || Bun.deepEquals(element.data, other.data));
}
