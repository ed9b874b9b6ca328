/**
 * Compares bandwidth plugins, ours with and without the node agent: a container's link is shaped in both directions and
 * reset again, and left alone if no rate is set, as for most pods. Every turn has a new link, as in production.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { part } from "../test/parts/build.ts";
import { runCommand } from "./support/command-candidate.ts";
import type { Command } from "./support/command-line.ts";
import { type Candidate, type Comparison, runComparison, type Turn } from "./support/comparison.ts";
import { type Served, startNodeAgent } from "./support/node-agent.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const AT_ONCE = 20;
const RATES = { ingressRate: 10_000_000, ingressBurst: 1_000_000, egressRate: 20_000_000, egressBurst: 1_000_000 };
const NO_RATES = {};
const UPSTREAM = "upstream 1.9.1";
const DEBIAN = "Debian 1.1.1";

interface Implementation extends Served {
  readonly name: string;
  readonly program: string;
}

interface Prepared {
  /** The directory of the product's programs. */
  readonly folder: string;
  readonly alone: readonly Implementation[];
}

await onPrivateHost(import.meta.path, {
  async prepare(): Promise<Prepared> {
    const newest = await part("cni-plugins");
    if ("missing" in newest) console.log(`skipped: ${newest.missing}`);
    const folder = await buildProduct();
    const implementations = [
      ...("path" in newest ? [{ name: UPSTREAM, program: join(newest.path, "bandwidth") }] : []),
      { name: DEBIAN, program: "/usr/lib/cni/bandwidth" },
      { name: "ours", program: join(folder, "bandwidth") },
    ];
    return { folder, alone: implementations.filter(({ program }) => existsSync(program)) };
  },
  async measure({ folder, alone }) {
    await using agent = await startNodeAgent(folder);
    const implementations = [...alone, { name: "ours, node agent", program: join(folder, "bandwidth"), agent }];
    for (let place = 0; place < AT_ONCE; place++) must("ip", "netns", "add", podName(place));
    const once: Omit<Comparison, "title" | "candidates"> = { baseline: implementations[0]?.name ?? "", rounds: 60 };
    const many = { ...once, rounds: 6, warmUpRounds: 1, concurrency: AT_ONCE };
    const add = (rates: object, count = 1) =>
      implementations.map((implementation) => addCandidate(implementation, rates, count));
    const del = (count = 1) => implementations.map((implementation) => delCandidate(implementation, count));
    // Debian's version panics if no rate is set.
    const passing = add(NO_RATES).filter(({ name }) => name !== DEBIAN);
    await report("bandwidth", [
      await runComparison({ ...once, title: "ADD, both directions", candidates: add(RATES) }),
      await runComparison({ ...once, title: "DEL, both directions", candidates: del() }),
      await runComparison({ ...once, title: "ADD, no rate set", candidates: passing }),
      await runComparison({ ...many, title: "ADD, both directions", candidates: add(RATES, AT_ONCE) }),
      await runComparison({ ...many, title: "DEL, both directions", candidates: del(AT_ONCE) }),
    ]);
  },
});

function addCandidate(implementation: Implementation, rates: object, count: number): Candidate {
  return {
    name: implementation.name,
    meter: implementation.agent?.meter,
    before: () => makeLinks(count),
    run: (turn, place) => runCommand(callOf(implementation, { command: "ADD", rates, turn, place })),
    after: async (turn) => {
      for (let place = 0; place < count; place++)
        await runCommand(callOf(implementation, { command: "DEL", rates, turn, place }));
      removeLinks(count);
    },
  };
}

function delCandidate(implementation: Implementation, count: number): Candidate {
  const rates = RATES;
  return {
    name: implementation.name,
    meter: implementation.agent?.meter,
    before: async (turn) => {
      makeLinks(count);
      for (let place = 0; place < count; place++)
        await runCommand(callOf(implementation, { command: "ADD", rates, turn, place }));
    },
    run: (turn, place) => runCommand(callOf(implementation, { command: "DEL", rates, turn, place })),
    after: () => removeLinks(count),
  };
}

interface Call {
  readonly command: "ADD" | "DEL";
  readonly rates: object;
  readonly turn: Turn;
  readonly place: number;
}

function callOf({ program, agent }: Implementation, { command, rates, turn, place }: Call): Command {
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
