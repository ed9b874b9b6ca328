/**
 * host-local compared with upstream's: an address is assigned and released, with
 * no and with a thousand containers on the host, as a separate process and in
 * the process of the plugin that calls it.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostLocalAdd } from "../src/ipam/hostlocal/add.ts";
import { hostLocalDel } from "../src/ipam/hostlocal/release.ts";
import { partIfBuilt } from "../test/parts/build.ts";
import { configOf, environmentOf, type HostLocalCall } from "../test/support/host-local.ts";
import { runCommand } from "./support/command-candidate.ts";
import { type Candidate, type Cost, runComparison } from "./support/comparison.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const DEBIAN = "/usr/lib/cni/host-local";
const IPAM = { ranges: [[{ subnet: "10.1.0.0/16" }]] };
const NEVER = new AbortController().signal;
const ROUNDS = 60;

/** A program, or `undefined` for our functions called directly. */
interface Implementation {
  readonly name: string;
  readonly program: string | undefined;
}

const folder = mkdtempSync(join(tmpdir(), "vt-bench-hostlocal-"));
try {
  const names = await buildProduct();
  const newest = partIfBuilt("cni-plugins");
  if ("missing" in newest) console.log(`skipped: ${newest.missing}`);
  const implementations = [
    { name: "Debian 1.1.1", program: DEBIAN },
    ...("path" in newest ? [{ name: "upstream 1.9.1", program: join(newest.path, "host-local") }] : []),
    { name: "ours", program: join(names, "host-local") },
    { name: "ours, in the plugin's process", program: undefined },
  ].filter(({ program }) => program === undefined || existsSync(program));
  const baseline = implementations[0]?.name ?? "";
  const results = [];
  for (const containers of [0, 1_000]) {
    for (const command of ["ADD", "DEL"] as const) {
      const candidates = implementations.map((implementation) => candidate(implementation, command, containers));
      const title = `host-local ${command}, ${containers} containers on the host`;
      results.push(await runComparison({ title, candidates, baseline, rounds: ROUNDS }));
    }
  }
  await report("host-local", results);
} finally {
  rmSync(folder, { recursive: true });
}

/** Each implementation has its own data directory; what is not measured is done by the same implementation, not timed. */
function candidate(implementation: Implementation, command: "ADD" | "DEL", containers: number): Candidate {
  const dataDir = mkdtempSync(join(folder, "data-"));
  fill(join(dataDir, "mynet"), containers);
  const other = command === "ADD" ? "DEL" : "ADD";
  const turn = (which: "ADD" | "DEL", round: number) =>
    call(implementation, {
      program: implementation.program ?? "",
      command: which,
      dataDir,
      containerId: `bench${round}`,
      ipam: IPAM,
    });
  return {
    name: implementation.name,
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

async function call(implementation: Implementation, request: HostLocalCall): Promise<Cost> {
  if (implementation.program !== undefined) {
    return runCommand({
      command: [implementation.program],
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
