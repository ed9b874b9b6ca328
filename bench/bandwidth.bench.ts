/**
 * The bandwidth plugins side by side, ours with the node agent and without: a container's link shaped in both
 * directions and freed again, and passed through where no rate is named, which
 * is what most pods do. Every turn has a fresh link, as in life.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { part } from "../test/parts/build.ts";
import { runCommand } from "./support/command.ts";
import type { Command } from "./support/command-line.ts";
import { type Contender, type Contest, runContest, type Turn } from "./support/contest.ts";
import { type Served, startNodeAgent } from "./support/node-agent.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const AT_ONCE = 20;
const RATES = { ingressRate: 10_000_000, ingressBurst: 1_000_000, egressRate: 20_000_000, egressBurst: 1_000_000 };
const NO_RATES = {};
const UPSTREAM = "upstream 1.9.1";
const DEBIAN = "Debian 1.1.1";

interface Rival extends Served {
  readonly name: string;
  readonly program: string;
}

interface Prepared {
  /** The folder of the product's programs. */
  readonly folder: string;
  readonly alone: readonly Rival[];
}

await onPrivateHost(import.meta.path, {
  async prepare(): Promise<Prepared> {
    const newest = await part("cni-plugins");
    if ("missing" in newest) console.log(`left out: ${newest.missing}`);
    const folder = await buildProduct();
    const rivals = [
      ...("path" in newest ? [{ name: UPSTREAM, program: join(newest.path, "bandwidth") }] : []),
      { name: DEBIAN, program: "/usr/lib/cni/bandwidth" },
      { name: "ours", program: join(folder, "bandwidth") },
    ];
    return { folder, alone: rivals.filter(({ program }) => existsSync(program)) };
  },
  async measure({ folder, alone }) {
    await using agent = await startNodeAgent(folder);
    const rivals = [...alone, { name: "ours, node agent", program: join(folder, "bandwidth"), agent }];
    for (let place = 0; place < AT_ONCE; place++) must("ip", "netns", "add", podName(place));
    const once: Omit<Contest, "title" | "contenders"> = { baseline: rivals[0]?.name ?? "", rounds: 60 };
    const many = { ...once, rounds: 6, warmUpRounds: 1, concurrency: AT_ONCE };
    const add = (rates: object, count = 1) => rivals.map((rival) => addContender(rival, rates, count));
    const del = (count = 1) => rivals.map((rival) => delContender(rival, count));
    // Debian's version panics where no rate is named.
    const passing = add(NO_RATES).filter(({ name }) => name !== DEBIAN);
    await report("bandwidth", [
      await runContest({ ...once, title: "ADD, both directions", contenders: add(RATES) }),
      await runContest({ ...once, title: "DEL, both directions", contenders: del() }),
      await runContest({ ...once, title: "ADD, no rate named", contenders: passing }),
      await runContest({ ...many, title: "ADD, both directions", contenders: add(RATES, AT_ONCE) }),
      await runContest({ ...many, title: "DEL, both directions", contenders: del(AT_ONCE) }),
    ]);
  },
});

function addContender(rival: Rival, rates: object, count: number): Contender {
  return {
    name: rival.name,
    meter: rival.agent?.meter,
    before: () => makeLinks(count),
    run: (turn, place) => runCommand(callOf(rival, { command: "ADD", rates, turn, place })),
    after: async (turn) => {
      for (let place = 0; place < count; place++)
        await runCommand(callOf(rival, { command: "DEL", rates, turn, place }));
      removeLinks(count);
    },
  };
}

function delContender(rival: Rival, count: number): Contender {
  const rates = RATES;
  return {
    name: rival.name,
    meter: rival.agent?.meter,
    before: async (turn) => {
      makeLinks(count);
      for (let place = 0; place < count; place++)
        await runCommand(callOf(rival, { command: "ADD", rates, turn, place }));
    },
    run: (turn, place) => runCommand(callOf(rival, { command: "DEL", rates, turn, place })),
    after: () => removeLinks(count),
  };
}

interface Call {
  readonly command: "ADD" | "DEL";
  readonly rates: object;
  readonly turn: Turn;
  readonly place: number;
}

function callOf({ program, agent }: Rival, { command, rates, turn, place }: Call): Command {
  const netns = `/run/netns/${podName(place)}`;
  const prevResult = { cniVersion: "1.0.0", interfaces: [{ name: linkName(place) }, { name: "eth0", sandbox: netns }] };
  return {
    command: [program],
    stdin: JSON.stringify({ cniVersion: "1.0.0", name: "bench", type: "bandwidth", ...rates, prevResult }),
    environment: {
      CNI_COMMAND: command,
      CNI_CONTAINERID: `c${turn.round + 100}-${place}`,
      CNI_NETNS: netns,
      CNI_IFNAME: "eth0",
      CNI_PATH: "/opt/cni/bin",
      ...agent?.environment,
    },
  };
}

function makeLinks(count: number): void {
  for (let place = 0; place < count; place++) {
    const outside = linkName(place);
    must("ip", "link", "add", outside, "up", "type", "veth", "peer", "name", "eth0", "netns", podName(place));
  }
}

function removeLinks(count: number): void {
  for (let place = 0; place < count; place++) must("ip", "link", "delete", linkName(place));
}

function linkName(place: number): string {
  return `vtb${place}`;
}

function podName(place: number): string {
  return `vt-bench-${place}`;
}

function must(...command: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(command);
  if (exitCode !== 0) throw new Error(`"${command.join(" ")}" failed: ${stderr}`);
}
