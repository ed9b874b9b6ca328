import { describe, expect, test } from "bun:test";
import { hashOf, type Route, readRoute } from "./route.ts";

describe("readRoute()", () => {
  test.each<[string, Route]>([
    ["", { view: "health", path: [], parameters: {} }],
    ["#/nothing", { view: "health", path: [], parameters: {} }],
    ["#/health?node=node-1", { view: "health", path: [], parameters: { node: "node-1" } }],
    [
      "#/flows?to=10.0.0.0%2F8&verdict=denied",
      { view: "flows", path: [], parameters: { to: "10.0.0.0/8", verdict: "denied" } },
    ],
    ["#/addresses/blue/fd00%3A%3A%2F122", { view: "addresses", path: ["blue", "fd00::/122"], parameters: {} }],
    ["#/addresses/%E0%A4%A", { view: "addresses", path: ["%E0%A4%A"], parameters: {} }],
    ["#/flows?label=a=b?c", { view: "flows", path: [], parameters: { label: "a=b?c" } }],
  ])("reads %p", (hash, route) => {
    expect(readRoute(hash)).toEqual(route);
  });
});

describe("hashOf()", () => {
  test.each<Route>([
    { view: "health", path: [], parameters: {} },
    { view: "flows", path: [], parameters: { pod: "shop/web-*", label: "app=web,tier", since: "1" } },
    { view: "addresses", path: ["blue", "10.0.0.0/26"], parameters: { address: "10.0.0.7" } },
  ])("is read as it was: %j", (route) => {
    expect(readRoute(hashOf(route))).toEqual(route);
  });

  test("leaves out what is empty", () => {
    expect(hashOf({ view: "flows", parameters: { pod: "" } })).toBe("#/flows");
  });
});
