import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { scaleCharts } from "./charts.ts";
import { fitGrowth, fitLine, growthAt, medianOf, valueAt } from "./fit.ts";
import type { Measured } from "./measured.ts";
import { ASSUMPTIONS, costsOf, nodeLimit, predict } from "./model.ts";
import { scalePage } from "./page.ts";
import { scaleChartsAsSvg } from "./plot.ts";

const DOCS = join(import.meta.dir, "../../docs");
const measured: Measured = await Bun.file(join(DOCS, "scale.json")).json();
const costs = costsOf(measured);

describe("fitLine()", () => {
  test("finds the line through points on it", () => {
    const line = fitLine([1, 2, 5].map((x) => ({ x, y: 3 + 2 * x })));

    expect(valueAt(line, 10)).toBeCloseTo(23);
  });

  test("refuses a single point", () => {
    expect(() => fitLine([{ x: 1, y: 1 }])).toThrow("two points");
  });
});

describe("fitGrowth()", () => {
  test("finds a curve that rises faster than a line", () => {
    const growth = fitGrowth([1, 2, 5].map((x) => ({ x, y: 3 * x + 2 * x * x })));

    expect(growthAt(growth, 10)).toBeCloseTo(230);
  });

  test("is a line for points that do not", () => {
    expect(fitGrowth([1, 2, 5].map((x) => ({ x, y: 10 + x })))).toMatchObject({ square: 0 });
  });
});

test.each([
  [[3, 1, 2], 2],
  [[4, 1, 2, 3], 2.5],
])("medianOf(%p) is %p", (values, expected) => {
  expect(medianOf(values)).toBe(expected);
});

describe("the model", () => {
  test("is close to the largest measured cluster", () => {
    const largest = Object.values(measured.agents).toSorted((left, right) => right.size.nodes - left.size.nodes)[0];
    const predicted = predict(costs, largest?.size.nodes ?? 0);
    const { first, memory } = largest ?? { first: undefined, memory: undefined };
    const seconds = ((first?.agentMilliseconds ?? 0) + (first?.etcdMilliseconds ?? 0)) / 1_000;

    expect(predicted.firstSeconds / seconds).toBeWithin(0.75, 1.33);
    expect(predicted.residentBytes / (memory?.settled.residentBytes ?? 0)).toBeWithin(0.75, 1.33);
  });

  test("needs all cores for watches at the node limit, and half of them at half of it", () => {
    const limit = nodeLimit(costs);

    expect(predict(costs, limit).serverCores).toBeCloseTo(ASSUMPTIONS.cores, 1);
    expect(predict(costs, limit / 2).serverCores).toBeLessThan(ASSUMPTIONS.cores * 0.6);
  });

  test("has a lower limit if more pods start", () => {
    expect(nodeLimit(costs, { ...ASSUMPTIONS, podStartsPerSecond: 100 })).toBeLessThan(nodeLimit(costs) / 4);
  });

  test("takes the requests of a pod as they were counted", () => {
    const quiet = predict(costs, 1_000, { ...ASSUMPTIONS, podStartsPerSecond: 0 });

    expect(quiet).toMatchObject({ commitsPerSecond: 0, eventsPerAgent: 0, serverCores: 0 });
    expect(predict(costs, 1_000).commitsPerSecond).toBeCloseTo(
      ASSUMPTIONS.podStartsPerSecond * (costs.add.commits + costs.remove.commits),
    );
  });
});

describe("docs/scale.md", () => {
  test("is what the measured figures give", async () => {
    expect(await Bun.file(join(DOCS, "scale.md")).text()).toBe(scalePage(measured));
  });

  test("has the plots of the measured figures", async () => {
    const svg = scaleChartsAsSvg(scaleCharts(measured, costs));

    expect(await Bun.file(join(DOCS, "scale.svg")).text()).toBe(svg);
    expect(svg).not.toContain("NaN");
  });
});
