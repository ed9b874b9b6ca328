/** BIRD as the node agent runs it: a mesh of three hosts, with real packets between their pods. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { identity } from "../../src/identity.ts";
import type { BgpRule } from "../../src/routing/bgp/plan.ts";
import { readBirdState } from "../../src/routing/bird/state.ts";
import { bgpSession, prefixes } from "../support/bgp-plan.ts";
import { hostProblem } from "../support/host.ts";
import { address, prefix } from "../support/ip.ts";
import { program } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type BirdHost, type BirdSite, established, meshPlan, openBirdSite, steadyPing } from "./bird-site.ts";

const missing = [hostProblem(), program("bird"), program("ping")].filter((problem) => problem !== undefined);
const title = missing.length === 0 ? "BIRD on three hosts" : `BIRD on three hosts (skipped: ${missing.join(", ")})`;
const KILLS = proofSize({ everyDay: 4, soak: 100 });
const LONGEST_CALM_MILLISECONDS = 500;
const CHURN_MILLISECONDS = 70;
const FIRST_CHANGING = 20;
/** The kernel is looked at every 2 s; the rest is for a loaded machine. */
const SCAN_MILLISECONDS = 3_000;

describe.skipIf(missing.length > 0)(title, () => {
  let site: BirdSite;
  let one: BirdHost;
  let two: BirdHost;
  let three: BirdHost;

  beforeAll(async () => {
    site = await openBirdSite();
    [one, two, three] = site.hosts;
    for (const host of site.hosts) await established(host, 4);
  }, 60_000);
  afterAll(() => site[Symbol.asyncDispose]());

  test("pods of all hosts reach each other, both families", async () => {
    for (const from of site.hosts) {
      for (const to of site.hosts) {
        if (from === to) continue;
        await reaches(from, `10.244.${to.number}.5`);
        await reaches(from, `fd10:${to.number}::5`);
      }
    }
  });

  test("vendorctl shows the sessions and routes", async () => {
    const { code, stdout } = await vendorctl(one, "node", "status");
    for (const peer of ["10.0.0.2", "10.0.0.3", "fd00::2", "fd00::3"]) {
      expect(stdout).toMatch(
        new RegExp(`^${peer} +node-to-node mesh +up +\\S+ \\S+ +Established +node-${peer} +1 +1$`, "m"),
      );
    }
    expect(stdout).toMatch(/^IPv4 +BIRD +eth0 +2$/m);
    expect(stdout).toMatch(/^IPv6 +node agent +own blocks +1$/m);
    // The keeper alone is not an agent.
    expect(stdout).toContain("Node agent: not running");
    expect(code).toBe(1);

    const routes = await vendorctl(one, "bgp", "routes");
    expect(routes.code).toBe(0);
    expect(routes.stdout).toMatch(
      /^10\.244\.2\.0\/26 +10\.0\.0\.2 +eth0 +node-to-node mesh 10\.0\.0\.2 \(node-10\.0\.0\.2\) +yes$/m,
    );
    expect(routes.stdout).toMatch(/^fd10:1::\/122 +this node +no$/m);
    expect(routes.stdout.split("\n")).toHaveLength(8);
  });

  test("a new block is announced, and a removed one withdrawn, without a reset of a session", async () => {
    const before = (await one.sessions()).map(({ name, since }) => ({ name, since }));
    one.want({ plan: meshPlan(1, { announced: prefixes("10.244.1.0/26", "10.244.9.0/26", "fd10:1::/122") }) });
    await learns(two, "10.244.9.0/26 via 10.0.0.1 dev eth0");
    await learns(three, "10.244.9.0/26 via 10.0.0.1 dev eth0");
    one.want({ plan: meshPlan(1) });
    await forgets(two, "10.244.9.0/26");

    expect((await one.sessions()).map(({ name, since }) => ({ name, since }))).toEqual(before);
  });

  test("a route that was deleted or replaced by hand is back within the scan time", async () => {
    await two.host.must(["ip", "route", "del", "10.244.1.0/26"]);
    await two.host.must([
      "ip",
      "-6",
      "route",
      "replace",
      "blackhole",
      "fd10:1::/122",
      "proto",
      "bird",
      "metric",
      "2048",
    ]);
    await learns(two, "10.244.1.0/26 via 10.0.0.1", SCAN_MILLISECONDS);
    await learns(two, "fd10:1::/122 via fd00::1", SCAN_MILLISECONDS);
  });

  test("routes of other programs resolve next hops, but are neither announced nor touched", async () => {
    await one.host.must(["ip", "route", "add", "10.244.77.0/26", "via", "10.0.0.3", "proto", "static"]);
    await one.host.must(["ip", "route", "add", "10.98.0.0/24", "via", "10.0.0.3"]);
    await pollUntil(async () => (await one.ask("show route")).includes("10.244.77.0/26"), "the look at the kernel");
    one.want({ plan: meshPlan(1, { announced: prefixes("10.244.1.0/26", "10.244.9.0/26", "fd10:1::/122") }) });
    await learns(two, "10.244.9.0/26");
    one.want({ plan: meshPlan(1) });

    expect(await two.ask("show route")).not.toMatch(/10\.244\.77|10\.98/);
    expect(await one.host.must(["ip", "route"])).toContain("10.244.77.0/26 via 10.0.0.3 dev eth0 proto static");
    // Neither are the agent's own ones.
    expect(await one.ask("show route")).not.toContain("10.244.1.5/32");
    await one.host.must(["ip", "route", "del", "10.244.77.0/26"]);
    await one.host.must(["ip", "route", "del", "10.98.0.0/24"]);
  });

  test("a network that has a tunnel is left to the agent, and the rest stays", async () => {
    two.want({ plan: meshPlan(2, { tunnelled: prefixes("10.244.3.0/24") }) });
    await forgets(two, "10.244.3.0/26");

    expect(await two.learned()).toContain("10.244.1.0/26");
    two.want({ plan: meshPlan(2) });
    await learns(two, "10.244.3.0/26");
  });

  test("BIRD killed: no packet is lost, and it recovers", async () => {
    const ping = steadyPing(one, "10.244.2.5");
    const ping6 = steadyPing(two, "fd10:1::5");
    const before = one.birdPid();
    one.killBird();
    await pollUntil(() => one.birdPid() !== before, "another BIRD");
    await established(one, 4);
    await pollUntil(async () => !(await one.ask("show status")).includes("recovery"), "the end of the recovery");
    await learns(one, "10.244.2.0/26");

    expect(await ping.stop()).toBe(0);
    expect(await ping6.stop()).toBe(0);
  });

  test("the agent killed: BIRD, its sessions and packets go on; the next agent adopts it", async () => {
    const [before, since] = [one.birdPid(), (await one.sessions()).map((session) => session.since)];
    const ping = steadyPing(one, "10.244.3.5");
    await one.keeper.kill();
    expect(await one.ask("show status")).toContain("up and running");
    one.want({ plan: meshPlan(1, { announced: prefixes("10.244.1.0/26", "10.244.8.0/26", "fd10:1::/122") }) });
    one.keeper.start();
    await learns(three, "10.244.8.0/26");

    expect(await ping.stop()).toBe(0);
    expect(one.birdPid()).toBe(before);
    expect((await one.sessions()).map((session) => session.since)).toEqual(since);
    one.want({ plan: meshPlan(1) });
  });

  test(
    `BIRD and the agent killed ${KILLS} times at random moments, while blocks come and go: no packet is lost`,
    async () => {
      const pings = [steadyPing(one, "10.244.2.5"), steadyPing(three, "10.244.1.5"), steadyPing(two, "fd10:1::5")];
      const churn = { isOver: false, blocks: 0 };
      const changing = changeBlocks(one, churn);
      for (let kill = 0; kill < KILLS; kill++) {
        await Bun.sleep(Math.random() * LONGEST_CALM_MILLISECONDS);
        if (kill % 2 === 0) {
          const before = one.birdPid();
          one.killBird();
          await pollUntil(() => one.birdPid() !== before, "another BIRD");
          // BGP keeps the routes of a peer that restarts, but not of one that restarts again before it has recovered.
          await established(one, 4);
          await pollUntil(async () => !(await one.ask("show status")).includes("recovery"), "the end of the recovery");
        } else {
          await one.keeper.kill();
          one.keeper.start();
        }
      }
      churn.isOver = true;
      await changing;
      await learns(two, `10.244.${FIRST_CHANGING + churn.blocks}.0/26`);
      await forgets(two, `10.244.${FIRST_CHANGING + 1 - churn.blocks}.0/26`);
      one.want({ plan: meshPlan(1) });
      await forgets(two, `10.244.${FIRST_CHANGING + churn.blocks}.0/26`);

      for (const ping of pings) expect(await ping.stop()).toBe(0);
    },
    KILLS * 10_000 + 60_000,
  );

  test("a password: the session needs the same one on both sides", async () => {
    const secret = { password: "correct horse; # {battery}" };
    one.want({ plan: meshPlan(1, {}, secret) });
    two.want({ plan: meshPlan(2, {}, secret) });
    await pollUntil(
      async () => (await stateOf(one, "10.0.0.3")) !== "Established",
      "the end of the session without it",
    );
    await pollUntil(async () => (await stateOf(one, "10.0.0.2")) === "Established", "the session with it");
    await learns(one, "10.244.2.0/26");

    one.want({ plan: meshPlan(1) });
    two.want({ plan: meshPlan(2) });
    await established(three, 4);
    await established(two, 4);
  });

  test("a route reflector: clients without a session between them learn each other's routes", async () => {
    const reflector = { clusterId: "1.0.0.1" };
    const client = (number: number) => meshPlan(number, { sessions: [toReflector(number)] });
    const toReflector = (number: number) => bgpSession("10.0.0.1", { source: address(`10.0.0.${number}`) });
    one.want({
      plan: meshPlan(1, {
        sessions: [2, 3].map((number) => bgpSession(`10.0.0.${number}`, { reflector, kind: "node specific" })),
      }),
    });
    two.want({ plan: client(2) });
    three.want({ plan: client(3) });

    await learns(two, "10.244.3.0/26 via 10.0.0.3 dev eth0");
    await learns(three, "10.244.2.0/26 via 10.0.0.2 dev eth0");
    await reaches(two, "10.244.3.5");
    expect((await two.sessions()).map((session) => session.address)).toEqual(["10.0.0.1"]);
    for (const host of site.hosts) host.want({ plan: meshPlan(host.number) });
    for (const host of site.hosts) await established(host, 4);
  });

  test("IPv6 alone, with a router ID that is not an address of the host", async () => {
    for (const host of site.hosts) {
      const sessions = meshPlan(host.number).sessions.filter((session) => session.address.family === 6);
      host.want({ plan: meshPlan(host.number, { sessions, routerId: address(`192.0.2.${host.number}`) }) });
    }
    await learns(two, "fd10:3::/122 via fd00::3");
    await forgets(two, "10.244.3.0/26");
    await reaches(two, "fd10:3::5");
    for (const host of site.hosts) host.want({ plan: meshPlan(host.number) });
    for (const host of site.hosts) await established(host, 4);
  });

  test("BGP not needed any more: BIRD ends, and all learned routes go at once on both sides", async () => {
    three.want({ reason: "BGP is disabled", problems: [] });
    await forgets(two, "10.244.3.0/26", 2_000);
    await pollUntil(async () => (await three.learned()) === "", "no routes of BIRD");
    const state = async () => readBirdState(await Bun.file(three.host.view("/run/bird-test/bird/state.json")).text());
    // It is written after the routes are gone.
    await pollUntil(async () => (await state())?.kind === "not needed", "the state that BGP is not needed");

    expect(await state()).toEqual({ kind: "not needed", reason: "BGP is disabled", problems: [] });
    await pollUntil(async () => (await three.host.run(["ps", "-C", "bird"])).code === 1, "the end of BIRD");
    expect(await two.learned()).toContain("10.244.1.0/26");
  });

  test("a router of another AS that is configured by hand, with a password and filters in both directions", async () => {
    three.host.writeFile("/run/foreign/bird.conf", FOREIGN_ROUTER);
    await three.host.must(["sh", "-c", "cd /run/foreign; bird -c bird.conf -s bird.ctl -P bird.pid"]);
    const peer = bgpSession("10.0.0.3", {
      ...{ name: "Global_10_0_0_3", kind: "global", from: "router", peerAs: 65000, password: "shared secret" },
      importRules: [{ ...ruleFor("203.0.113.0/24"), action: "reject" }],
      exportRules: [{ ...ruleFor("10.244.9.0/24"), action: "reject" }],
    });
    const mesh = meshPlan(1);
    one.want({
      plan: {
        ...mesh,
        announced: prefixes("10.244.1.0/26", "10.244.9.0/26", "10.244.11.0/26"),
        withheld: prefixes("10.244.11.0/24"),
        advertisements: [{ prefix: prefix("10.244.1.0/24"), communities: [[65000, 7]] }],
        sessions: [...mesh.sessions.filter((session) => session.name.includes("0_2")), peer],
      },
    });
    await learns(one, "198.51.100.0/24 via 10.0.0.3 dev eth0");
    const foreign = () => three.host.must(["birdc", "-s", "/run/foreign/bird.ctl", "show", "route", "all"]);
    await pollUntil(async () => (await foreign()).includes("10.244.1.0/26"), "the block of host 1");

    expect(await one.learned()).not.toContain("203.0.113.0");
    expect(await foreign()).not.toMatch(/10\.244\.(9|11)\./);
    expect(await foreign()).toContain("(65000,7)");
    // Routes of pods are passed on, in both directions; other ones are not.
    await pollUntil(async () => (await foreign()).includes("10.244.2.0/26"), "the block of host 2");
    await learns(two, "10.244.3.0/26 via 10.0.0.3");
    expect(await two.learned()).not.toContain("198.51.100.0");
    await pollUntil(async () => (await three.learned()).includes("10.244.2.0/26 via 10.0.0.1"), "its kernel");
    await reaches(three, "10.244.2.5");

    // If it hears of a block from several nodes, packets go to the one that has it.
    const mesh2 = meshPlan(2).sessions.filter((session) => session.name.includes("0_1"));
    two.want({ plan: meshPlan(2, { sessions: [...mesh2, peer] }) });
    await pollUntil(async () => (await three.learned()).includes("10.244.2.0/26 via 10.0.0.2"), "the way to host 2");
    expect(await three.learned()).toContain("10.244.1.0/26 via 10.0.0.1");
    await reaches(three, "10.244.2.5");
  });
});

