/** A table that was changed step by step equals one that is compiled from the final state at once. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { proofSize } from "../../../test/support/proof-size.ts";
import {
  clusters,
  configurations,
  histories,
  hostInterfaces,
  LOCAL_NODE,
} from "../../../test/support/random-cluster.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import type { PolicyResources } from "../judge/resources.ts";
import type { DesiredTable } from "../table/desired-table.ts";
import { tableChanges, wholeTable } from "../table/table-changes.ts";
import { PolicyCompiler } from "./compiler.ts";

const TABLE = { family: "inet", name: "policy" } as const;
const RUNS = proofSize({ everyDay: 200, soak: 5_000 });

const situations = fc
  .tuple(histories, fc.array(fc.tuple(hostInterfaces, configurations), { minLength: 5, maxLength: 5 }))
  .map(([history, settings]) => {
    const [first] = settings;
    return history.map((cluster, index) => {
      const [interfaces, configuration] = settings[index] ?? first ?? [];
      return { cluster, interfaces, configuration };
    });
  });

test("after any changes, the table and what the batches wrote equal a table of the final state", () => {
  fc.assert(
    fc.property(situations, (history) => {
      const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
      const kernel = new ImitatedTable();
      kernel.apply(wholeTable(TABLE, compiler.table, ""));
      compiler.takeDelta();
      const fresh = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
      let before: PolicyResources = NO_RESOURCES;
      for (const { cluster, interfaces, configuration } of history) {
        compiler.update(changesBetween(before, cluster, configuration));
        compiler.setHostInterfaces(interfaces ?? []);
        kernel.apply(tableChanges(TABLE, compiler.table, compiler.takeDelta()));
        before = cluster;
      }
      const last = history.at(-1);
      fresh.setHostInterfaces(last?.interfaces ?? []);
      fresh.update(changesBetween(NO_RESOURCES, before, last?.configuration));
      const wanted = contentOf(fresh.table);
      expect(contentOf(compiler.table)).toEqual(wanted);
      expect(kernel.content()).toEqual(wanted);
    }),
    { numRuns: RUNS },
  );
});

test("nothing is left of policies whose endpoints are gone", () => {
  fc.assert(
    fc.property(clusters, (cluster) => {
      const compiler = new PolicyCompiler({ node: LOCAL_NODE, hasServices: true });
      const empty = contentOf(compiler.table);
      compiler.update(changesBetween(NO_RESOURCES, cluster));
      compiler.update(changesBetween(cluster, { ...cluster, endpoints: [], hostEndpoints: [] }));
      expect(contentOf(compiler.table)).toEqual(empty);
    }),
    { numRuns: RUNS },
  );
});

interface Content {
  readonly chains: unknown;
  readonly sets: unknown;
}

function contentOf({ chains, sets }: DesiredTable): Content {
  return {
    chains: Object.fromEntries(
      Array.from(chains, ([name, { rules }]) => [name, rules.map(({ expressions }) => expressions)]),
    ),
    sets: Object.fromEntries(Array.from(sets, ([name, { elements }]) => [name, elementTexts([...elements.values()])])),
  };
}

function elementTexts(elements: readonly NftElement[]): readonly string[] {
  return elements.map((element) => `${keyOf(element)} ${JSON.stringify(element.data)}`).toSorted();
}

function keyOf({ key, interval }: NftElement): string {
  return `${key.toHex()} ${interval ?? ""}`;
}

/** As strict as the kernel about what must exist and what must not. */
class ImitatedTable {
  private readonly chains = new Map<string, unknown[]>();
  private readonly sets = new Map<string, Map<string, NftElement>>();

  content(): Content {
    return {
      chains: Object.fromEntries(this.chains),
      sets: Object.fromEntries(
        Array.from(this.sets, ([name, elements]) => [name, elementTexts([...elements.values()])]),
      ),
    };
  }

  apply(changes: readonly NftChange[]): void {
    for (const change of changes) this.applyOne(change);
  }

  private applyOne(change: NftChange): void {
    switch (change.kind) {
      case "add-table":
      case "delete-table":
        return;
      case "add-chain":
        expect(this.chains.has(change.chain.name)).toBe(false);
        this.chains.set(change.chain.name, []);
        return;
      case "flush-chain":
        this.rulesOf(change.chain).length = 0;
        return;
      case "add-rule":
        this.requireTargets(change.rule.expressions);
        this.rulesOf(change.rule.chain).push(change.rule.expressions);
        return;
      case "delete-chain":
        expect(this.rulesOf(change.chain)).toEqual([]);
        expect(this.isReferred(change.chain)).toBe(false);
        this.chains.delete(change.chain);
        return;
      case "add-set":
        expect(this.sets.has(change.set.name)).toBe(false);
        this.sets.set(change.set.name, new Map());
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

  private rulesOf(chain: string): unknown[] {
    const rules = this.chains.get(chain);
    if (rules === undefined) throw new Error(`There is no chain "${chain}"`);
    return rules;
  }

  private elementsOf(set: string): Map<string, NftElement> {
    const elements = this.sets.get(set);
    if (elements === undefined) throw new Error(`There is no set "${set}"`);
    return elements;
  }

  private requireTargets(content: unknown): void {
    for (const chain of namesIn(content, "chain")) this.rulesOf(chain);
    for (const set of namesIn(content, "set")) this.elementsOf(set);
  }

  private isReferred(name: string): boolean {
    const elements = Array.from(this.sets.values(), (set) => [...set.values()]);
    const all = [...this.chains.values(), ...elements];
    return all.some((content) => [...namesIn(content, "chain"), ...namesIn(content, "set")].includes(name));
  }
}

/** The texts of all fields of this name, at any depth. */
function namesIn(content: unknown, field: string): readonly string[] {
  if (typeof content !== "object" || content === null || content instanceof Uint8Array) return [];
  return Object.entries(content).flatMap(([name, value]) =>
    name === field && typeof value === "string" ? [value] : namesIn(value, field),
  );
}
