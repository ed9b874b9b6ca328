/**
 * On random policies and traffic, the flows of a node equal what captures on the links of its pods saw: every connection, its verdict,
 * the rules that the judge names, and every byte; also while the collector or the agent is killed. `FLOWS_SEED` repeats a run.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { seededRandom, shuffled } from "../../bench/support/seeded-random.ts";
import { TIER } from "../../src/model/kinds.ts";
import { nodeAgentSettings } from "../../src/model/node-agent-configuration.ts";
import { tier } from "../../src/model/tier.ts";
import { readPolicy } from "../../src/policy/read-resources.ts";
import { launchAgent } from "../agent/agent.ts";
import { HOST_NODE } from "../policy/host-site.ts";
import { hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { connectionsIn } from "./captured-connections.ts";
import { differences } from "./compare-flows.ts";
import { expectedDecisions, type JudgedWorld, judgedPacket } from "./expected-decisions.ts";
import {
  askFlows,
  END_NAMES,
  type FlowSite,
  flowsConfiguration,
  killCollector,
  openFlowSite,
  untilCollecting,
} from "./flow-site.ts";
import { type Random, randomPolicies } from "./random-policies.ts";
import { randomAttempts } from "./random-traffic.ts";
import { ANSWERING_PORTS, type Attempt, attempt } from "./traffic.ts";

const needs = [hostProblem(), program("nft"), program("ping"), program("kill")];
const test = testNeeding(...needs);
const SERVICES = apiServerProblem() === undefined ? "kube-proxy" : undefined;
const SEED = Number(process.env["FLOWS_SEED"] ?? Date.now() % 1_000_000);
const SIZE = proofSize({ everyDay: { rounds: 1, attempts: 60 }, soak: { rounds: 60, attempts: 120 } });
const INTERRUPTED_ROUNDS = Math.ceil(SIZE.rounds / 3);
const AT_ONCE = 60;
/** Of an API server too, on a busy machine. */
const START_MILLISECONDS = 180_000;
const SETTLE_MILLISECONDS = 20_000;
const LONG_ONES = 10;
const LABELS = {
  "x/a": { app: "a", role: "server" },
  "x/b": { app: "b", role: "server" },
  "y/a": { app: "a" },
  "y/b": { app: "b" },
};

describe(`the flows of a node, Services by ${SERVICES ?? "rules"} (FLOWS_SEED=${SEED})`, () => {
  const random = seededRandom(SEED);
  let site: FlowSite;
  let agent: Pick<FlowSite["agent"], "signal" | "ended">;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openFlowSite({ labels: LABELS, ...(SERVICES === undefined ? {} : { services: SERVICES }) });
    agent = site.agent;
    const tiers = [
      tier.make({ name: "first" }, { order: 10, defaultAction: "Deny" }),
      tier.make({ name: "passing" }, { order: 20, defaultAction: "Pass" }),
    ];
    await site.hostSite.policies.site.store.put(
      tiers.map((each) => ({
        kind: "put" as const,
        key: TIER.key({ name: each.metadata.name }),
        value: tier.write(each),
      })),
    );
  }, START_MILLISECONDS);
  afterAll(async () => {
    await site?.[Symbol.asyncDispose]();
  });

  test(
    "equal what was on the links",
    async () => {
      for (let round = 0; round < SIZE.rounds; round++) {
        await applyRandomPolicies(site, random);
        await expectSame(site, round, () => runAll(randomAttempts(random, site, SIZE.attempts)));
      }
    },
    SIZE.rounds * 60_000,
  );

  test(
    "equal it also if the collector is killed meanwhile: nothing is missing of what is open before and after",
    async () => {
      for (let round = 0; round < INTERRUPTED_ROUNDS; round++) {
        await applyRandomPolicies(site, random);
        await expectSame(site, round, () =>
          withLongOnes((begin) => killCollector(site.host, begin), randomAttempts(random, site, SIZE.attempts)),
        );
      }
    },
    SIZE.rounds * 60_000,
  );

  test(
    "equal it also if the agent is killed meanwhile",
    async () => {
      for (let round = 0; round < INTERRUPTED_ROUNDS; round++) {
        await applyRandomPolicies(site, random);
        await expectSame(site, round, () =>
          withLongOnes(
            async (begin) => {
              await agent.signal("KILL");
              await agent.ended;
              await pollUntil(
                () =>
                  askFlows(site.host).then(
                    () => false,
                    () => true,
                  ),
                "the collector to end with the agent",
              );
              await begin();
              agent = launchAgent(site.host);
              await untilCollecting(site.host);
            },
            randomAttempts(random, site, SIZE.attempts),
          ),
        );
      }
    },
    SIZE.rounds * 60_000,
  );

  /** Connections that are open before, during and after an interruption; then others. */
  async function withLongOnes(
    interrupt: (begin: () => Promise<void>) => Promise<void>,
    then: readonly Attempt[],
  ): Promise<void> {
    const since = Date.now();
    const pause = Promise.withResolvers<void>();
    const world = await worldOf(site);
    const begin = async () => {
      const allowed = allowedExchanges(site, random, world).map((each) => ({ ...each, pause: pause.promise }));
      running.push(...allowed.map((each) => attempt(site.host, each)));
      await Bun.sleep(300);
    };
    const running: Promise<void>[] = [];
    await begin();
    await interrupt(begin);
    await pollUntil(
      async () => (await openFlows(site, since)) >= running.length,
      "the collector to find them in the connection table",
    );
    await runAll(then);
    pause.resolve();
    await Promise.all(running);
  }

  async function runAll(attempts: readonly Attempt[]): Promise<void> {
    const left = [...attempts];
    const work = async () => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) await attempt(site.host, next);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }
});

