import { describe, expect, test } from "bun:test";
import { versionObstacles } from "./supported-upgrades.ts";

const target = "v3.29.1";
const obstaclesOf = (version: string, more: object = {}) =>
  versionObstacles({ version, target, orchestratorVersion: "v1.34.0", ...more }).map(({ message }) => message);

describe("versionObstacles()", () => {
  test.each(["v3.15.0", "3.15.0", "v3.15.0-rc.1", "v3.22.4", "v3.28.0", "v3.29.0", "v3.29.1", "v3.29.1-next"])(
    "allows %s",
    (version) => expect(obstaclesOf(version)).toEqual([]),
  );

  test.each([
    ["v3.14.2", "starts from v3.15.0 or later"],
    ["v2.6.12", "starts from v3.15.0 or later"],
    ["v3.29.2", "a downgrade is not possible"],
    ["v3.30.0", "a downgrade is not possible"],
    ["v4.0.0", "a downgrade is not possible"],
    ["latest", '"latest", is not a version'],
  ])("refuses %s, and says why", (version, reason) => {
    expect(obstaclesOf(version)).toEqual([expect.stringContaining(reason)]);
  });

  test("refuses an orchestrator that lacks what everything is installed by", () => {
    expect(obstaclesOf("v3.15.0", { orchestratorVersion: "v1.21.14+k3s1" })).toEqual([
      "the orchestrator has v1.21.14+k3s1: this release needs v1.22.0 or later",
    ]);
    expect(obstaclesOf("v3.15.0", { orchestratorVersion: "v1.22.0-rc.1" })).toEqual([]);
    expect(obstaclesOf("v3.15.0", { orchestratorVersion: "v1.24.17" })).toEqual([]);
    expect(obstaclesOf("v3.15.0", { orchestratorVersion: "unknown" })).toEqual([]);
  });
});