const FOREIGN_ROUTER = `router id 10.0.0.3;
protocol device { }
protocol direct { ipv4; interface "eth0"; }
protocol static { ipv4; route 198.51.100.0/24 blackhole; route 203.0.113.0/24 blackhole; route 10.244.3.0/26 blackhole; }
protocol kernel { ipv4 { import none; export where source = RTS_BGP; }; }
${["10.0.0.1", "10.0.0.2"].map(foreignSession).join("")}`;

function foreignSession(address: string): string {
  return `protocol bgp {
  local as 65000; neighbor ${address} as 64512; multihop; password "shared secret";
  ipv4 { import all; export where source = RTS_STATIC; };
}
`;
}

function ruleFor(network: string): BgpRule {
  const matched = prefix(network);
  const lengths = { from: matched.length, to: 32 };
  return {
    action: "accept",
    network: { prefix: matched, lengths, isNegated: false },
    onlyLearned: false,
    interface: undefined,
  };
}

function vendorctl({ host }: BirdHost, ...words: readonly string[]) {
  const environment = { [`${identity.environmentPrefix}RUN_DIRECTORY`]: "/run/bird-test" };
  return host.run([builtProgram(identity.adminTool), ...words], { environment });
}

/** Replaces one announced block by the other, again and again. */
async function changeBlocks(host: BirdHost, churn: { isOver: boolean; blocks: number }): Promise<void> {
  while (!churn.isOver) {
    churn.blocks = 1 - churn.blocks;
    const announced = prefixes("10.244.1.0/26", `10.244.${FIRST_CHANGING + churn.blocks}.0/26`, "fd10:1::/122");
    host.want({ plan: meshPlan(1, { announced }) });
    await Bun.sleep(CHURN_MILLISECONDS);
  }
}

async function reaches(from: BirdHost, to: string): Promise<void> {
  const ping = () => from.host.run(["ip", "netns", "exec", "pod", "ping", "-n", "-c1", "-W1", to]);
  await pollUntil(async () => (await ping()).code === 0, `${to} from host ${from.number}`, 5_000);
}

async function learns(host: BirdHost, route: string, limit = 30_000): Promise<void> {
  await pollUntil(async () => (await host.learned()).includes(route), `${route} on host ${host.number}`, limit);
}

async function forgets(host: BirdHost, route: string, limit = 30_000): Promise<void> {
  await pollUntil(async () => !(await host.learned()).includes(route), `no ${route} on host ${host.number}`, limit);
}

async function stateOf(host: BirdHost, peer: string): Promise<string | undefined> {
  return (await host.sessions()).find((session) => session.address === peer)?.info;
}
