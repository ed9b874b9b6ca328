import { describe, expect, test } from "bun:test";
import type { PolicyRule } from "../model/policy-rule.ts";
import { withNamedFamilies } from "./named-families.ts";

const excluded = (action: string, entity: object) =>
  withNamedFamilies({ action, destination: entity } as PolicyRule).destination?.notNets;

describe("withNamedFamilies()", () => {
  test.each(["Allow", "Pass"])("closes the family that the notNets of a rule with %s do not name", (action) => {
    expect(excluded(action, { notNets: ["10.0.0.0/8"] })).toEqual(["10.0.0.0/8", "::/0"]);
    expect(excluded(action, { notNets: ["fd00::1", "fd01::/16"] })).toEqual(["fd00::1", "fd01::/16", "0.0.0.0/0"]);
    expect(excluded(action, { notNets: ["10.0.0.0/8"], ports: [80], notSelector: "has(web)" })).toContain("::/0");
  });

  test("leaves a rule of one IP version as it is", () => {
    const rule: PolicyRule = { action: "Allow", ipVersion: 4, source: { notNets: ["10.0.0.0/8"] } };
    expect(withNamedFamilies(rule)).toBe(rule);
  });

  test("leaves a rule that denies as it is: it denies both families", () => {
    expect(excluded("Deny", { notNets: ["10.0.0.0/8"] })).toEqual(["10.0.0.0/8"]);
  });

  test.each([
    { notNets: ["10.0.0.0/8", "fd00::/8"] },
    { notNets: ["10.0.0.0/8"], nets: ["fd00::/8"] },
    { notNets: ["10.0.0.0/8"], selector: "has(web)" },
    { notNets: ["10.0.0.0/8"], namespaceSelector: "all()" },
    { notNets: ["10.0.0.0/8"], serviceAccounts: { names: ["web"] } },
    { notNets: ["10.0.0.0/8"], services: { name: "web" } },
    { notNets: [] },
    {},
  ])("leaves a rule as it is that says otherwise whom it is for: %p", (entity) => {
    const rule = { action: "Allow", source: entity } as PolicyRule;
    expect(withNamedFamilies(rule)).toBe(rule);
  });
});
