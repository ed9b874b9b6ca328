import { describe, expect, test } from "bun:test";
import { nearestName } from "./nearest-name.ts";

describe("nearestName()", () => {
  test.each([
    ["log_levle", "log_level"],
    ["loglevel", "log_level"],
    ["Log-Level", "log_level"],
    ["mut", "mtu"],
    ["ipv4_pool", "ipv4_pools"],
    ["something_else", undefined],
    ["x".repeat(65), undefined],
  ])("%s -> %p", (given, nearest) => {
    expect(nearestName(given, ["ipv4_pools", "ipv6_pools", "log_level", "mtu", "name"])).toBe(nearest as never);
  });
});
