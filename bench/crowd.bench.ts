/**
 * What an ADD and a DEL cost on a host that is empty, and on one with 100 and
 * with 1,000 pods. Each is a network namespace with a datastore of its own on
 * one private host, so that all are measured in one run, turn by turn; the step
 * into the namespace costs each of them the same.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../src/identity.ts";
import { pollUntil } from "../test/support/poll.ts";
import { runCommand } from "./support/command.ts";
import { type Contender, type ContestResult, runContest } from "./support/contest.ts";
import { callOf, type MeasuredPlugin, makePods, podName } from "./support/plugin-contender.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { prepareProduct } from "./support/product-contenders.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const SIZES = [0, 100, 1_000];
const AT_ONCE = 4;
const ROUNDS = 30;
const DEBIAN = "/usr/lib/cni";

interface Crowd {
  readonly size: number;
  /** The network namespace that is its host. */
  readonly host: string;
  readonly plugin: MeasuredPlugin;
}

await onPrivateHost(import.meta.path, {
  prepare: async (host): Promise<readonly Crowd[]> => {
    const folder = await buildProduct();
    const crowds: Crowd[] = [];
    for (const size of SIZES) {
      const name = `${identity.product}, ${size} pods`;
      const datastore = { datastore_type: "embedded", datastore_path: `/var/lib/crowd-${size}.sqlite` };
      const plugin = await prepareProduct(host, { name, folder, datastore, cidr: "10.97.0.0/16", ipam: "own" });
      crowds.push({ size, host: `vt-own-${size}`, plugin });
    }
    return existsSync(join(DEBIAN, "ptp")) ? [...crowds, ...SIZES.map(ptpCrowd)] : crowds;
  },
  measure: async (crowds) => {
    await makePods(SIZES.reduce((sum, size) => sum + size, 1));
    const results: ContestResult[] = [];
    for (const family of [identity.product, "ptp"]) {
      const own = crowds.filter(({ plugin }) => plugin.name.startsWith(family));
      for (const crowd of own) await gather(crowd);
      results.push(await measure("ADD", own), await measure("DEL", own));
      for (const crowd of own) await scatter(crowd);
    }
    await report("crowd", results);
  },
});

function ptpCrowd(size: number): Crowd {
  const ipam = { type: "host-local", ranges: [[{ subnet: "10.77.0.0/16" }]], routes: [{ dst: "0.0.0.0/0" }] };
  const config = JSON.stringify({ cniVersion: "1.0.0", name: `ptp-${size}`, type: "ptp", ipam });
  const plugin = { name: `ptp + host-local, ${size} pods`, program: join(DEBIAN, "ptp"), config, path: DEBIAN };
  return { size, host: `vt-ptp-${size}`, plugin };
}

/** Makes the host and fills it. */
async function gather(crowd: Crowd): Promise<void> {
  await run(["ip", "netns", "add", crowd.host]);
  await run(["ip", "-n", crowd.host, "link", "set", "lo", "up"]);
  let next = firstPlaceOf(crowd);
  const end = next + crowd.size;
  const work = async () => {
    while (next < end) await call(crowd, "ADD", -1_000_000, next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** Place 0 is for what is measured; the pods of smaller crowds come before those of this one. */
function firstPlaceOf(crowd: Crowd): number {
  return SIZES.filter((size) => size < crowd.size).reduce((sum, size) => sum + size, 1);
}

/** Takes the host away. The kernel does so in its own time, and all links of a host together: then the pods are free for others. */
async function scatter(crowd: Crowd): Promise<void> {
  await run(["ip", "netns", "delete", crowd.host]);
  if (crowd.size === 0) return;
  const look = ["ip", "-n", podName(firstPlaceOf(crowd)), "link", "show", "eth0"];
  await pollUntil(() => Bun.spawnSync(look).exitCode !== 0, "the pods to be free", 30_000);
}

function measure(command: "ADD" | "DEL", crowds: readonly Crowd[]): Promise<ContestResult> {
  const contenders = crowds.map(
    (crowd): Contender => ({
      name: crowd.plugin.name,
      ...(command === "DEL" ? { before: async ({ round }) => void (await call(crowd, "ADD", round, 0)) } : {}),
      run: ({ round }) => call(crowd, command, round, 0),
      ...(command === "ADD" ? { after: async ({ round }) => void (await call(crowd, "DEL", round, 0)) } : {}),
    }),
  );
  return runContest({ title: command, contenders, baseline: contenders[0]?.name ?? "", rounds: ROUNDS });
}

function call({ host, plugin }: Crowd, command: "ADD" | "DEL", round: number, place: number) {
  const { command: program, ...rest } = callOf(plugin, command, { round }, place);
  return runCommand({ command: ["nsenter", `--net=/run/netns/${host}`, ...program], ...rest });
}

async function run(command: readonly string[]): Promise<void> {
  const { exitCode, stderr } = Bun.spawnSync([...command]);
  if (exitCode !== 0) throw new Error(`"${command.join(" ")}" failed: ${stderr}`);
}
