import { describe, expect, test } from "bun:test";
import { FlowQueryError } from "../../../flows/flow-query.ts";
import { filterKey, filtersIn, readFilters, suggestedFilters } from "./flow-filter.ts";
import { sampleFlow } from "./sample-flow.ts";

describe("readFilters()", () => {
  test("asks for the newest flows and what comes, unless a time is given", () => {
    expect(readFilters({ verdict: "denied" }, 0)).toEqual({ query: { verdict: "denied", last: 1_000 }, follows: true });
  });

  test("a range goes along with the clock", () => {
    expect(readFilters({ range: "15m" }, 1_000_000)).toEqual({ query: { since: 100_000 }, follows: true });
  });

  test("nothing comes any more if the time has an end", () => {
    expect(readFilters({ since: "1", until: "2" }, 0)).toEqual({ query: { since: 1, until: 2 }, follows: false });
  });

  test("ignores what is not about the flows that are asked for", () => {
    expect(readFilters({ flow: "node-1/7", order: "time", last: "5" }, 0).query).toEqual({ last: 5 });
  });

  test.each([{ port: "70000" }, { range: "1y" }, { protocol: "telepathy" }, { verdict: "perhaps" }])(
    "refuses %j with the words of the command",
    (parameters) => {
      expect(() => readFilters(parameters, 0)).toThrow(FlowQueryError);
    },
  );
});

describe("filterKey()", () => {
  test("differs if other flows are asked for, and not if one is opened", () => {
    expect(filterKey({ pod: "a", flow: "1", order: "time" })).toBe(filterKey({ pod: "a" }));
    expect(filterKey({ pod: "a" })).not.toBe(filterKey({ pod: "b" }));
  });
});

describe("suggestedFilters()", () => {
  const records = [sampleFlow()];
  const words = (text: string) => suggestedFilters(text, records).map(({ field, value }) => `${field}=${value}`);

  test.each([
    ["5432", "port=5432"],
    ["10.0.0.0/8", "from=10.0.0.0/8"],
    ["outside", "from=outside"],
    ["udp", "protocol=udp"],
    ["app=web", "label=app=web"],
    ["policy=shop/db", "policy=shop/db"],
    ["to: shop/db-0", "to=shop/db-0"],
  ])("takes %p for %p", (text, first) => {
    expect(words(text)[0]).toBe(first);
  });

  test("offers what flows have before what was typed", () => {
    expect(words("web")).toEqual([
      "pod=shop/web-1",
      "from=shop/web-1",
      "pod=web",
      "namespace=web",
      "from=web",
      "to=web",
      "policy=web",
      "node=web",
    ]);
  });

  test("offers a whole name before a part of one", () => {
    expect(words("shop")[0]).toBe("namespace=shop");
  });

  test("offers the values of a field", () => {
    expect(words("staged=")).toEqual(["staged=allowed", "staged=denied", "staged=depends"]);
    expect(words("node=")).toEqual(["node=node-2"]);
  });

  test("has none for nothing", () => {
    expect(words("  ")).toEqual([]);
  });
});

test("filters are the typed fields of the address", () => {
  expect(filtersIn({ verdict: "denied", to: "shop/db-0", flow: "1", pod: "web" })).toEqual([
    { field: "pod", value: "web" },
    { field: "to", value: "shop/db-0" },
  ]);
});
