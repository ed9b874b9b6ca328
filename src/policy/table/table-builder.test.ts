import { describe, expect, test } from "bun:test";
import type { NftElement } from "../../linux/nftables/set.ts";
import { TableBuilder } from "./table-builder.ts";

const SET = { name: "set", key: ["ipv4_addr"] } as const;
const element = (last: number): NftElement => ({ key: Uint8Array.of(10, 0, 0, last) });
const chain = (rules: number) => ({
  chain: { name: "chain" },
  rules: Array.from({ length: rules }, () => ({ expressions: [{ kind: "counter" as const }] })),
});

function builderWith(...elements: readonly number[]): TableBuilder {
  const builder = new TableBuilder();
  builder.createSet(SET);
  for (const each of elements) builder.putElement("set", `${each}`, element(each));
  builder.takeDelta();
  return builder;
}

const lists = ({ elements }: ReturnType<TableBuilder["takeDelta"]>) =>
  Array.from(elements, ([set, { removed, added }]) => [set, removed.map(lastOf), added.map(lastOf)]);
const lastOf = ({ key }: NftElement) => key[3];

describe("TableBuilder", () => {
  test("reports a new set once, with all its elements in the table", () => {
    const builder = new TableBuilder();
    builder.createSet(SET);
    builder.putElement("set", "1", element(1));

    const delta = builder.takeDelta();

    expect([...delta.sets]).toEqual([["set", "created"]]);
    expect(delta.elements.size).toBe(0);
    expect(builder.sets.get("set")?.elements.size).toBe(1);
    expect(builder.takeDelta()).toEqual({ chains: new Map(), sets: new Map(), elements: new Map() });
  });

  test("reports only what differs in the end", () => {
    const builder = builderWith(1, 2);
    builder.putElement("set", "3", element(3));
    builder.deleteElement("set", "3");
    builder.deleteElement("set", "1");
    builder.putElement("set", "1", element(1));
    builder.deleteElement("set", "2");
    builder.putElement("set", "4", element(4));

    expect(lists(builder.takeDelta())).toEqual([["set", [2], [4]]]);
  });

  test("reports an element with other data as removed and added", () => {
    const builder = new TableBuilder();
    builder.createSet({ ...SET, data: "verdict" });
    const to = (target: string): NftElement => ({ ...element(1), data: { kind: "goto", chain: target } });
    builder.putElement("set", "1", to("one"));
    builder.takeDelta();

    builder.putElement("set", "1", to("two"));

    expect(builder.takeDelta().elements.get("set")).toEqual({ removed: [to("one")], added: [to("two")] });
  });

  test("reports a set that was deleted and created again as changed elements", () => {
    const builder = builderWith(1, 2);
    builder.deleteElement("set", "1");
    builder.deleteSet("set");
    builder.createSet(SET);
    builder.putElement("set", "2", element(2));
    builder.putElement("set", "3", element(3));

    const delta = builder.takeDelta();

    expect(delta.sets.size).toBe(0);
    expect(lists(delta)).toEqual([["set", [1], [3]]]);
  });

  test("does not report a set or a chain that existed only between two deltas", () => {
    const builder = builderWith();
    builder.putChain(chain(1));
    builder.deleteChain("chain");
    builder.createSet({ ...SET, name: "other" });
    builder.deleteSet("other");

    const delta = builder.takeDelta();

    expect([delta.chains.size, delta.sets.size]).toEqual([0, 0]);
  });

  test("reports created, changed and deleted chains, and not one that was written with the same rules", () => {
    const builder = builderWith();
    builder.putChain(chain(1));
    expect([...builder.takeDelta().chains]).toEqual([["chain", "created"]]);
    builder.putChain(chain(1));
    expect(builder.takeDelta().chains.size).toBe(0);
    builder.putChain(chain(2));
    expect([...builder.takeDelta().chains]).toEqual([["chain", "changed"]]);
    builder.deleteChain("chain");
    expect([...builder.takeDelta().chains]).toEqual([["chain", "deleted"]]);
  });

  test("rules that drop report it first, to the group of the kernel that reports drops, and no other rule does", () => {
    const [accept, drop] = (["accept", "drop"] as const).map(
      (kind) => ({ kind: "verdict", verdict: { kind } }) as const,
    );
    if (accept === undefined || drop === undefined) throw new Error("no verdicts");
    const rules = [
      { expressions: [accept] },
      { expressions: [drop], comment: "shop/db ingress 0" },
      { expressions: [drop] },
    ];
    const put = { chain: { name: "chain" }, rules };
    const built = (dropGroup?: number) => {
      const builder = new TableBuilder({ dropGroup, hasLimit: true });
      builder.putChain(put);
      return builder.chains.get("chain")?.rules.map(({ expressions }) => expressions);
    };
    expect(built()).toEqual(rules.map(({ expressions }) => expressions));
    expect(built(7)).toEqual([
      [accept],
      [{ kind: "log", prefix: "shop/db ingress 0", group: 7 }, drop],
      [{ kind: "log", prefix: "state invalid", group: 7 }, drop],
    ]);
  });

  test("rules with Log have a limit only if the kernel has limits", () => {
    const [limit, log] = [
      { kind: "limit", rate: 10n, per: "second", burst: 50 },
      { kind: "log", prefix: "x" },
    ] as const;
    const built = (hasLimit: boolean) => {
      const builder = new TableBuilder({ hasLimit });
      builder.putChain({ chain: { name: "chain" }, rules: [{ expressions: [limit, log] }] });
      return builder.chains.get("chain")?.rules[0]?.expressions;
    };
    expect([built(true), built(false)]).toEqual([[limit, log], [log]]);
  });
});
