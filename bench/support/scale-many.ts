/** What 200 agents and the runtimes of their nodes ask of the datastore: reads, writes, events and bytes, all counted exactly. */
import {
  type ClusterSize,
  nodeRecord,
  nodesOfZone,
  type StoredRecord,
  sharedRecords,
} from "../../sim/scale/cluster-records.ts";
import { addCounts, CountedStore, countsSince, NO_COUNTS, type StoreCounts } from "../../sim/scale/counted-store.ts";
import { type ModelAgent, ModelRuntime, startModelAgent } from "../../sim/scale/many-agents.ts";
import type { ManyAgents, Phase, PhaseName } from "../../sim/scale/measured.ts";
import { MemoryTable } from "../../src/datastore/memory/table.ts";
import { memoryOf } from "./scale-node.ts";
import { seededRandom, shuffled } from "./seeded-random.ts";

const ZONE = 1;
const PODS_AT_ONCE = 200;
const REST_MILLISECONDS = 3_000;

export async function measureMany(size: ClusterSize): Promise<ManyAgents> {
  const table = new MemoryTable();
  const random = seededRandom(1);
  const writer = new CountedStore(table);
  const nodes = Array.from({ length: size.nodes }, (_, node) => node);
  const put = async (records: readonly StoredRecord[]) => {
    for (let start = 0; start < records.length; start += 100) {
      await writer.commit(records.slice(start, start + 100).map((record) => ({ kind: "put", ...record })));
    }
  };
  await put([...sharedRecords(size), ...nodes.map((node) => nodeRecord(node))]);
  const runtimes = nodes.map((node) => new ModelRuntime(table, node, size, random));
  const agents: ModelAgent[] = [];
  let stopped = NO_COUNTS;
  let stoppedKernel = 0;
  let others = writer.counts;

  const allCurrent = async () => {
    while (!agents.every((agent) => agent.isCurrent())) await Bun.sleep(1);
  };
  const phase = async (name: PhaseName, count: number, work: () => Promise<void>): Promise<Phase> => {
    await allCurrent();
    const counted = () => addCounts([stopped, ...agents.map((agent) => agent.counts)]);
    const kernel = () => agents.reduce((sum, { kernelChanges }) => sum + kernelChanges, stoppedKernel);
    const before = { agents: counted(), others, kernel: kernel(), cpu: process.cpuUsage() };
    await work();
    await allCurrent();
    const { user, system } = process.cpuUsage(before.cpu);
    const found = {
      count,
      agents: countsSince(before.agents, counted()),
      others: countsSince(before.others, others),
      kernelChanges: kernel() - before.kernel,
      cpuMilliseconds: (user + system) / 1_000,
    };
    console.log(`${size.nodes} agents: ${name}: ${Math.round(found.cpuMilliseconds)} ms of CPU time`);
    return found;
  };
  const eachPod = async (
    some: readonly number[],
    act: (runtime: ModelRuntime, pod: number) => Promise<StoreCounts>,
  ) => {
    const pods = some.flatMap((node) => Array.from({ length: size.podsPerNode }, (_, pod) => ({ node, pod })));
    const order = shuffled(pods, random);
    for (let first = 0; first < order.length; first += PODS_AT_ONCE) {
      const counts = await Promise.all(
        order.slice(first, first + PODS_AT_ONCE).map(({ node, pod }) => act(runtimes[node] as ModelRuntime, pod)),
      );
      others = addCounts([others, ...counts]);
      await allCurrent();
      table.forgetHistory();
    }
  };
  const write = async (records: readonly StoredRecord[]) => {
    const before = writer.counts;
    await put(records);
    others = addCounts([others, countsSince(before, writer.counts)]);
  };

  const zone = nodesOfZone(size, ZONE);
  const phases = {
    start: await phase("start", size.nodes, async () => {
      for (const node of nodes) agents.push(startModelAgent(table, node));
    }),
    "pods start": await phase("pods start", size.nodes * size.podsPerNode, () =>
      eachPod(nodes, (runtime, pod) => runtime.add(pod)),
    ),
    "at rest": await phase("at rest", REST_MILLISECONDS / 1_000, () => Bun.sleep(REST_MILLISECONDS)),
    "zone fails": await phase("zone fails", zone.length * size.podsPerNode, () =>
      eachPod(zone, (runtime, pod) => runtime.remove(pod)),
    ),
    "zone returns": await phase("zone returns", zone.length * size.podsPerNode, () =>
      eachPod(zone, (runtime, pod) => runtime.add(pod)),
    ),
    "rolling upgrade": await phase("rolling upgrade", size.nodes, async () => {
      for (const node of nodes) {
        const former = agents[node];
        if (former === undefined) continue;
        await former.stop();
        stopped = addCounts([stopped, former.counts]);
        stoppedKernel += former.kernelChanges;
        agents[node] = startModelAgent(table, node);
        await write([nodeRecord(node, "2")]);
        await allCurrent();
      }
    }),
  };
  const residentBytes = memoryOf(process.pid).residentBytes;
  await Promise.all(agents.map((agent) => agent.stop()));
  return { size, residentBytes, phases };
}
