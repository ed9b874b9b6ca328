/**
 * The bandwidth plugins side by side: a container's link shaped in both
 * directions and freed again, and passed through where no rate is named, which
 * is what most pods do. Every turn has a fresh link, as in life.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { part } from "../test/parts/build.ts";
import { type Command, runCommand } from "./support/command.ts";
import { type Contender, type Contest, runContest, type Turn } from "./support/contest.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const AT_ONCE = 20;
const RATES = { ingressRate: 10_000_000, ingressBurst: 1_000_000, egressRate: 20_000_000, egressBurst: 1_000_000 };
const NO_RATES = {};
const UPSTREAM = "upstream 1.9.1";
const DEBIAN = "Debian 1.1.1";

interface Rival {
  readonly name: string;
  readonly program: string;
}

await onPrivateHost(import.meta.path, {
  async prepare(): Promise<readonly Rival[]> {
    const newest = await part("cni-plugins");
    if ("missing" in newest) console.log(`left out: ${newest.missing}`);
    const rivals = [
      ...("path" in newest ? [{ name: UPSTREAM, program: join(newest.path, "bandwidth") }] : []),
      { name: DEBIAN, program: "/usr/lib/cni/bandwidth" },
      { name: "ours", program: join(await buildProduct(), "bandwidth") },
    ];
    return rivals.filter(({ program }) => existsSync(program));
  },
  async measure(rivals) {
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

function addContender({ name, program }: Rival, rates: object, count: number): Contender {
  return {
    name,
    before: () => makeLinks(count),
    run: (turn, place) => runCommand(callOf(program, "ADD", rates, turn, place)),
    after: async (turn) => {
      for (let place = 0; place < count; place++) await runCommand(callOf(program, "DEL", rates, turn, place));
      removeLinks(count);
    },
  };
}

function delContender({ name, program }: Rival, count: number): Contender {
  return {
    name,
    before: async (turn) => {
      makeLinks(count);
      for (let place = 0; place < count; place++) await runCommand(callOf(program, "ADD", RATES, turn, place));
    },
    run: (turn, place) => runCommand(callOf(program, "DEL", RATES, turn, place)),
    after: () => removeLinks(count),
  };
}

function callOf(program: string, command: string, rates: object, { round }: Turn, place: number): Command {
  const netns = `/run/netns/${podName(place)}`;
  const prevResult = { cniVersion: "1.0.0", interfaces: [{ name: linkName(place) }, { name: "eth0", sandbox: netns }] };
  return {
    command: [program],
    stdin: JSON.stringify({ cniVersion: "1.0.0", name: "bench", type: "bandwidth", ...rates, prevResult }),
    environment: {
      CNI_COMMAND: command,
      CNI_CONTAINERID: `c${round + 100}-${place}`,
      CNI_NETNS: netns,
      CNI_IFNAME: "eth0",
      CNI_PATH: "/opt/cni/bin",
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
