/**
 * Agents that guess and processes that do not, at the same time on the same
 * addresses: on one host and on two, with and without turns, in a pool so small
 * that the hosts borrow from each other.
 */
import { describe, expect, test } from "bun:test";
import { identity } from "../../src/identity.ts";
import { hasEtcd } from "../support/etcd.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { IPAM_SITES, type IpamSite, judge } from "../support/ipam-site.ts";
import { findDoubles, runStorm } from "../support/ipam-storm.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { startSiteAgent } from "./site-agent.ts";

const PROCESSES = 4;
const ROUNDS = proofSize({ everyDay: 8, soak: 200 });
const LIMIT = 60_000 + PROCESSES * ROUNDS * 5_000;
const RUN_DIRECTORY = `${identity.environmentPrefix}RUN_DIRECTORY`;
const TRACE = `${identity.environmentPrefix}TRACE`;

interface Crew {
  readonly name: string;
  readonly node: string;
  /** Workers with the same one take turns, and may be served by its agent. */
  readonly runDirectory: string;
  readonly isAlone?: true;
}

const ONE_HOST: readonly Crew[] = [
  { name: "served", node: "node-1", runDirectory: "one" },
  { name: "alone", node: "node-1", runDirectory: "one", isAlone: true },
  { name: "out-of-turn", node: "node-1", runDirectory: "none", isAlone: true },
];
const TWO_HOSTS: readonly Crew[] = [
  ...ONE_HOST,
  { name: "served-there", node: "node-2", runDirectory: "two" },
  { name: "alone-there", node: "node-2", runDirectory: "two", isAlone: true },
];

describe.skipIf(!hasEtcd)(`an agent beside processes without one${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  test.each([
    { title: "on one host", crews: ONE_HOST, agents: ["served"] },
    { title: "on two hosts", crews: TWO_HOSTS, agents: ["served", "served-there"] },
  ])(
    "assigns no address twice, loses none and never fails, $title",
    async ({ crews, agents }) => {
      const [, etcd] = IPAM_SITES;
      const site = await etcd.start(
        nodeChange("node-1"),
        nodeChange("node-2"),
        poolChange("small", "10.0.0.0/27", { blockSize: 29 }),
      );
      try {
        await using stack = new AsyncDisposableStack();
        const sites = new Map(crews.map((crew) => [crew.name, siteOf(crew, site)]));
        const serving = [];
        for (const name of agents) serving.push(stack.use(await startSiteAgent(sites.get(name) ?? site)));
        const size = { processes: PROCESSES, rounds: ROUNDS };
        const reports = await Promise.all([...sites.values()].map((each) => runStorm(each, size)));

        expect(reports.flatMap(({ failures }) => failures)).toEqual([]);
        // On an overloaded machine some callers do not wait for the agent; without most of them the mix is not tested.
        const most = PROCESSES * ROUNDS;
        for (const agent of serving)
          await pollUntil(() => agent.served() >= most, "the agent to have served most calls");
        const holdings = reports.flatMap((report) => report.holdings);
        expect(holdings).toHaveLength(crews.length * PROCESSES * ROUNDS);
        expect(findDoubles(holdings)).toEqual([]);
        const { world, problems } = await judge(site);
        expect(problems).toEqual([]);
        expect(world.handles).toEqual([]);
      } finally {
        await site.stop();
      }
    },
    LIMIT,
  );
});

/** The networks have different names, so that no two groups of workers share a container. */
function siteOf({ name, node, runDirectory, isAlone }: Crew, site: IpamSite): IpamSite {
  return {
    ...site,
    config: { ...site.config, name, nodename: node },
    environment: {
      [RUN_DIRECTORY]: `${site.environment[RUN_DIRECTORY]}-${runDirectory}`,
      ...(isAlone ? { [TRACE]: "1" } : {}),
    },
  };
}
