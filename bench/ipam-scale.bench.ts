/**
 * What an ADD costs as the cluster grows: round trips and time of the real
 * allocator on the memory datastore. Writes docs/ipam-scale.md and its plot.
 */
import { join } from "node:path";
import { type ClusterGrowth, growCluster } from "./support/cluster-growth.ts";
import { chartsAsSvg } from "./support/line-chart.ts";
import { quantileOf } from "./support/statistics.ts";

const NODES = [50, 500, 5_000];
const GOAL = 5;
const SIZE = { podsPerNode: 50, cidr: "10.0.0.0/12", atOnce: 32, seed: 1 };

// Once before it counts: the first ADDs of a process pay for the compiler.
await growCluster({ ...SIZE, nodes: 20 });
const growths: ClusterGrowth[] = [];
for (const nodes of NODES) growths.push(await growCluster({ ...SIZE, nodes }));

const table = tableOf(growths);
console.log(table);
const docs = join(import.meta.dir, "../docs");
await Bun.write(join(docs, "ipam-scale.md"), pageOf(table));
await Bun.write(join(docs, "ipam-scale.svg"), plotOf(growths));
console.log("written to docs/ipam-scale.md and docs/ipam-scale.svg");

function tableOf(all: readonly ClusterGrowth[]): string {
  const rows = all.map(({ size, roundTrips, millisecondsPerAdd, addresses }) => {
    const steps = [0.5, 0.99, 1].map((share) => String(quantileOf(roundTrips, share)));
    const times = [0.5, 0.99].map((share) => quantileOf(millisecondsPerAdd, share).toFixed(2));
    return [size.nodes, roundTrips.length, addresses, ...steps, ...times].join(" | ");
  });
  return [
    "| nodes | ADDs | different addresses | round trips p50 | p99 | most | CPU ms per ADD p50 | p99 |",
    "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ...rows.map((row) => `| ${row} |`),
  ].join("\n");
}

function plotOf(all: readonly ClusterGrowth[]): string {
  const places = all.map(({ size }) => `${size.nodes} nodes`);
  const lineOf = (name: string, of: (growth: ClusterGrowth) => readonly number[], share: number) => ({
    name,
    values: all.map((growth) => quantileOf(of(growth), share)),
  });
  const roundTrips = (growth: ClusterGrowth) => growth.roundTrips;
  const time = (growth: ClusterGrowth) => growth.millisecondsPerAdd;
  return chartsAsSvg([
    {
      title: "Round trips of an ADD",
      places,
      lines: [lineOf("p50", roundTrips, 0.5), lineOf("p99", roundTrips, 0.99)],
      goal: { name: `goal for p99: ${GOAL}`, value: GOAL },
    },
    { title: "CPU milliseconds per ADD", places, lines: [lineOf("p50", time, 0.5), lineOf("p99", time, 0.99)] },
  ]);
}

function pageOf(rows: string): string {
  return `# What an ADD costs as the cluster grows

Written by \`make bench BENCH=ipam-scale\`: the real allocator on the memory datastore, which counts every request that a server would
see. ${SIZE.podsPerNode} pods per node arrive in an order of chance (seed ${SIZE.seed}), ${SIZE.atOnce} at the same moment, on one pool ${SIZE.cidr}. Every ADD is a
connection of its own that knows nothing but the hints of its host.

${rows}

![Round trips and time of an ADD as nodes grow](ipam-scale.svg)

The goal is at most ${GOAL} round trips at p99, and figures that stay flat. A steady ADD takes 2: one bundled read, one commit. The first
ADD of a node takes 3: it reads a bundle of candidates for its block in between. What is above that lost a race and decided anew. In
a small cluster that is a race on one node: the pods that arrive at the same moment meet there more often, and this benchmark lets them
race, where a real host lets its processes take turns (\`src/ipam/host-turn.ts\`). No step lists what the cluster holds, so neither
round trips nor time follow its size.

Time is that of the processor for all ADDs of a moment by their number, the datastore's own work in the same process included; p99 is
the moments in which memory was collected. \`test/ipam/cluster-growth.test.ts\` holds the round trips to the goal, with 50 nodes in \`make test\` and 5,000 in
\`make soak\`.
`;
}
