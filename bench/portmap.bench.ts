/**
 * Host ports, with and without the node agent, compared with upstream's portmap,
 * newest (both backends) and Debian's: alone and beside 20,000 rules of other
 * programs, one after another, twenty at once, and a node that is drained. Then
 * whether 5,000 ports delay a first packet.
 */
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { part } from "../test/parts/build.ts";
import { type ComparisonResult, runComparison } from "./support/comparison.ts";
import { compareFirstPackets } from "./support/first-packet.ts";
import { installForeignRules, type RuleBackend, removeAllRules } from "./support/foreign-rules.ts";
import { type NodeAgent, startNodeAgent } from "./support/node-agent.ts";
import { makePods } from "./support/plugin-candidate.ts";
import { drainCandidate, type MeasuredPortmap, portmapCandidate } from "./support/portmap-candidate.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const DEBIAN = "/usr/lib/cni/portmap";
const LEGACY = "/run/vt-legacy";
const AT_ONCE = 20;
const DRAINED_PODS = 110;
/** With iptables-legacy upstream's takes a second for each pod, one at a time: fewer pods, and only once. */
const LEGACY_DRAINED_PODS = 30;
/** Debian's takes minutes to map the ports of so many pods. */
const FEW_PODS = 5;

interface Programs {
  /** The directory of the product's programs. */
  readonly folder: string;
  readonly ours: string;
  readonly newest: string | undefined;
}

await onPrivateHost(import.meta.path, {
  async prepare(): Promise<Programs> {
    const newest = await part("cni-plugins");
    if ("missing" in newest) console.log(`skipped: ${newest.missing}`);
    const folder = await buildProduct();
    return { folder, ours: `${folder}/portmap`, newest: "path" in newest ? `${newest.path}/portmap` : undefined };
  },
  async measure(programs) {
    await makePods(1);
    await addPodLink();
    await using agent = await startNodeAgent(programs.folder);
    await report("portmap-growth", [...(await compareWithAndWithoutRules(programs)), await compareFirstPackets()]);
    for (const ruleBackend of [undefined, "nftables", "iptables-legacy", "iptables-nft"] as const) {
      await removeAllRules();
      if (ruleBackend !== undefined) await installForeignRules(ruleBackend);
      await report(`portmap-${ruleBackend ?? "alone"}`, await compareBeside(ruleBackend, programs, agent));
    }
  },
});

async function compareBeside(
  ruleBackend: RuleBackend | undefined,
  programs: Programs,
  agent: NodeAgent,
): Promise<ComparisonResult[]> {
  const place = ruleBackend === undefined ? "alone" : `beside 20,000 rules of ${ruleBackend}`;
  const program = programs.ours;
  const ours = [
    { name: "ours", program },
    { name: "ours, node agent", program, agent },
  ];
  const newest = newestUpstream(programs, ruleBackend);
  const debian = existsSync(DEBIAN) ? [{ name: "Debian 1.1.1", program: DEBIAN, ...pathFor(ruleBackend) }] : [];
  const implementations = [...newest, ...ours];
  const baseline = implementations[0]?.name ?? "";
  const results: ComparisonResult[] = [];
  for (const command of ["ADD", "DEL"] as const) {
    const candidates = implementations.map((implementation) => portmapCandidate(implementation, command));
    results.push(await runComparison({ title: `${command} ${place}`, candidates, baseline, rounds: 15 }));
  }
  // Debian's takes up to seconds: it is compared separately, in few rounds.
  for (const command of ["ADD", "DEL"] as const) {
    const candidates = [...debian, ...ours].map((implementation) => portmapCandidate(implementation, command));
    const title = `${command} ${place}, old and new`;
    const first = candidates[0]?.name ?? "";
    results.push(await runComparison({ title, candidates, baseline: first, rounds: 5, warmUpRounds: 1 }));
  }
  const isLegacy = ruleBackend === "iptables-legacy";
  const many = { baseline, rounds: isLegacy ? 1 : 3, warmUpRounds: isLegacy ? 0 : 1, concurrency: AT_ONCE };
  for (const command of ["ADD", "DEL"] as const) {
    const candidates = implementations.map((implementation) => portmapCandidate(implementation, command, AT_ONCE));
    results.push(await runComparison({ ...many, title: `${command} ${place}`, candidates }));
  }
  if (ruleBackend === undefined || ruleBackend === "nftables") return results;
  const pods = isLegacy ? LEGACY_DRAINED_PODS : DRAINED_PODS;
  const drain = implementations.map((implementation) => drainCandidate(implementation, pods, 10));
  const title = `${pods} pods with 3 ports each removed ${place}, 10 at a time`;
  results.push(await runComparison({ title, candidates: drain, baseline, rounds: isLegacy ? 1 : 2, warmUpRounds: 0 }));
  const few = [...debian, ...ours].map((implementation) => drainCandidate(implementation, FEW_PODS, FEW_PODS));
  const fewTitle = `${FEW_PODS} pods with 3 ports each removed ${place}, at once`;
  const first = few[0]?.name ?? "";
  results.push(await runComparison({ title: fewTitle, candidates: few, baseline: first, rounds: 1, warmUpRounds: 0 }));
  return results;
}

function newestUpstream({ newest }: Programs, ruleBackend: RuleBackend | undefined): readonly MeasuredPortmap[] {
  if (newest === undefined) return [];
  return (["iptables", "nftables"] as const).map((backend) => ({
    name: `upstream 1.9.1, ${backend}`,
    program: newest,
    backend,
    ...pathFor(ruleBackend),
  }));
}

/** Upstream runs the program named `iptables`: it must be the one with the rules of the other programs. */
function pathFor(ruleBackend: RuleBackend | undefined): { readonly path?: string } {
  if (ruleBackend !== "iptables-legacy") return {};
  mkdirSync(LEGACY, { recursive: true });
  for (const name of ["iptables", "ip6tables"]) {
    if (!existsSync(`${LEGACY}/${name}`)) symlinkSync(`/usr/sbin/${name}-legacy`, `${LEGACY}/${name}`);
  }
  return { path: `${LEGACY}:/usr/sbin:/usr/bin:/sbin:/bin` };
}

/** Ours in two namespaces in turn: an empty one, and one with 20,000 rules. */
async function compareWithAndWithoutRules({ ours }: Programs): Promise<ComparisonResult[]> {
  const results: ComparisonResult[] = [];
  const namespaces = { alone: "vt-bench-alone", "beside 20,000 rules": "vt-bench-beside" };
  for (const name of Object.values(namespaces)) {
    await addPodLink(name);
  }
  await installForeignRules("iptables-nft", namespaces["beside 20,000 rules"]);
  for (const command of ["ADD", "DEL"] as const) {
    const candidates = Object.entries(namespaces).map(([name, netns]) => ({
      ...portmapCandidate({ name, program: ours, netns }, command),
    }));
    results.push(await runComparison({ title: `ours, ${command}`, candidates, baseline: "alone", rounds: 30 }));
  }
  return results;
}

/** Creates a link that the routes to the pods' addresses use. */
async function addPodLink(netns?: string): Promise<void> {
  const inside = netns === undefined ? "" : `-n ${netns}`;
  const make = netns === undefined ? "" : `ip netns add ${netns};`;
  const script = `${make} ip ${inside} link add pods type veth peer name rest
    ip ${inside} addr add 10.9.0.1/16 dev pods; ip ${inside} link set pods up; ip ${inside} link set rest up`;
  const made = Bun.spawnSync(["sh", "-ec", script], { stderr: "pipe" });
  if (made.exitCode !== 0) throw new Error(`Cannot create a link: ${made.stderr}`);
}
