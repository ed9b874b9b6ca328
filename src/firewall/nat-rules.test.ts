import { describe, expect, test } from "bun:test";
import { prefix } from "../../test/support/ip.ts";
import { natChanges, natRuleset } from "./nat-rules.ts";
import { NAT_RULE_COUNT, type NatPool, natComment } from "./nat-table.ts";

const pool = (cidr: string, natOutgoing: boolean): NatPool => ({ cidr: prefix(cidr), natOutgoing });

/** Every set with its ranges as hex: `first` or `-end`. */
const elementsOf = (...pools: readonly NatPool[]) =>
  Object.fromEntries(
    natRuleset(pools, "x").elements.map(({ set, elements }) => [
      set,
      elements.map(({ key, interval }) => (interval === undefined ? key.toHex() : `${interval} ${key.toHex()}`)),
    ]),
  );

describe("natRuleset()", () => {
  test("masquerades the pools with natOutgoing, and knows all of them", () => {
    expect(elementsOf(pool("10.1.0.0/16", true), pool("10.9.0.0/16", false), pool("fd00::/112", true))).toEqual({
      masquerade4: ["0a010000", "end 0a020000"],
      pools4: ["0a010000", "end 0a020000", "0a090000", "end 0a0a0000"],
      masquerade6: [`fd${"0".repeat(30)}`, `end fd${"0".repeat(25)}10000`],
      pools6: [`fd${"0".repeat(30)}`, `end fd${"0".repeat(25)}10000`],
    });
  });

  test("merges pools that overlap or touch: the kernel refuses overlapping ranges", () => {
    const { pools4 } = elementsOf(
      pool("10.3.0.0/16", true),
      pool("10.2.0.0/16", false),
      pool("10.2.7.0/24", true),
      pool("10.2.0.0/16", false),
    );
    expect(pools4).toEqual(["0a020000", "end 0a040000"]);
  });

  test("reaches the end of the address space", () => {
    expect(elementsOf(pool("240.0.0.0/4", true))["masquerade4"]).toEqual(["open f0000000"]);
  });

  test("has as many rules as an ADD counts, each with the comment", () => {
    const { rules } = natRuleset([pool("10.1.0.0/16", true)], "x");
    expect(rules.map(({ comment }) => comment)).toEqual(new Array(NAT_RULE_COUNT).fill("x"));
  });
});

describe("natComment()", () => {
  const [blue, red] = [pool("10.1.0.0/16", true), pool("10.2.0.0/16", false)];

  test("does not depend on the order of the pools", () => {
    expect(natComment([blue, red])).toBe(natComment([red, blue]));
  });

  test("differs with every pool and its natOutgoing", () => {
    const comments = [[blue], [blue, red], [blue, { ...red, natOutgoing: true }]].map(natComment);
    expect(new Set(comments).size).toBe(3);
  });

  test("is absent if no pool masquerades, and then the table is removed", () => {
    expect(natComment([red])).toBeUndefined();
    expect(natChanges([red], undefined).map(({ kind }) => kind)).toEqual(["add-table", "delete-table"]);
  });
});
