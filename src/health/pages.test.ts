import { describe, expect, test } from "bun:test";
import { metricsPages } from "./pages.ts";

describe("metricsPages()", () => {
  test("computes the metrics again only if nine times as long has passed as it takes", () => {
    let now = 0;
    let count = 0;
    const compute = () => {
      now += 20;
      count += 1;
      return String(count);
    };
    const pages = metricsPages(compute, () => now);
    const readAfter = (milliseconds: number) => {
      now += milliseconds;
      return pages("/metrics")?.text;
    };

    expect([readAfter(0), readAfter(0), readAfter(179), readAfter(1), readAfter(0)]).toEqual(["1", "1", "1", "2", "2"]);
    expect(pages("/other")).toBeUndefined();
  });
});
