/**
 * A scan of ports by a pod, as fast as this machine can: the collector stays small, what it does not record it counts, and changes
 * of policy and calls of plugins go on meanwhile. How fast they are is measured by `make bench BENCH=flows`.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { NODE_AGENT_CONFIGURATION } from "../../src/model/kinds.ts";
import { openPolicySite, type PodEnd, type PolicySite } from "../policy/policy-site.ts";
import { openConntrackTable } from "../support/conntrack-table.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { runIn } from "../support/netns.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import {
  askCollector,
  askFlows,
  collectorPid,
  flowsConfiguration,
  shortenTimeouts,
  untilCollecting,
} from "./flow-site.ts";

const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);

const PER_SECOND = 50_000;
const SECONDS = proofSize({ everyDay: 4, soak: 60 });
/** The policy accepts them; the pod drops them, so that nobody answers. */
const ACCEPTED = { first: 1, ports: 30_000 } as const;
const DENIED = { first: 30_001, ports: 30_000 } as const;
const DENIED_PER_SECOND = 10;
/** Otherwise a scan would find the entries of the one before. */
const OTHER_SOURCE_PORTS = 5_000;
/**
 * Of memory of its own, without the pages of the program. Bounded are the connections that are followed and those that are not, the
 * records that wait for the history, and the sums of a minute: with the garbage between two collections 130 to 180 MB at full speed.
 */
const MOST_BYTES = 250_000_000;

