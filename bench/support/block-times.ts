/** From the commit of a new block on one node to the route in another node's kernel: starts the measurement, prints the times. */
import { resource } from "../../test/routing/resource.ts";
import type { NodeName } from "../../test/routing/routed-network.ts";
import type { RoutedSite } from "../../test/routing/routed-site.ts";
import type { BlockTimes, BlockTimesPlan } from "./block-times.process.ts";
import { markdown } from "./policy-table.ts";
import { quantileOf } from "./statistics.ts";

const WARM_UP_ROUNDS = 20;

interface Measured {
  readonly node: NodeName;
  readonly watched: NodeName;
  readonly count: number;
}

export async function measureBlockTimes(site: RoutedSite, { node, watched, count }: Measured): Promise<BlockTimes> {
  // Nobody gets an address of it, so all of its blocks are those of the measurement.
  await site.apply(resource("IPPool", "measured", { cidr: "10.70.0.0/16", vxlanMode: "Always", disabled: true }));
  const plan: BlockTimesPlan = {
    ...{
      settings: site.datastore.settings,
      warmUpRounds: WARM_UP_ROUNDS,
      node,
      watched: site.network.node(watched).host.netns,
    },
    blocks: Array.from({ length: WARM_UP_ROUNDS + count }, (_, index) => `10.70.${index >> 2}.${(index % 4) * 64}/26`),
  };
  const command = [process.execPath, `${import.meta.dir}/block-times.process.ts`, JSON.stringify(plan)];
  // Only its network: the namespaces of the nodes are named by process numbers of this machine.
  const child = Bun.spawn(["nsenter", `--net=${site.network.router.netns}`, "--", ...command], {
    ...{ stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  });
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error("The measurement of blocks failed");
  return JSON.parse(text) as BlockTimes;
}

export function blockTimesTable(measured: ReadonlyMap<string, BlockTimes>): string {
  const cell = (times: readonly number[], share: number) => `${quantileOf(times, share).toFixed(1)} ms`;
  const rows = Array.from(measured, ([name, { fromRequest, fromReply }]) => [
    name,
    ...[0.5, 0.99].map((share) => cell(fromRequest, share)),
    ...[0.5, 0.99].map((share) => cell(fromReply, share)),
    String(fromRequest.length),
  ]);
  const header = [
    "new block -> route on another node",
    "from the request, median",
    "p99",
    "from the reply, median",
    "p99",
  ];
  return markdown([[...header, "blocks"], ...rows]);
}
