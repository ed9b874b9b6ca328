import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { metricsText, readinessOf } from "./sidecar-report.ts";

const report = {
  revision: 3,
  updates: 4,
  isStopping: false,
  decisions: { allow: 5, deny: 6, "not synchronised": 7, error: 8 },
  decisionSeconds: 0.25,
  proxyConnections: 2,
  residentBytes: 1024,
};

/** Without the names' beginning and the comments. */
const valuesIn = (text: string) =>
  text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.replace(`${identity.sidecar.replaceAll("-", "_")}_`, ""));

describe("readinessOf()", () => {
  test.each([
    [{ revision: 0, isStopping: false }, 503],
    [{ revision: 1, isStopping: false }, 200],
    [{ revision: 1, isStopping: true }, 503],
  ])("of %j is %d", (state, status) => {
    expect(readinessOf(state).status).toBe(status as 200 | 503);
  });
});

describe("readinessOf() without policies", () => {
  test("says why", () => {
    const droppedBecause = "the node agent refuses this sidecar";
    expect(readinessOf({ revision: 0, isStopping: false, droppedBecause })).toEqual({
      status: 503,
      text: "all requests are denied: the node agent refuses this sidecar",
    });
  });
});

describe("metricsText()", () => {
  test("has decisions by verdict, their time, the state, the agent and memory", () => {
    expect(valuesIn(metricsText(report))).toEqual([
      'decisions_total{verdict="allow"} 5',
      'decisions_total{verdict="deny"} 6',
      'decisions_total{verdict="not-synchronised"} 7',
      'decisions_total{verdict="error"} 8',
      "decision_seconds_total 0.25",
      "state_revision 3",
      "updates_total 4",
      "agent_connected 1",
      "agent_disconnected_seconds 0",
      "proxy_connections 2",
      "resident_memory_bytes 1024",
    ]);
  });

  test("says since when there is no agent", () => {
    const values = valuesIn(metricsText({ ...report, disconnectedSeconds: 12.5 }));

    expect(values).toContain("agent_connected 0");
    expect(values).toContain("agent_disconnected_seconds 12.5");
  });
});
