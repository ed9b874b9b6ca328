import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TemporaryDirectory, temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { openRuleNumbers, type RuleNumberFile } from "./rule-number-file.ts";

const SHOP = "shop/db ingress 0";

describe("RuleNumberFile", () => {
  let folder: TemporaryDirectory;
  let path: string;
  let told: string[];
  beforeEach(() => {
    folder = temporaryDirectory("rulenumbers");
    path = join(folder.path, "numbers", "rules");
    told = [];
  });
  afterEach(() => folder.remove());

  let elapsed = 0;
  const options = () => ({ path, elapsed: () => elapsed, report: (message: string) => told.push(message) });
  const open = (highest = 0): RuleNumberFile => {
    const file = openRuleNumbers(options(), highest);
    if (file === undefined) throw new Error("not opened");
    return file;
  };
  const numberOf = (file: RuleNumberFile | undefined, comment: string) => {
    const found = file?.numberOf(comment);
    return typeof found === "object" ? found.number : found;
  };
  const lines = () => readFileSync(path, "utf8").split("\n").slice(0, -1);

  test("has written a number before it returns it, and reads it at the next start", () => {
    const file = open();

    expect(file.numberOf(SHOP)).toEqual({ number: 1, isNew: true });
    expect(lines()).toEqual(['{"lowest":1}', `[1,"${SHOP}"]`]);
    expect(file.numberOf("b")).toEqual({ number: 2, isNew: true });
    expect(file.numberOf(SHOP)).toEqual({ number: 1, isNew: false });
    expect(lines().length).toBe(3);
    file.close();
    const next = open(99);
    expect(next.numberOf("b")).toEqual({ number: 2, isNew: false });
    expect(next.numberOf("c")).toEqual({ number: 3, isNew: true });
    expect([lines().at(-1), told]).toEqual(['[3,"c"]', []]);
    next.close();
  });

  test("a line that was never finished stands for nothing: its rule was not written", () => {
    open().numberOf(SHOP);
    writeFileSync(path, `${readFileSync(path, "utf8")}[2,"hal`);
    const file = open(99);

    expect([numberOf(file, "b"), told]).toEqual([2, []]);
    expect(lines()).toEqual(['{"lowest":1}', `[1,"${SHOP}"]`, '[2,"b"]']);
    file.close();
  });

  test.each([
    ["an empty file", ""],
    ["another text", "no numbers\n"],
    ["a damaged line", '{"lowest":1}\n[1,"a"]\n[2,b"]\n[3,"c"]\n'],
    ["a number that is none", '{"lowest":1}\n[0,"a"]\n'],
    ["a number twice", '{"lowest":1}\n[1,"a"]\n[1,"b"]\n'],
    ["a rule twice", '{"lowest":1}\n[1,"a"]\n[2,"a"]\n'],
  ])("%s is begun again above all numbers of the kernel, and it says so", (_, text) => {
    open().numberOf(SHOP);
    writeFileSync(path, text);
    const file = open(7);

    expect(told).toEqual([expect.stringMatching(/damaged \(line \d\).* new ones begin at 8/)]);
    expect(file.numberOf("a")).toEqual({ number: 8, isNew: true });
    expect(lines()).toEqual(['{"lowest":8}', '[8,"a"]']);
    file.close();
    // Also after the next start.
    expect([numberOf(open(), "b"), told.length]).toEqual([9, 1]);
  });

  test("a missing file says so only if the kernel has numbers", () => {
    expect([numberOf(open(), "a"), told]).toEqual([1, []]);
    rmSync(path);
    expect(numberOf(open(3), "a")).toBe(4);
    expect(told).toEqual([expect.stringContaining("gone")]);
  });

  test("a file that does not say the numbers is begun again only if those of the kernel are known", () => {
    expect(openRuleNumbers(options())).toBeUndefined();
    expect(existsSync(path)).toBe(false);
    open().numberOf(SHOP);
    expect(numberOf(openRuleNumbers(options()), SHOP)).toBe(1);
    writeFileSync(path, "no numbers");
    expect(openRuleNumbers(options())).toBeUndefined();
  });

  test("a number that cannot be written down is not given, and not tried again for each rule", () => {
    const file = open();
    mkdirSync(path, { recursive: true });

    expect(Array.from({ length: 5 }, (_, index) => file.numberOf(`rule ${index}`))).toEqual(Array(5).fill(undefined));
    expect([told.length, file.canWriteAgain()]).toEqual([1, false]);
    rmSync(path, { recursive: true });
    expect(file.numberOf("b")).toBeUndefined();
    elapsed += 10_000;
    expect([file.canWriteAgain(), file.numberOf("b")]).toEqual([true, { number: 1, isNew: true }]);
    file.close();
  });

  test("released numbers leave the file", () => {
    const file = open();
    for (const comment of ["a", "b", "c"]) file.numberOf(comment);
    const look = (since: number, now: number) => file.releaseUnused(new Set(["a"]), { since, numbers: [3] }, now);

    expect([look(1, 2), look(3, 4), look(5, 6)]).toEqual([[], [], [2]]);
    expect(lines()).toEqual(['{"lowest":1}', '[1,"a"]', '[3,"c"]']);
    expect(numberOf(file, "d")).toBe(2);
    file.close();
  });

  test("keeps since when labels are written", () => {
    const file = open();
    file.setSince(500);
    file.close();
    const next = open();
    expect(next.since).toBe(500);
    next.setSince(undefined);
    next.close();
    expect(open().since).toBeUndefined();
  });
});
