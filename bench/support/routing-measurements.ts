/** The ways of packets between nodes, and the time until a new block is routed, on four hosts with the built product. */
import { untilReachable } from "../../test/routing/reachability.ts";
import { openRoutedSite, type RoutedPod, type RoutedSite } from "../../test/routing/routed-site.ts";
import { type RouterDatastore, startRouterApi, startRouterEtcd } from "../../test/routing/router-datastore.ts";
import type { Host } from "../../test/support/host.ts";
import { apiServerProblem } from "../../test/support/kube-apiserver.ts";
import type { BlockTimes } from "./block-times.process.ts";
import { blockTimesTable, measureBlockTimes } from "./block-times.ts";
import { wireByHand } from "./hand-wired-path.ts";
import { measureThroughput, type PodPath, timeRoundTrips } from "./pod-path.ts";
import { type MeasuredPath, pathTable } from "./routing-table.ts";

const ROUND_TRIPS = 2_000;
const WARM_UP_ROUNDS = 2;
const THROUGHPUT_SECONDS = 1;

/** Two nodes with the product, and two that are wired by hand, in turns. */
export async function measurePaths(rounds: number): Promise<readonly MeasuredPath[]> {
  await using site = await openRoutedSite({ startDatastore: startRouterEtcd, agents: ["node-1", "node-3"] });
  const [from, to] = [await site.addPod("node-1/a"), await site.addPod("node-3/a")];
  await untilReachable([{ from, to }]);
  const ours: PodPath = { name: "the node agent", from: from.netns, to: to.netns, address: to.addresses[0] };
  const byHand = await wireByHand(site.network.node("node-2"), site.network.node("node-4"), await mtuOf(from));
  const measured = [byHand, ours].map((path) => ({ path, roundTrips: [] as number[], throughput: [] as number[] }));
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    for (const { path, roundTrips, throughput } of round % 2 === 0 ? measured : measured.toReversed()) {
      const times = timeRoundTrips(path, ROUND_TRIPS);
      const rate = await measureThroughput(path, THROUGHPUT_SECONDS);
      if (round < 0) continue;
      roundTrips.push(...times);
      throughput.push(rate);
    }
  }
  const results = measured.map(({ path, ...values }) => ({ name: path.name, ...values }));
  console.log(pathTable(results));
  return results;
}

async function mtuOf({ host, inner }: RoutedPod): Promise<number> {
  const links = await host.must(["nsenter", `--net=${inner}`, "ip", "-j", "link", "show", "eth0"]);
  return JSON.parse(links)[0].mtu;
}

/** By the name of the datastore. */
export async function measureBlocks(count: number): Promise<Readonly<Record<string, BlockTimes>>> {
  const times = new Map([["etcd", await blockTimesOn(startRouterEtcd, count)]]);
  const missing = apiServerProblem();
  if (missing === undefined) times.set("orchestrator's API", await blockTimesOn(startRouterApi, count));
  else console.log(`skipped: ${missing}`);
  console.log(blockTimesTable(times));
  return Object.fromEntries(times);
}

async function blockTimesOn(startDatastore: (router: Host) => Promise<RouterDatastore>, count: number) {
  await using site: RoutedSite = await openRoutedSite({ startDatastore, agents: ["node-1", "node-3"] });
  const [from, to] = [await site.addPod("node-1/a"), await site.addPod("node-3/a")];
  await untilReachable([{ from, to }]);
  return await measureBlockTimes(site, { node: "node-1", watched: "node-3", count });
}
