/** What another program does to a table of the product: the changes that it sends. `choice` selects among what there is. */
import type { NftChange } from "../../../src/linux/nftables/ruleset.ts";
import type { NftElement } from "../../../src/linux/nftables/set.ts";
import { hasOrderedKeys, type ModelSet, type ModelTable } from "./state.ts";

export function foreignDeleteTable({ family, name }: ModelTable): readonly NftChange[] {
  return [{ kind: "delete-table", table: { family, name } }];
}

/** Deletes all rules of a chain. */
export function foreignFlush(table: ModelTable, choice: number): readonly NftChange[] {
  const chains = [...table.chains.values()].filter(({ rules }) => rules.length > 0);
  const chosen = chains[choice % Math.max(1, chains.length)];
  return chosen === undefined ? [] : [{ kind: "flush-chain", table: referenceTo(table), chain: chosen.chain.name }];
}

/** Deletes some elements of a set: every other one, or the first range. */
export function foreignDeleteElements(table: ModelTable, choice: number): readonly NftChange[] {
  const sets = [...table.sets.values()].filter(({ elements, isAnonymous }) => elements.size > 0 && !isAnonymous);
  const chosen = sets[choice % Math.max(1, sets.length)];
  if (chosen === undefined) return [];
  const elements = someOf(chosen).map(
    ({ key, keyEnd, interval }): NftElement => ({
      key,
      ...(keyEnd === undefined ? {} : { keyEnd }),
      ...(interval === undefined ? {} : { interval }),
    }),
  );
  return [{ kind: "delete-elements", table: referenceTo(table), set: chosen.set.name, elements }];
}

function someOf(set: ModelSet): readonly NftElement[] {
  if (!hasOrderedKeys(set)) return [...set.elements.values()].filter((_element, index) => index % 2 === 0);
  const [last, beginning] = set.ordered.slice(-2).toReversed();
  return last === undefined ? [] : beginning?.interval === "end" ? [last, beginning] : [last];
}

function referenceTo({ family, name }: ModelTable): { readonly family: ModelTable["family"]; readonly name: string } {
  return { family, name };
}
