import { describe, expect, test } from "bun:test";
import { stateAfter } from "../../bench/support/pod-watch.ts";
import { sandboxTable, timesIn } from "../../bench/support/sandbox-times.ts";

describe("stateAfter()", () => {
  const withReady = (status: string) => ({ status: { conditions: [{ type: "Ready", status }] } });

  test("tells Ready from not yet and from gone", () => {
    expect(stateAfter({ type: "MODIFIED", object: withReady("True") })).toBe("Ready");
    expect(stateAfter({ type: "MODIFIED", object: withReady("False") })).toBeUndefined();
    expect(stateAfter({ type: "ADDED", object: {} })).toBeUndefined();
    expect(stateAfter({ type: "DELETED", object: withReady("True") })).toBe("gone");
  });
});

describe("sandboxTable()", () => {
  const metrics = (sum: number, count: number) =>
    [
      "# TYPE kubelet_run_podsandbox_duration_seconds histogram",
      'kubelet_run_podsandbox_duration_seconds_bucket{runtime_handler="",le="0.5"} 1',
      `kubelet_run_podsandbox_duration_seconds_sum{runtime_handler=""} ${sum}`,
      `kubelet_run_podsandbox_duration_seconds_count{runtime_handler=""} ${count}`,
    ].join("\n");

  test("shows the mean of the sandboxes between two readings of a kubelet's metrics", () => {
    const before = new Map([["a", timesIn(metrics(1, 2))]]);
    const after = new Map([
      ["a", timesIn(metrics(1.5, 4))],
      ["b", timesIn(metrics(0.5, 1))],
    ]);

    expect(sandboxTable("IPv4", before, after)).toContain("| a | 2 | 250.0 | 1.00 x |\n| b | 1 | 500.0 | 2.00 x |");
  });
});
