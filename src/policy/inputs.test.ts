import { describe, expect, test } from "bun:test";
import { planFeeds } from "../datastore/replica/kinds.ts";
import { networkPolicy } from "../model/network-policy.ts";
import { POLICY_KINDS } from "./inputs.ts";

describe("POLICY_KINDS", () => {
  test.each(["together", "per kind"] as const)("can be followed by a replica, %s", (grouping) => {
    expect(planFeeds(POLICY_KINDS, grouping).length).toBeGreaterThan(0);
  });

  test("decodes a stored policy, with defaults", () => {
    const { prefix, decode } = POLICY_KINDS.networkPolicies;
    const stored = networkPolicy.make({ name: "deny", namespace: "red" }, { tier: "default" });
    const value = JSON.stringify({ ...stored, spec: {} });

    expect(decode({ key: `${prefix}red/deny`, value, revision: "1" })).toEqual(stored);
  });
});
