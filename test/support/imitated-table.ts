/** Applies batches as strictly as the kernel does about what must exist and what must not. */
import { expect } from "bun:test";
import type { NftChange } from "../../src/linux/nftables/ruleset.ts";
import type { NftElement, NftSet } from "../../src/linux/nftables/set.ts";
import type { DesiredChain, DesiredRule, DesiredTable } from "../../src/policy/table/desired-table.ts";

interface ImitatedChain extends DesiredChain {
  readonly rules: DesiredRule[];
}

interface ImitatedSet {
  readonly set: NftSet;
  readonly elements: Map<string, NftElement>;
}

export class ImitatedTable implements DesiredTable {
  readonly chains = new Map<string, ImitatedChain>();
  readonly sets = new Map<string, ImitatedSet>();

  apply(changes: readonly NftChange[]): void {
    for (const change of changes) this.applyOne(change);
  }

  /** The chains that packets reach, and the sets that their rules look up. */
  reachable(): ReadonlySet<string> {
    const found = new Set<string>();
    const visit = (content: unknown) => {
      for (const name of [...namesIn(content, "chain"), ...namesIn(content, "set")]) {
        if (found.has(name)) continue;
        found.add(name);
        visit(this.chains.get(name)?.rules ?? [...this.elementsOf(name).values()]);
      }
    };
    for (const [name, { chain, rules }] of this.chains) {
      if (chain.base === undefined) continue;
      found.add(name);
      visit(rules);
    }
    return found;
  }

  private applyOne(change: NftChange): void {
    switch (change.kind) {
      case "add-table":
      case "delete-table":
        return;
      case "add-chain":
        expect(this.chains.has(change.chain.name)).toBe(false);
        this.chains.set(change.chain.name, { chain: change.chain, rules: [] });
        return;
      case "flush-chain":
        this.rulesOf(change.chain).length = 0;
        return;
      case "add-rule":
        this.requireTargets(change.rule.expressions);
        this.rulesOf(change.rule.chain).push(change.rule);
        return;
      case "delete-chain":
        expect(this.rulesOf(change.chain)).toEqual([]);
        expect(this.isReferred(change.chain)).toBe(false);
        this.chains.delete(change.chain);
        return;
      case "add-set":
        expect(this.sets.has(change.set.name)).toBe(false);
        this.sets.set(change.set.name, { set: change.set, elements: new Map() });
        return;
      case "delete-set":
        expect(this.isReferred(change.set)).toBe(false);
        expect(this.sets.delete(change.set)).toBe(true);
        return;
      case "add-elements":
        this.requireTargets(change.elements);
        for (const element of change.elements) {
          expect(this.elementsOf(change.set).has(keyOf(element))).toBe(false);
          this.elementsOf(change.set).set(keyOf(element), element);
        }
        return;
      case "delete-elements":
        for (const element of change.elements) expect(this.elementsOf(change.set).delete(keyOf(element))).toBe(true);
        return;
      default:
        throw new Error(`"${change.kind}" is not expected`);
    }
  }

  private rulesOf(chain: string): DesiredRule[] {
    const found = this.chains.get(chain);
    if (found === undefined) throw new Error(`There is no chain "${chain}"`);
    return found.rules;
  }

  private elementsOf(set: string): Map<string, NftElement> {
    const found = this.sets.get(set);
    if (found === undefined) throw new Error(`There is no set "${set}"`);
    return found.elements;
  }

  private requireTargets(content: unknown): void {
    for (const chain of namesIn(content, "chain")) this.rulesOf(chain);
    for (const set of namesIn(content, "set")) this.elementsOf(set);
  }

  private isReferred(name: string): boolean {
    const rules = Array.from(this.chains.values(), (chain) => chain.rules.map(({ expressions }) => expressions));
    const elements = Array.from(this.sets.values(), (set) => [...set.elements.values()]);
    return [...rules, ...elements].some((content) =>
      [...namesIn(content, "chain"), ...namesIn(content, "set")].includes(name),
    );
  }
}

function keyOf({ key, interval }: NftElement): string {
  return `${key.toHex()} ${interval ?? ""}`;
}

/** The texts of all fields of this name, at any depth. */
function namesIn(content: unknown, field: string): readonly string[] {
  if (typeof content !== "object" || content === null || content instanceof Uint8Array) return [];
  return Object.entries(content).flatMap(([name, value]) =>
    name === field && typeof value === "string" ? [value] : namesIn(value, field),
  );
}
