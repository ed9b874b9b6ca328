/** Routes between nodes: the planner in a large cluster. */
import { measurePlanner, plannerTable } from "./support/planner-times.ts";
import { writeResults } from "./support/report.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 200);
const CLUSTERS = [500, 5_000].map((nodes) => ({ nodes, blocksPerNode: 4 }));

const planner = CLUSTERS.map((size) => measurePlanner(size, ROUNDS));
console.log(plannerTable(planner));
await writeResults("routing", { planner });
