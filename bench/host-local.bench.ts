/**
 * host-local against upstream's: an address given and taken back, with few and
 * with a thousand containers on the host, as a process and in the process of
 * the plugin that needs it.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostLocalAdd } from "../src/ipam/hostlocal/add.ts";
import { hostLocalDel } from "../src/ipam/hostlocal/release.ts";
import { partIfBuilt } from "../test/parts/build.ts";
import { configOf, environmentOf, type HostLocalCall } from "../test/support/host-local.ts";
import { runCommand } from "./support/command.ts";
import { type Contender, type Cost, runContest } from "./support/contest.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const DEBIAN = "/usr/lib/cni/host-local";
const IPAM = { ranges: [[{ subnet: "10.1.0.0/16" }]] };
const NEVER = new AbortController().signal;
const ROUNDS = 60;

/** A program, or `undefined` for our functions called directly. */
interface Rival {
  readonly name: string;
  readonly program: string | undefined;
}

const folder = mkdtempSync(join(tmpdir(), "vt-bench-hostlocal-"));
try {
  const names = await buildProduct();
  const newest = partIfBuilt("cni-plugins");
  if ("missing" in newest) console.log(`left out: ${newest.missing}`);
  const rivals = [
    { name: "Debian 1.1.1", program: DEBIAN },
    ...("path" in newest ? [{ name: "upstream 1.9.1", program: join(newest.path, "host-local") }] : []),
    { name: "ours", program: join(names, "host-local") },
    { name: "ours, in the plugin's process", program: undefined },
  ].filter(({ program }) => program === undefined || existsSync(program));
  const baseline = rivals[0]?.name ?? "";
  const results = [];
  for (const containers of [0, 1_000]) {
    for (const command of ["ADD", "DEL"] as const) {
      const contenders = rivals.map((rival) => contender(rival, command, containers));
      const title = `host-local ${command}, ${containers} containers there`;
      results.push(await runContest({ title, contenders, baseline, rounds: ROUNDS }));
    }
  }
  await report("host-local", results);
} finally {
  rmSync(folder, { recursive: true });
}

/** Each rival has a data folder of its own; what is not measured is done by the same rival, untimed. */
function contender(rival: Rival, command: "ADD" | "DEL", containers: number): Contender {
  const dataDir = mkdtempSync(join(folder, "data-"));
  fill(join(dataDir, "mynet"), containers);
  const other = command === "ADD" ? "DEL" : "ADD";
  const turn = (which: "ADD" | "DEL", round: number) =>
    call(rival, { program: rival.program ?? "", command: which, dataDir, containerId: `bench${round}`, ipam: IPAM });
  return {
    name: rival.name,
    ...(command === "DEL" ? { before: async ({ round }) => void (await turn(other, round)) } : {}),
    run: ({ round }) => turn(command, round),
    ...(command === "ADD" ? { after: async ({ round }) => void (await turn(other, round)) } : {}),
  };
}

function fill(network: string, containers: number): void {
  mkdirSync(network, { recursive: true });
  for (let index = 0; index < containers; index += 1) {
    writeFileSync(join(network, `10.1.${200 + (index >> 8)}.${index & 255}`), `filler${index}\r\neth0`);
  }
}

async function call(rival: Rival, request: HostLocalCall): Promise<Cost> {
  if (rival.program !== undefined) {
    return runCommand({
      command: [rival.program],
      environment: environmentOf(request),
      stdin: JSON.stringify(configOf(request)),
    });
  }
  const cpuBefore = process.cpuUsage();
  const { containerId = "", command } = request;
  const config = JSON.parse(JSON.stringify(configOf(request)));
  const input = { config, networkName: "mynet", cniVersion: "1.0.0", containerId, ifname: "eth0", args: "" } as const;
  if (command === "ADD") await hostLocalAdd(input, NEVER);
  else await hostLocalDel(input, NEVER);
  const { user, system } = process.cpuUsage(cpuBefore);
  return { cpuMilliseconds: (user + system) / 1000 };
}
