/**
 * The cost of an ADD and a DEL on a host without pods, with 100 and with 1,000
 * pods. Each host is a network namespace with its own datastore on one private
 * host, so that all are measured in one run, interleaved; entering the namespace
 * costs the same for each of them.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../src/identity.ts";
import { pollUntil } from "../test/support/poll.ts";
import { runCommand } from "./support/command-candidate.ts";
import { type Candidate, type ComparisonResult, runComparison } from "./support/comparison.ts";
import { callOf, type MeasuredPlugin, makePods, podName } from "./support/plugin-candidate.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { prepareProduct } from "./support/product-candidates.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const SIZES = [0, 100, 1_000];
const AT_ONCE = 4;
const ROUNDS = 30;
const DEBIAN = "/usr/lib/cni";

interface PopulatedHost {
  readonly size: number;
  /** The network namespace that serves as the host. */
  readonly netns: string;
  readonly plugin: MeasuredPlugin;
}

await onPrivateHost(import.meta.path, {
  prepare: async (host): Promise<readonly PopulatedHost[]> => {
    const folder = await buildProduct();
    const hosts: PopulatedHost[] = [];
    for (const size of SIZES) {
      const name = `${identity.product}, ${size} pods`;
      const datastore = { datastore_type: "embedded", datastore_path: `/var/lib/bench-${size}.sqlite` };
      const plugin = await prepareProduct(host, { name, folder, datastore, cidr: "10.97.0.0/16", ipam: "own" });
      hosts.push({ size, netns: `vt-own-${size}`, plugin });
    }
    return existsSync(join(DEBIAN, "ptp")) ? [...hosts, ...SIZES.map(ptpHost)] : hosts;
  },
  measure: async (hosts) => {
    await makePods(SIZES.reduce((sum, size) => sum + size, 1));
    const results: ComparisonResult[] = [];
    for (const family of [identity.product, "ptp"]) {
      const own = hosts.filter(({ plugin }) => plugin.name.startsWith(family));
      for (const host of own) await fillHost(host);
      results.push(await measure("ADD", own), await measure("DEL", own));
      for (const host of own) await removeHost(host);
    }
    await report("pods-per-host", results);
  },
});

function ptpHost(size: number): PopulatedHost {
  const ipam = { type: "host-local", ranges: [[{ subnet: "10.77.0.0/16" }]], routes: [{ dst: "0.0.0.0/0" }] };
  const config = JSON.stringify({ cniVersion: "1.0.0", name: `ptp-${size}`, type: "ptp", ipam });
  const plugin = { name: `ptp + host-local, ${size} pods`, program: join(DEBIAN, "ptp"), config, path: DEBIAN };
  return { size, netns: `vt-ptp-${size}`, plugin };
}

/** Creates the host and its pods. */
async function fillHost(host: PopulatedHost): Promise<void> {
  await run(["ip", "netns", "add", host.netns]);
  await run(["ip", "-n", host.netns, "link", "set", "lo", "up"]);
  let next = firstPlaceOf(host);
  const end = next + host.size;
  const work = async () => {
    while (next < end) await call(host, "ADD", -1_000_000, next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** Place 0 is for the measured pod; the pods of smaller hosts come before those of this one. */
function firstPlaceOf(host: PopulatedHost): number {
  return SIZES.filter((size) => size < host.size).reduce((sum, size) => sum + size, 1);
}

/** Removes the host. The kernel removes all its links together, after some time: then the pods can be used again. */
async function removeHost(host: PopulatedHost): Promise<void> {
  await run(["ip", "netns", "delete", host.netns]);
  if (host.size === 0) return;
  const look = ["ip", "-n", podName(firstPlaceOf(host)), "link", "show", "eth0"];
  await pollUntil(() => Bun.spawnSync(look).exitCode !== 0, "the pods to be free", 30_000);
}

function measure(command: "ADD" | "DEL", hosts: readonly PopulatedHost[]): Promise<ComparisonResult> {
  const candidates = hosts.map(
    (host): Candidate => ({
      name: host.plugin.name,
      ...(command === "DEL" ? { before: async ({ round }) => void (await call(host, "ADD", round, 0)) } : {}),
      run: ({ round }) => call(host, command, round, 0),
      ...(command === "ADD" ? { after: async ({ round }) => void (await call(host, "DEL", round, 0)) } : {}),
    }),
  );
  return runComparison({ title: command, candidates, baseline: candidates[0]?.name ?? "", rounds: ROUNDS });
}

function call({ netns, plugin }: PopulatedHost, command: "ADD" | "DEL", round: number, place: number) {
  const { command: program, ...rest } = callOf(plugin, command, { round }, place);
  return runCommand({ command: ["nsenter", `--net=/run/netns/${netns}`, ...program], ...rest });
}

async function run(command: readonly string[]): Promise<void> {
  const { exitCode, stderr } = Bun.spawnSync([...command]);
  if (exitCode !== 0) throw new Error(`"${command.join(" ")}" failed: ${stderr}`);
}
