import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { rollup } from "../../../../test/support/imitated-flows.ts";
import type { FlowAnswer, FlowRollup } from "../../../flows/flow-answer.ts";
import { paint } from "../../terminal/paint.ts";
import { drawSvg, layoutOf } from "./draw-svg.ts";
import { type FlowGraph, flowGraph } from "./flow-graph.ts";
import { drawDot, drawText } from "./graph.ts";

const rollups = (answers: readonly FlowAnswer[]): readonly FlowRollup[] =>
  answers.flatMap((answer) => ("rollup" in answer ? [answer.rollup] : []));
const graphOf = (...answers: readonly FlowAnswer[]): FlowGraph => flowGraph(rollups(answers));

const WEB = { kind: "pod", namespace: "shop", name: "web", ownerKind: "Deployment" } as const;
const DB = { kind: "pod", namespace: "shop", name: "db", ownerKind: "StatefulSet" } as const;
const DNS = { kind: "pod", namespace: "kube-system", name: "dns", ownerKind: "Deployment" } as const;
const OUTSIDE = { kind: "outside" } as const;

/** The outside asks the shop, whose parts ask each other and DNS; the database wants to leave and may not. */
const SHOP = graphOf(
  rollup({ source: OUTSIDE, destination: WEB, port: 443, flows: 1_200, bytes: 5_600_000 }),
  rollup({ source: WEB, destination: DB, flows: 300, bytes: 81_000 }),
  rollup({ source: WEB, destination: DNS, protocol: 17, port: 53, flows: 900, bytes: 120_000 }),
  rollup({ source: DB, destination: OUTSIDE, port: 443, verdict: "denied", flows: 3, bytes: 180 }),
  rollup({ source: DB, destination: { kind: "host", name: "node-1" }, port: 9100, flows: 1 }),
);

async function golden(name: string, text: string): Promise<void> {
  expect(text).toBe(await Bun.file(join(import.meta.dir, "golden", name)).text());
}

const page = (width: number) => ({ paint: paint({ env: {}, isTerminal: false }), width });

describe("flows graph", () => {
  test("as text: below each source whom it talks to", async () => {
    await golden("shop.txt", drawText(SHOP, page(80)));
    await golden("shop-40.txt", drawText(SHOP, page(40)));
  });

  test("for Graphviz", async () => {
    await golden("shop.dot", drawDot(SHOP));
  });

  test("as a picture", async () => {
    await golden("shop.svg", drawSvg(SHOP));
  });

  test("without any flow", () => {
    const none = graphOf();

    expect([drawText(none, page(80)), drawDot(none)]).toEqual(["", expect.stringContaining("digraph flows {")]);
    expect(drawSvg(none)).toContain("</svg>");
  });
});

describe("names in pictures", () => {
  const EVILS = [
    "</text><script>alert(1)</script>",
    '"><image href="x" onerror="alert(1)"/>',
    "]]><!--",
    "\u0000\u001b[31m\ud800\ufffe",
    '"]; evil [label="',
    "\\",
    '\\"',
    "\\N",
    "a\nb",
  ];
  const name = fc.oneof(fc.constantFrom(...EVILS), fc.string({ unit: "binary" }));
  const group = fc.record({ kind: fc.constant("pod" as const), namespace: name, name, ownerKind: name });
  const graphs = fc
    .array(fc.record({ source: group, destination: group }), { minLength: 1, maxLength: 4 })
    .map((ends) => graphOf(...ends.map((each) => rollup(each))));

  test("are nothing but text of an SVG", () => {
    fc.assert(
      fc.property(graphs, (graph) => {
        const svg = drawSvg(graph);
        const elements = new Set([...svg.matchAll(/<(\/?[^\s>/]*)/g)].map(([, element]) => element?.replace("/", "")));
        expect([...elements].filter((element) => !ELEMENTS.has(element ?? ""))).toEqual([]);
        expect(svg.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\ufffe\uffff]/u);
        expect(svg.isWellFormed()).toBe(true);
        expect(svg).not.toMatch(/&(?!(amp|lt|gt|quot|#39);)/);
      }),
    );
  });
  const ELEMENTS: ReadonlySet<string> = new Set([
    "svg",
    "rect",
    "defs",
    "marker",
    "path",
    "g",
    "title",
    "text",
    "style",
  ]);

  test("are nothing but quoted strings of DOT", () => {
    fc.assert(
      fc.property(graphs, (graph) => {
        for (const line of drawDot(graph).split("\n")) expect(line).toMatch(DOT_LINE);
      }),
    );
  });
  const DOT_LINE =
    /^(|digraph flows \{|\}| {2}\}| {2}rankdir=LR;| {2}node \[shape=box\];| {2}subgraph cluster_\d+ \{| {4}label="([^"\\\p{Cc}]|\\\\|\\")*";| {2,4}n\d+ \[label="([^"\\\p{Cc}]|\\\\|\\")*"\];| {2}n\d+ -> n\d+ \[label="([^"\\\p{Cc}]|\\\\|\\")*" color="#[\da-f]+" fontcolor="#[\da-f]+"( style=dashed)?\];)$/u;
});

describe("layoutOf()", () => {
  test("shows each edge in a row or counts it, and no box overlaps another one", () => {
    const ends = fc.array(fc.tuple(fc.nat(7), fc.nat(7), fc.nat(6)), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(ends, (pairs) => {
        const group = (index: number) => ({ ...WEB, name: `w${index}` });
        const graph = graphOf(
          ...pairs.map(([from, to, port]) =>
            rollup({
              ...{ source: group(from), destination: group(to), port },
              verdict: port === 6 ? "denied" : "allowed",
            }),
          ),
        );
        const { sources, destinations, height } = layoutOf(graph);
        const rows = sources.flatMap((box) => box.rows);
        expect(rows.reduce((sum, { edge, more }) => sum + (edge === undefined ? more : 1), 0)).toBe(graph.edges.length);
        for (const edge of graph.edges.filter(({ verdict }) => verdict === "denied"))
          expect(rows.some((row) => row.edge === edge)).toBe(true);
        expect(new Set(destinations.map(({ node }) => node))).toEqual(new Set(graph.edges.map(({ to }) => to)));
        for (const boxes of [sources, destinations]) {
          const below = [...boxes.slice(1).map(({ y }) => y), height];
          for (const [index, box] of boxes.entries()) expect(box.y + box.height).toBeLessThan(below[index] ?? 0);
        }
        for (const box of sources) for (const { y } of box.rows) expect(y > box.y && y < box.y + box.height).toBe(true);
      }),
    );
  });

  test("of many nodes takes no long time", () => {
    const many = Array.from({ length: 3_000 }, (_, index) =>
      rollup({ source: { ...WEB, name: `w${index}` }, destination: { ...WEB, name: `w${(index * 7) % 3_000}` } }),
    );
    expect(layoutOf(graphOf(...many)).sources).toHaveLength(3_000);
  });
});
