/**
 * Flows: what they cost a connection, on a host with them and on one without, in turns; then the collector beside a program that lists
 * the connection table every five seconds, as peers do, at three rates.
 */
import { hostProblem } from "../test/support/host.ts";
import { firstPackets, wholeConnections } from "./support/flow-load.ts";
import { measureCollector, measureConnects, measurePoll, type ObserverResult } from "./support/flow-measurements.ts";
import { openFlowSite } from "./support/flow-site.ts";
import { connectTable, observerTable } from "./support/flow-table.ts";
import { buildProduct } from "./support/programs.ts";
import { writeResults } from "./support/report.ts";

const ROUNDS = Math.min(Number(process.env["BENCH_ROUNDS"] ?? 60), 60);
const SECONDS = Math.min(ROUNDS, 20);
const LOADS = [wholeConnections(1_000), wholeConnections(10_000), firstPackets(10_000), firstPackets(50_000)];

const problem = hostProblem();
if (problem === undefined) await measure();
else console.log(`skipped: ${problem}`);

async function measure(): Promise<void> {
  await buildProduct();
  await using without = await openFlowSite("Disabled");
  await using withFlows = await openFlowSite("Enabled");
  const connects = await measureConnects({ without, withFlows }, ROUNDS);
  console.log(connectTable(connects));
  const observers: ObserverResult[] = [];
  for (const load of LOADS) {
    observers.push(await measureCollector(withFlows, load, SECONDS));
    observers.push(await measurePoll(without, load, SECONDS));
  }
  console.log(observerTable(observers));
  await writeResults("flows", { connects, observers });
}
