import { describe, expect, test } from "bun:test";
import { feedMetrics } from "./feed-sidecars.ts";

describe("feedMetrics()", () => {
  test("counts sidecars, updates and refused connections by reason", () => {
    const text = feedMetrics({ reporting: 3, updates: 7, refused: new Map([["too slow", 2]]) });
    const values = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect(values.map((line) => line.replace(/^\w*?_sidecar/, "sidecar"))).toEqual([
      "sidecars 3",
      "sidecar_updates_total 7",
      'sidecar_connections_refused_total{reason="too slow"} 2',
    ]);
  });
});
