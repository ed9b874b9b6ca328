import { describe, expect, test } from "bun:test";
import { parsed } from "../effective-selector.ts";
import { LabelIndex, requirementsOf } from "./label-index.ts";

function indexWithLog() {
  const log: string[] = [];
  const index = new LabelIndex({
    matched: (selector, entity) => void log.push(`+ ${entity} ${selector}`),
    unmatched: (selector, entity) => void log.push(`- ${entity} ${selector}`),
  });
  return { index, log };
}

describe("LabelIndex", () => {
  test("reports which entities a new selector selects", () => {
    const { index, log } = indexWithLog();
    index.put("one", { labels: { app: "a" }, parents: [] });
    index.put("two", { labels: { app: "b" }, parents: [] });

    index.register('app == "a"');

    expect(log).toEqual(['+ one app == "a"']);
    expect([...index.membersOf('app == "a"')]).toEqual(["one"]);
  });

  test("reports an entity whose labels change", () => {
    const { index, log } = indexWithLog();
    for (const selector of ['app == "a"', 'app in {"a", "b"}', "!has(app)", 'app != "b"']) index.register(selector);
    index.put("one", { labels: { app: "a" }, parents: [] });
    log.length = 0;

    index.put("one", { labels: { app: "b" }, parents: [] });

    expect(log.toSorted()).toEqual(['- one app != "b"', '- one app == "a"']);
  });

  test("labels that are given by name win over own ones, the first giver over the second, and both over parents", () => {
    const { index, log } = indexWithLog();
    for (const value of ["own", "parent", "first", "second"]) index.register(`app == "${value}"`);
    index.put("one", { labels: { app: "own" }, parents: ["parent"], givers: ["first", "second"] });
    index.putParent("parent", { app: "parent" });
    for (const giver of ["second", "first"]) index.giveLabels(new Map([[giver, { app: giver }]]));
    for (const giver of ["first", "second"]) index.giveLabels(new Map([[giver, undefined]]));

    const values = ["own", "second", "first", "second", "own"];
    expect(log.filter((line) => line.startsWith("+"))).toEqual(values.map((value) => `+ one app == "${value}"`));
    index.delete("one");
    index.giveLabels(new Map([["first", { app: "first" }]]));
    expect([...index.membersOf('app == "first"')]).toEqual([]);
  });

  test("asks an entity who can give it labels only while somebody gives labels, once for all that are new", () => {
    const { index } = indexWithLog();
    let asked = 0;
    const labels = { app: "own" };
    const parents: readonly string[] = [];
    const entity = {
      ...{ labels, parents },
      get givers() {
        asked += 1;
        return ["network"];
      },
    };
    for (const name of ["one", "two", "three"]) index.put(name, entity);
    expect(asked).toBe(0);
    index.register('role == "a"');
    index.giveLabels(new Map(["network", "other", "third"].map((giver) => [giver, { role: "a" }])));
    // Once to find it, once to file it.
    expect(asked).toBe(6);
    expect([...index.membersOf('role == "a"')]).toEqual(["one", "two", "three"]);
    const [first, ...others] = Array.from(index.all, ({ effective }) => effective);
    expect(first).toEqual({ app: "own", role: "a" });
    expect(others.every((other) => other === first)).toBe(true);
  });

  test("a parent with the name of a giver gives nothing in its place", () => {
    const { index } = indexWithLog();
    index.register('role == "a"');
    index.put("one", { labels: {}, parents: ["x"] });
    index.giveLabels(new Map([["x", { role: "a" }]]));

    expect([...index.membersOf('role == "a"')]).toEqual([]);
  });

  test("finds a selector by any of the values that it accepts", () => {
    const { index } = indexWithLog();
    index.register('app in {"a", "b"}');
    index.put("one", { labels: { app: "b" }, parents: [] });

    expect([...index.matchesOf("one")]).toEqual(['app in {"a", "b"}']);
  });

  test("requires of alternatives the values of the labels that each of them requires", () => {
    const required = (text: string) =>
      requirementsOf(parsed(text)).map((group) => group.map(({ label, value }) => `${label}=${value}`));
    expect(required('app == "a" || app == "b" || app == "a"')).toEqual([["app=a", "app=b"]]);
    expect(required('app == "a" || env == "x"')).toEqual([]);
    expect(required('app == "a" || has(env)')).toEqual([]);
    const long = Array.from({ length: 50 }, (_, index) => `app == "${index}"`);
    expect(required(`(${long.join(" && ")}) || (${long.join(" || ")})`).flat().length).toBeLessThanOrEqual(50);

    const { index } = indexWithLog();
    const text = '(app == "a" && env == "x") || (app == "b" && env == "x")';
    expect(required(text).toSorted()).toEqual([["app=a", "app=b"], ["env=x"]]);
    index.register(text);
    for (const app of ["a", "b", "c"]) index.put(app, { labels: { app, env: "x" }, parents: [] });
    index.put("other", { labels: { app: "a", env: "y" }, parents: [] });
    expect([...index.membersOf(text)]).toEqual(["a", "b"]);
    index.put("a", { labels: { app: "b", env: "x" }, parents: [] });
    index.put("b", { labels: { app: "c", env: "x" }, parents: [] });
    expect([...index.membersOf(text)]).toEqual(["a"]);
  });

  test("lets entities inherit labels; their own win, then those of the first parent", () => {
    const { index } = indexWithLog();
    index.register('env == "x"');
    index.put("own", { labels: { env: "y" }, parents: ["first", "second"] });
    index.put("inherited", { labels: {}, parents: ["first", "second"] });

    index.putParent("second", { env: "y" });
    index.putParent("first", { env: "x" });

    expect([...index.membersOf('env == "x"')]).toEqual(["inherited"]);
  });

  test("takes labels back when their parent is gone", () => {
    const { index, log } = indexWithLog();
    index.register("has(env)");
    index.putParent("first", { env: "x" });
    index.put("one", { labels: {}, parents: ["first"] });

    index.putParent("first", undefined);

    expect(log).toEqual(["+ one has(env)", "- one has(env)"]);
  });

  test("knows labels that are called like properties of objects", () => {
    const { index } = indexWithLog();
    index.register("has(constructor)");
    index.register('toString == "x"');
    index.put("plain", { labels: {}, parents: [] });
    index.put("named", { labels: { constructor: "", toString: "x" } as never, parents: [] });

    expect([...index.membersOf("has(constructor)")]).toEqual(["named"]);
    expect([...index.membersOf('toString == "x"')]).toEqual(["named"]);
  });

  test("evaluates only the selectors that require a label of the entity, and those without a requirement", () => {
    const { index } = indexWithLog();
    for (let number = 0; number < 1_000; number++) index.register(`app == "a${number}"`);
    let read = 0;
    const labels = new Proxy({ app: "a1" } as Record<string, string>, {
      get: (target, name: string) => {
        read += 1;
        return target[name];
      },
    });

    index.put("one", { labels, parents: [] });

    expect([...index.matchesOf("one")]).toEqual(['app == "a1"']);
    expect(read).toBeLessThan(10);
  });

  test("forgets a selector and an entity", () => {
    const { index } = indexWithLog();
    index.register("has(app)");
    index.put("one", { labels: { app: "a" }, parents: [] });
    index.unregister("has(app)");
    expect(index.matchesOf("one")).toEqual([]);

    index.register("has(app)");
    index.delete("one");
    expect(index.membersOf("has(app)").size).toBe(0);
  });
});