describe("a scan of ports", () => {
  let site: PolicySite;
  let scanner: PodEnd;
  let target: PodEnd;
  let scans = 0;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openPolicySite();
    await site.labelNamespace("x", {});
    scanner = await site.addPod("x/scanner", { app: "scanner" });
    target = await site.addPod("x/target", { app: "target" });
    await site.setPolicies([policyWith(1)]);
    await configure("Disabled");
    await site.untilApplied();
    shortenTimeouts(site.site.host.netns);
    const drop = "{ type filter hook prerouting priority -300; tcp dport 1-60000 counter drop; }";
    runIn({ name: "", path: target.netns }, ["nft", `table inet drops { chain dropped ${drop}; }`]);
  });
  afterAll(async () => {
    await site?.[Symbol.asyncDispose]();
  });

  test(
    "costs bounded memory, and every packet of it is recorded or counted",
    async () => {
      const { host } = site.site;
      await configure("Enabled");
      await untilCollecting(host);
      const since = Date.now();
      const pid = await collectorPid(host);
      let most = 0;
      const sampling = setInterval(() => {
        most = Math.max(most, ownBytes(host.view(`/proc/${pid}/status`)));
      }, 100);

      const arrivedBefore = arrived();
      const accepted = await work(scan(ACCEPTED));
      await expectAcceptedCounted(since, { ...accepted, arrived: arrived() - arrivedBefore });
      const before = await deniedInKernel();
      const denied = await work(scan(DENIED));
      const dropped = (await deniedInKernel()) - before;
      clearInterval(sampling);

      // Neither has it been restarted, nor has it grown.
      expect(await collectorPid(host)).toBe(pid);
      expect(most).toBeLessThan(MOST_BYTES);
      for (const each of [accepted, denied]) {
        expect(each.changes).toBeGreaterThan(0);
        expect(each.calls).toBeGreaterThan(0);
      }
      await expectDeniedCounted(since, dropped);
    },
    120_000 + SECONDS * 6_000,
  );

  interface Scanned {
    readonly sent: number;
    /** A link loses packets if the machine is busy. */
    readonly arrived: number;
  }

  function arrived(): number {
    const rules = runIn({ name: "", path: target.netns }, ["nft", "list", "table", "inet", "drops"]);
    return Number(/packets (\d+)/.exec(rules)?.[1]);
  }

  /** Each connection is in the roll-ups, unless the kernel had no room for its event; and none that was not. */
  async function expectAcceptedCounted(since: number, { sent, arrived }: Scanned): Promise<void> {
    using table = openConntrackTable(site.site.host.netns);
    const account = async () => {
      // Those over the limit are summed when they have ended.
      table.list();
      const { losses } = await askFlows(site.site.host, `since=${since}&last=1`);
      return { seen: await counted(since, "allowed"), losses };
    };
    const isWhole = async () => (await account()).seen >= arrived;
    await pollUntil(isWhole, "all connections to be counted", 10_000).catch(() => {});
    const { seen, losses } = await account();
    expect(seen).toBeLessThanOrEqual(sent);
    if (losses.kernelOverruns === 0) expect(seen).toBeGreaterThanOrEqual(arrived);
    expect(losses.overLimit).toBeGreaterThan(0);
  }

  /** Each packet of the scan that a rule dropped has a record, or is one of those that were suppressed. */
  async function expectDeniedCounted(since: number, dropped: number): Promise<void> {
    const counted = async () => {
      const { flows, losses } = await askFlows(site.site.host, `since=${since}&verdict=denied`);
      const recorded = flows.reduce((sum, { sent }) => sum + sent.packets, 0);
      return { recorded, all: recorded + losses.deniedSuppressed };
    };
    await pollUntil(async () => (await counted()).all >= dropped, "the denied packets to be counted", 10_000).catch(
      () => {},
    );
    const { recorded, all } = await counted();
    expect(dropped).toBeGreaterThan(PER_SECOND / 10);
    expect(recorded).toBeGreaterThanOrEqual(DENIED_PER_SECOND);
    expect(all).toBe(dropped);
  }

  async function counted(since: number, verdict: string): Promise<number> {
    const answers = await askCollector(site.site.host, `/rollups?since=${since}&verdict=${verdict}`);
    return answers.reduce((sum, answer) => sum + ("rollup" in answer ? answer.rollup.flows : 0), 0);
  }

  /** Changes of policy and calls of the plugin, one after another, for as long as the scan lasts. */
  async function work(scanning: Scan) {
    let [changes, calls, isOver] = [0, 0, false];
    const over = scanning.over.then((sent) => {
      isOver = true;
      return sent;
    });
    const change = async () => {
      for (; !isOver; changes++) {
        await site.setPolicies([policyWith(1 + (changes % 2))]);
        await site.untilApplied();
      }
    };
    const call = async () => {
      for (; !isOver; calls++) {
        const pod = await site.site.makePod();
        await site.site.add(pod);
        await site.site.quietly("DEL", pod);
        await site.site.host.must(["ip", "netns", "delete", pod.netnsName]);
      }
    };
    const [sent] = await Promise.all([over, change(), call()]);
    return { sent, changes, calls };
  }

  interface Scan {
    readonly over: Promise<number>;
  }

  function scan({ first, ports }: typeof ACCEPTED | typeof DENIED): Scan {
    const sender = [process.execPath, join(import.meta.dir, "syn-flood.process.ts")];
    const ends = [scanner.addresses[0], target.addresses[0]];
    scans += 1;
    const numbers = [PER_SECOND, SECONDS * 1_000, first, ports, scans * OTHER_SOURCE_PORTS].map(String);
    const command = ["nsenter", `--net=${scanner.netns}`, ...sender, ...ends, ...numbers];
    const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    const text = new Response(child.stdout).text();
    return { over: text.then((output) => Number(/(\d+) in /.exec(output)?.[1])) };
  }

  function policyWith(more: number) {
    const ingress = [
      { action: "Allow" as const, protocol: "TCP", destination: { ports: ["1:30000"] } },
      { action: "Allow" as const, protocol: "UDP", destination: { ports: [more] } },
    ];
    return {
      namespace: "x",
      name: "target",
      spec: { selector: "app == 'target'", types: ["Ingress" as const], ingress },
    };
  }

  async function configure(flows: "Enabled" | "Disabled"): Promise<void> {
    const configuration = flowsConfiguration({ flows, flowDeniedPerSecond: DENIED_PER_SECOND, flowsPerSecond: 500 });
    const value = NODE_AGENT_CONFIGURATION.codec.write(configuration);
    await site.store.commit([{ kind: "put", key: NODE_AGENT_CONFIGURATION.key({ name: "default" }), value }]);
  }

  /** By the counters of the rules that end a tier. */
  async function deniedInKernel(): Promise<number> {
    const rules = await site.site.host.must(["nft", "list", "table", "inet", identity.policyTable]);
    const ends = rules
      .split("\n")
      .filter((line) => line.includes("tier default ingress default") && line.includes("drop"));
    return ends.reduce((sum, line) => sum + Number(/packets (\d+)/.exec(line)?.[1] ?? 0), 0);
  }
});

function ownBytes(file: string): number {
  try {
    return Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(file, "utf8"))?.[1] ?? 0) * 1_024;
  } catch {
    // It has ended, which another check finds.
    return 0;
  }
}
