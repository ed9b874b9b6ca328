/**
 * Routes between nodes: the planner in a large cluster; what a tunnel costs packets, beside the same tunnel made by hand; and
 * how soon a new block of one node is routed on another, on etcd and on the orchestrator's API.
 */
import { hasEtcd } from "../test/support/etcd.ts";
import { hostProblem } from "../test/support/host.ts";
import { measurePlanner, plannerTable } from "./support/planner-times.ts";
import { buildProduct } from "./support/programs.ts";
import { writeResults } from "./support/report.ts";
import { measureBlocks, measurePaths } from "./support/routing-measurements.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 200);
const CLUSTERS = [500, 5_000].map((nodes) => ({ nodes, blocksPerNode: 4 }));
const PATH_ROUNDS = Math.min(ROUNDS, 20);

const planner = CLUSTERS.map((size) => measurePlanner(size, ROUNDS));
console.log(plannerTable(planner));
const problem = hostProblem() ?? (hasEtcd ? undefined : "needs etcd");
if (problem === undefined) await buildProduct();
else console.log(`skipped: ${problem}`);
const paths = problem === undefined ? await measurePaths(PATH_ROUNDS) : [];
const blocks = problem === undefined ? await measureBlocks(ROUNDS) : {};
await writeResults("routing", { planner, paths, blocks });
