/** How long the planner of routes takes for a whole cluster and for one change, and how much memory its facts and plan need. */
import { heapSize } from "bun:jsc";
import type { RoutedBlock } from "../../src/routing/facts.ts";
import { ROUTED_BLOCK_KINDS } from "../../src/routing/inputs.ts";
import { type FactChange, type FactChanges, RoutePlanner } from "../../src/routing/planner.ts";
import { deleteFact, poolFact, putFact } from "../../test/support/routing-facts.ts";
import { blockText, blockTexts, type PlannerSize, plannerNode, plannerResources } from "./planner-load.ts";
import { markdown } from "./policy-table.ts";
import { quantileOf } from "./statistics.ts";

export interface PlannerResult {
  readonly size: PlannerSize;
  /** Of facts and plan together. */
  readonly heapBytes: number;
  /** Milliseconds of each round. */
  readonly first: readonly number[];
  readonly decode: readonly number[];
  readonly changes: Readonly<Record<string, readonly number[]>>;
}

interface Measurement {
  readonly title: string;
  readonly change: (round: number, size: PlannerSize) => FactChanges;
  /** What brings the former state back; not measured. */
  readonly undo?: (round: number, size: PlannerSize) => FactChanges;
  /** The number of entries that must have changed. */
  readonly changed: (size: PlannerSize) => number;
}

const OWN = 0;

const MEASUREMENTS: readonly Measurement[] = [
  {
    title: "a new block of another node",
    change: (round, { nodes, blocksPerNode }) => ({
      blocks: [blockFactAt(nodes * blocksPerNode + round * 10 + 1, nodes)],
    }),
    undo: (round, { nodes, blocksPerNode }) => ({
      blocks: [deleteFact(blockKeyAt(nodes * blocksPerNode + round * 10 + 1))],
    }),
    changed: () => 1,
  },
  {
    title: "an ADD on another node: its block is written, its routes stay",
    change: (round, { nodes }) => ({ blocks: [blockFactAt(round + 1, nodes, 21 + (round % 20))] }),
    changed: () => 0,
  },
  {
    title: "another node has a new address",
    change: (round) => ({ nodes: [putFact(`node ${round + 300}`, plannerNode(round + 300, 1))] }),
    undo: (round) => ({ nodes: [putFact(`node ${round + 300}`, plannerNode(round + 300))] }),
    changed: () => 1,
  },
  {
    title: "another node is deleted",
    change: (round) => ({ nodes: [deleteFact(`node ${round + 300}`)] }),
    undo: (round) => ({ nodes: [putFact(`node ${round + 300}`, plannerNode(round + 300))] }),
    changed: ({ blocksPerNode }) => blocksPerNode + 2,
  },
  {
    title: "the mode of the pool: everything again",
    change: () => ({ pools: [putFact("pool", poolFact("pool", "10.0.0.0/8", "vxlan"))] }),
    undo: () => ({ pools: [putFact("pool", poolFact("pool", "10.0.0.0/8", "vxlan-cross-subnet"))] }),
    changed: () => 249,
  },
];

export function measurePlanner(size: PlannerSize, rounds: number): PlannerResult {
  const texts = blockTexts(size);
  const first: number[] = [];
  const decode: number[] = [];
  for (let round = 0; round < Math.min(rounds, 5); round++) {
    const started = performance.now();
    const blocks = texts.map((text, index) => blockFactOf(text, index));
    const decoded = performance.now();
    const facts = { ...plannerResources(size), blocks };
    const planning = performance.now();
    newPlanner().update(facts);
    first.push(performance.now() - planning);
    decode.push(decoded - started);
  }
  const { planner, heapBytes } = plannerInMemory(size, texts);
  const changes = Object.fromEntries(
    MEASUREMENTS.map((measurement) => [measurement.title, timeChanges(planner, measurement, { size, rounds })]),
  );
  return { size, heapBytes, first, decode, changes };
}

export function plannerTable(results: readonly PlannerResult[]): string {
  const titles = MEASUREMENTS.map(({ title }) => title);
  const cell = (values: readonly number[] = []) =>
    `${quantileOf(values, 0.5).toFixed(3)} ms (${quantileOf(values, 0.99).toFixed(3)})`;
  return markdown([
    ["median (p99)", ...results.map(({ size }) => `${size.nodes} nodes x ${size.blocksPerNode} blocks`)],
    ["first plan", ...results.map(({ first }) => cell(first))],
    ["reading the blocks before it", ...results.map(({ decode }) => cell(decode))],
    ["memory of facts and plan", ...results.map(({ heapBytes }) => `${(heapBytes / 1_000_000).toFixed(1)} MB`)],
    ...titles.map((title) => [title, ...results.map(({ changes }) => cell(changes[title]))]),
  ]);
}

function timeChanges(
  planner: RoutePlanner,
  { title, change, undo, changed }: Measurement,
  { size, rounds }: { readonly size: PlannerSize; readonly rounds: number },
): readonly number[] {
  return Array.from({ length: rounds }, (_, round) => {
    const facts = change(round, size);
    const started = performance.now();
    const { tunnels, peers, routes, senders, announced } = planner.update(facts);
    const milliseconds = performance.now() - started;
    const count = tunnels.size + peers.size + routes.size + senders.size + announced.size;
    if (count < changed(size)) throw new Error(`"${title}" has changed ${count} entries`);
    if (undo !== undefined) planner.update(undo(round, size));
    return milliseconds;
  });
}

function plannerInMemory(size: PlannerSize, texts: readonly string[]) {
  Bun.gc(true);
  const before = heapSize();
  const planner = newPlanner();
  planner.update({ ...plannerResources(size), blocks: texts.map((text, index) => blockFactOf(text, index)) });
  Bun.gc(true);
  return { planner, heapBytes: heapSize() - before };
}

function newPlanner(): RoutePlanner {
  return new RoutePlanner(`node-${OWN}`, { isEnabled: true, isBgpEnabled: true });
}

function blockFactAt(index: number, nodes: number, assigned?: number): FactChange<RoutedBlock> {
  return blockFactOf(blockText(index, nodes, assigned), index);
}

/** Decoded as a replica does. */
function blockFactOf(value: string, index: number): FactChange<RoutedBlock> {
  const key = blockKeyAt(index);
  const block = ROUTED_BLOCK_KINDS.blocks4.decode({ key, value, revision: "1" });
  if (block === undefined) throw new Error(`${key} is not a block`);
  return putFact(key, block);
}

function blockKeyAt(index: number): string {
  return `block ${index}`;
}
