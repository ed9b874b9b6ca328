/**
 * What the rules cost packets: the time of a new TCP connection and the throughput between two pods of one host, without rules and
 * with those of 10 and 1,000 endpoints and policies. Each size has its own network namespace as the host, so that they take turns.
 */
import { POLICY_TABLE } from "../../src/firewall/policy-table.ts";
import { closeNetlinkSocket, openNetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { commit } from "../../src/linux/nftables/commit.ts";
import { type NodeAgentConfigurationSpec, nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { PolicyCompiler } from "../../src/policy/compile/compiler.ts";
import { wholeTable } from "../../src/policy/table/table-changes.ts";
import { insideNetns } from "../../test/support/namespace-sockets.ts";
import { changesBetween, NO_RESOURCES } from "../../test/support/policy-changes.ts";
import {
  addressOf,
  interfaceOf,
  LOAD_NODE,
  LOAD_PORT,
  localEndpoint,
  peerOf,
  policyLoad,
} from "../../test/support/policy-load.ts";
import { connectAndClose, listenAt } from "./blocking-sockets.ts";
import { measureThroughput, type PodPath } from "./pod-path.ts";
import { markdown } from "./policy-table.ts";
import { quantileOf } from "./statistics.ts";

export interface Passage {
  readonly title: string;
  readonly connectMicroseconds: readonly number[];
  readonly gigabitsPerSecond: readonly number[];
}

const CASES = [
  { title: "no rules", name: "none" },
  { title: "no rules, connections tracked", name: "tracked" },
  { title: "10 endpoints and policies", name: "10", size: 10 },
  { title: "1,000 endpoints and policies", name: "1000", size: 1_000 },
  { title: "1,000 endpoints and policies, denyAction Reject", name: "reject", size: 1_000, denyAction: "Reject" },
] as const;
type Case = (typeof CASES)[number];

const CONNECTIONS_PER_ROUND = 50;
const WARM_UP_ROUNDS = 3;
const THROUGHPUT_SECONDS = 1;
const THROUGHPUT_ROUNDS = 12;
/** Numbers of the endpoints of the two pods. */
const [SERVER, CLIENT] = [0, 1];

export async function measurePassage({ rounds }: { readonly rounds: number }): Promise<readonly Passage[]> {
  for (const each of CASES) await makeHost(each);
  const connections = await timeConnections(rounds);
  const throughput = await measureRates(Math.min(rounds, THROUGHPUT_ROUNDS));
  return CASES.map(({ title, name }) => ({
    title,
    connectMicroseconds: connections.get(name) ?? [],
    gigabitsPerSecond: throughput.get(name) ?? [],
  }));
}

/** Ratios to the first, without rules. */
export function passageTable(passages: readonly Passage[]): string {
  const times = passages.map((passage) => quantileOf(passage.connectMicroseconds, 0.5));
  const rates = passages.map((passage) => quantileOf(passage.gigabitsPerSecond, 0.5));
  const best = passages.map((passage) => Math.max(...passage.gigabitsPerSecond));
  const ratio = (values: readonly number[], index: number) => ((values[index] ?? 0) / (values[0] ?? 0)).toFixed(2);
  return markdown([
    [
      "between two pods of a host",
      "new connection, median",
      "p95",
      "ratio",
      "throughput, median",
      "ratio",
      "best",
      "ratio",
    ],
    ...passages.map(({ title, connectMicroseconds }, index) => [
      title,
      `${times[index]?.toFixed(1)} us`,
      `${quantileOf(connectMicroseconds, 0.95).toFixed(1)} us`,
      ratio(times, index),
      `${rates[index]?.toFixed(1)} Gbit/s`,
      ratio(rates, index),
      `${best[index]?.toFixed(1)} Gbit/s`,
      ratio(best, index),
    ]),
  ]);
}

async function makeHost(one: Case): Promise<void> {
  const host = hostOf(one);
  await run(["ip", "netns", "add", host]);
  await run(["nsenter", `--net=${pathOf(host)}`, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
  for (const index of [SERVER, CLIENT]) {
    const [pod, link, address] = [podOf(one, index), interfaceOf(index), addressOf(LOAD_NODE, index)];
    await run(["ip", "netns", "add", pod]);
    await run(["ip", "-n", host, "link", "add", link, "up", "type", "veth", "peer", "name", "eth0", "netns", pod]);
    await run(["ip", "-n", host, "address", "add", "169.254.1.1/32", "dev", link]);
    await run(["ip", "-n", host, "route", "add", `${address}/32`, "dev", link]);
    await run(["ip", "-n", pod, "address", "add", `${address}/32`, "dev", "eth0"]);
    await run(["ip", "-n", pod, "link", "set", "eth0", "up"]);
    await run(["ip", "-n", pod, "route", "add", "169.254.1.1", "dev", "eth0"]);
    await run(["ip", "-n", pod, "route", "add", "default", "via", "169.254.1.1"]);
  }
  if ("size" in one) writeRules(host, one.size, "denyAction" in one ? { denyAction: one.denyAction } : {});
  else if (one.name === "tracked") await run(["nsenter", `--net=${pathOf(host)}`, "nft", TRACKING]);
}

/** Without a rule that asks, connections of a namespace are not tracked; on most hosts some rule of NAT does. */
const TRACKING = `table inet tracking {
  chain forward { type filter hook forward priority 0; ct state established accept; }
}`;

/** What the node agent would write. */
function writeRules(host: string, size: number, settings: NodeAgentConfigurationSpec): void {
  const compiler = new PolicyCompiler({ node: LOAD_NODE });
  const load = policyLoad({ locals: size, remotes: size, policies: size });
  const others = load.endpoints.filter(({ spec }) => spec.interfaceName !== interfaceOf(CLIENT));
  const configuration = nodeAgentConfiguration.make({ name: "default" }, settings);
  const client = localEndpoint(CLIENT, peerOf(SERVER, size));
  compiler.update(changesBetween(NO_RESOURCES, { ...load, endpoints: [...others, client] }, configuration));
  const socket = insideNetns(pathOf(host), () => openNetlinkSocket("netfilter"));
  commit(socket, wholeTable(POLICY_TABLE, compiler.table, ""));
  closeNetlinkSocket(socket);
}

async function timeConnections(rounds: number): Promise<ReadonlyMap<string, number[]>> {
  const times = new Map<string, number[]>(CASES.map(({ name }) => [name, []]));
  using stack = new DisposableStack();
  const listeners = CASES.map((one) => stack.use(insideNetns(pathOf(podOf(one, SERVER)), () => listenAt(LOAD_PORT))));
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    CASES.forEach((one, index) => {
      const listener = listeners[index];
      if (listener === undefined) return;
      const to = { address: addressOf(LOAD_NODE, SERVER), port: LOAD_PORT };
      const measured = insideNetns(pathOf(podOf(one, CLIENT)), () =>
        Array.from({ length: CONNECTIONS_PER_ROUND }, () => connectAndClose(to, listener)),
      );
      if (round >= 0) times.get(one.name)?.push(...measured);
    });
  }
  return times;
}

async function measureRates(rounds: number): Promise<ReadonlyMap<string, number[]>> {
  const rates = new Map<string, number[]>(CASES.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    // Each round starts with another.
    const first = round % CASES.length;
    for (const one of [...CASES.slice(first), ...CASES.slice(0, first)])
      rates.get(one.name)?.push(await measureThroughput(loadPath(one), THROUGHPUT_SECONDS));
  }
  return rates;
}

function loadPath(one: Case): PodPath {
  const pod = (index: number) => pathOf(podOf(one, index));
  const ends = { from: pod(CLIENT), to: pod(SERVER), address: addressOf(LOAD_NODE, SERVER) };
  return { name: one.name, ...ends, port: LOAD_PORT };
}

function hostOf({ name }: Case): string {
  return `vt-host-${name}`;
}

function podOf({ name }: Case, index: number): string {
  return `vt-pod-${name}-${index}`;
}

function pathOf(netns: string): string {
  return `/run/netns/${netns}`;
}

async function run(command: readonly string[]): Promise<void> {
  const { exitCode, stderr } = Bun.spawnSync([...command]);
  if (exitCode !== 0) throw new Error(`"${command.join(" ")}" failed: ${stderr}`);
}
