import { describe, expect, test } from "bun:test";
import { identity } from "../identity.ts";
import { hasPrefix, workloadPrefixes } from "./interface-prefix.ts";
import { nodeAgentSettings } from "./node-agent-configuration.ts";

describe("workloadPrefixes()", () => {
  test("always has our own", () => {
    expect(workloadPrefixes("veth,lxc")).toEqual([identity.interfacePrefix, "veth", "lxc"]);
    expect(workloadPrefixes(nodeAgentSettings([], "node-1").interfacePrefix)).toEqual([identity.interfacePrefix]);
  });

  test("leaves out what another one begins", () => {
    expect(workloadPrefixes("ve, veth")).toEqual(["ve"]);
  });
});

describe("hasPrefix()", () => {
  test("is true for a name that begins with one of them", () => {
    expect(hasPrefix("veth1a2b", ["vend", "veth"])).toBe(true);
    expect(hasPrefix("eth0", ["vend", "veth"])).toBe(false);
  });
});
