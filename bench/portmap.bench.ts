/**
 * Host ports, with the node agent and without, against upstream's portmap, newest
 * (both backends) and Debian's: alone and beside 20,000 rules of others, one after another, twenty at once,
 * and a node that is drained. Then whether a first packet notices 5,000 ports.
 */
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { part } from "../test/parts/build.ts";
import { type ContestResult, runContest } from "./support/contest.ts";
import { firstPacketContest } from "./support/first-packet.ts";
import { installForeignRules, type RuleKeeper, removeAllRules } from "./support/foreign-rules.ts";
import { type NodeAgent, startNodeAgent } from "./support/node-agent.ts";
import { makePods } from "./support/plugin-contender.ts";
import { drainContender, type PortmapRival, portmapContender } from "./support/portmap-contender.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const DEBIAN = "/usr/lib/cni/portmap";
const LEGACY = "/run/vt-legacy";
const AT_ONCE = 20;
const DRAINED_PODS = 110;
/** By iptables-legacy upstream's takes a second for each pod, one at a time: fewer of them, and once. */
const LEGACY_DRAINED_PODS = 30;
/** Debian's takes minutes to map what would be drained. */
const FEW_PODS = 5;

interface Programs {
  /** The folder of the product's programs. */
  readonly folder: string;
  readonly ours: string;
  readonly newest: string | undefined;
}

await onPrivateHost(import.meta.path, {
  async prepare(): Promise<Programs> {
    const newest = await part("cni-plugins");
    if ("missing" in newest) console.log(`left out: ${newest.missing}`);
    const folder = await buildProduct();
    return { folder, ours: `${folder}/portmap`, newest: "path" in newest ? `${newest.path}/portmap` : undefined };
  },
  async measure(programs) {
    await makePods(1);
    await pretendPods();
    await using agent = await startNodeAgent(programs.folder);
    await report("portmap-growth", [...(await flatness(programs)), await firstPacketContest()]);
    for (const keeper of [undefined, "nftables", "iptables-legacy", "iptables-nft"] as const) {
      await removeAllRules();
      if (keeper !== undefined) await installForeignRules(keeper);
      await report(`portmap-${keeper ?? "alone"}`, await contestsBeside(keeper, programs, agent));
    }
  },
});

async function contestsBeside(
  keeper: RuleKeeper | undefined,
  programs: Programs,
  agent: NodeAgent,
): Promise<ContestResult[]> {
  const place = keeper === undefined ? "alone" : `beside 20,000 rules by ${keeper}`;
  const program = programs.ours;
  const ours = [
    { name: "ours", program },
    { name: "ours, node agent", program, agent },
  ];
  const newest = newestRivals(programs, keeper);
  const debian = existsSync(DEBIAN) ? [{ name: "Debian 1.1.1", program: DEBIAN, ...pathFor(keeper) }] : [];
  const rivals = [...newest, ...ours];
  const baseline = rivals[0]?.name ?? "";
  const results: ContestResult[] = [];
  for (const command of ["ADD", "DEL"] as const) {
    const contenders = rivals.map((rival) => portmapContender(rival, command));
    results.push(await runContest({ title: `${command} ${place}`, contenders, baseline, rounds: 15 }));
  }
  // Debian's takes up to seconds: it competes apart, for few rounds.
  for (const command of ["ADD", "DEL"] as const) {
    const contenders = [...debian, ...ours].map((rival) => portmapContender(rival, command));
    const title = `${command} ${place}, old and new`;
    const first = contenders[0]?.name ?? "";
    results.push(await runContest({ title, contenders, baseline: first, rounds: 5, warmUpRounds: 1 }));
  }
  const isLegacy = keeper === "iptables-legacy";
  const many = { baseline, rounds: isLegacy ? 1 : 3, warmUpRounds: isLegacy ? 0 : 1, concurrency: AT_ONCE };
  for (const command of ["ADD", "DEL"] as const) {
    const contenders = rivals.map((rival) => portmapContender(rival, command, AT_ONCE));
    results.push(await runContest({ ...many, title: `${command} ${place}`, contenders }));
  }
  if (keeper === undefined || keeper === "nftables") return results;
  const pods = isLegacy ? LEGACY_DRAINED_PODS : DRAINED_PODS;
  const drain = rivals.map((rival) => drainContender(rival, pods, 10));
  const title = `${pods} pods with 3 ports each removed ${place}, 10 at a time`;
  results.push(await runContest({ title, contenders: drain, baseline, rounds: isLegacy ? 1 : 2, warmUpRounds: 0 }));
  const few = [...debian, ...ours].map((rival) => drainContender(rival, FEW_PODS, FEW_PODS));
  const fewTitle = `${FEW_PODS} pods with 3 ports each removed ${place}, at once`;
  const first = few[0]?.name ?? "";
  results.push(await runContest({ title: fewTitle, contenders: few, baseline: first, rounds: 1, warmUpRounds: 0 }));
  return results;
}

function newestRivals({ newest }: Programs, keeper: RuleKeeper | undefined): readonly PortmapRival[] {
  if (newest === undefined) return [];
  return (["iptables", "nftables"] as const).map((backend) => ({
    name: `upstream 1.9.1, ${backend}`,
    program: newest,
    backend,
    ...pathFor(keeper),
  }));
}

/** Upstream runs whatever is called `iptables`: it must be the one that keeps the others' rules. */
function pathFor(keeper: RuleKeeper | undefined): { readonly path?: string } {
  if (keeper !== "iptables-legacy") return {};
  mkdirSync(LEGACY, { recursive: true });
  for (const name of ["iptables", "ip6tables"]) {
    if (!existsSync(`${LEGACY}/${name}`)) symlinkSync(`/usr/sbin/${name}-legacy`, `${LEGACY}/${name}`);
  }
  return { path: `${LEGACY}:/usr/sbin:/usr/bin:/sbin:/bin` };
}

/** Ours in two namespaces by turns: one empty, one beside 20,000 rules. */
async function flatness({ ours }: Programs): Promise<ContestResult[]> {
  const results: ContestResult[] = [];
  const namespaces = { alone: "vt-bench-alone", "beside 20,000 rules": "vt-bench-beside" };
  for (const name of Object.values(namespaces)) {
    await pretendPods(name);
  }
  await installForeignRules("iptables-nft", namespaces["beside 20,000 rules"]);
  for (const command of ["ADD", "DEL"] as const) {
    const contenders = Object.entries(namespaces).map(([name, netns]) => ({
      ...portmapContender({ name, program: ours, netns }, command),
    }));
    results.push(await runContest({ title: `ours, ${command}`, contenders, baseline: "alone", rounds: 30 }));
  }
  return results;
}

/** A link behind which the pods' addresses are. */
async function pretendPods(netns?: string): Promise<void> {
  const inside = netns === undefined ? "" : `-n ${netns}`;
  const make = netns === undefined ? "" : `ip netns add ${netns};`;
  const script = `${make} ip ${inside} link add pods type veth peer name rest
    ip ${inside} addr add 10.9.0.1/16 dev pods; ip ${inside} link set pods up; ip ${inside} link set rest up`;
  const made = Bun.spawnSync(["sh", "-ec", script], { stderr: "pipe" });
  if (made.exitCode !== 0) throw new Error(`Cannot make a link: ${made.stderr}`);
}