async function openFlows({ host }: FlowSite, since: number): Promise<number> {
  const { flows } = await askFlows(host, `since=${since}`);
  return flows.filter(({ state, protocol, start }) => state === "open" && protocol === 6 && start >= since).length;
}

async function applyRandomPolicies({ host, hostSite }: FlowSite, random: Random): Promise<void> {
  const { networkPolicies, globalPolicies, hostEndpoints } = randomPolicies(random);
  await hostSite.policies.setPolicies(networkPolicies);
  await hostSite.apply({
    policies: globalPolicies,
    hostEndpoints,
    configurations: [flowsConfiguration({}, `node.${HOST_NODE}`)],
  });
  await untilCollecting(host);
}

async function worldOf({ hostSite }: FlowSite): Promise<JudgedWorld> {
  const { resources, configurations } = await readPolicy(hostSite.policies.store);
  return { resources, settings: nodeAgentSettings(configurations, HOST_NODE) };
}

async function expectSame(site: FlowSite, round: number, traffic: () => Promise<void>): Promise<void> {
  const since = Date.now();
  const offsets = new Map(Array.from(site.captures, ([name, capture]) => [name, capture.packets().length]));
  await traffic();
  const world = await worldOf(site);
  const compare = async () => {
    // The kernel ends entries whose time is over when they are listed.
    site.table.list();
    const { flows } = await askFlows(site.host, `since=${since}`);
    const connections = Array.from(
      site.captures,
      ([name, capture]) => [name, connectionsIn(capture.packets().slice(offsets.get(name)))] as const,
    );
    const records = flows.filter(({ start, end, icmp, state }) => {
      const isRepeatedPing = icmp !== undefined && state === "denied" && end >= since;
      return start >= since || isRepeatedPing;
    });
    return differences({ records, connections: new Map(connections), since, endAt: site.endAt }, world);
  };
  let found: readonly string[] = [];
  const isSame = async () => {
    found = await compare();
    return found.length === 0;
  };
  await pollUntil(isSame, "the flows to be those on the links", SETTLE_MILLISECONDS).catch(() => {});
  for (const capture of site.captures.values()) expect(capture.lost()).toBe(0);
  expect({ seed: SEED, round, differences: found }).toEqual({ seed: SEED, round, differences: [] });
}

/** Of those that the policies allow. */
function allowedExchanges(site: FlowSite, random: Random, world: JudgedWorld): readonly Attempt[] {
  const pairs = END_NAMES.flatMap((from) => END_NAMES.map((to) => ({ from, to }))).filter(({ from, to }) => {
    if (from === to || !(from.includes("/") || to.includes("/"))) return false;
    const [source, destination] = [site.end(from).addresses[0], site.end(to).addresses[0]];
    const of = { protocol: 6, source, destination, sourcePort: 40_000, destinationPort: ANSWERING_PORTS[0] };
    return expectedDecisions({ packet: judgedPacket(of), from, to }, world).every(({ verdict }) => verdict === "allow");
  });
  return shuffled(pairs, random)
    .slice(0, LONG_ONES)
    .map(({ from, to }) => ({
      ...{ from: site.end(from), address: site.end(to).addresses[0], protocol: "tcp" as const },
      ...{ port: ANSWERING_PORTS[0], up: 10_000, down: 500 },
    }));
}
