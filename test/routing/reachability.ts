/** Whether every place reaches every other: TCP and ICMP, both families, all pairs at once. */
import type { Host } from "../support/host.ts";
import { askTcpWithin, serveTcp } from "../support/namespace-sockets.ts";
import { pollUntil } from "../support/poll.ts";

/** A pod, or a node. */
export interface Place {
  /** `node-1/a`, or `node-1`. */
  readonly name: string;
  readonly host: Host;
  /** The path of its network namespace in the host, and seen by the test. */
  readonly inner: string;
  readonly netns: string;
  /** IPv4, IPv6. */
  readonly addresses: readonly [string, string];
}

export interface Pair {
  readonly from: Place;
  readonly to: Place;
}

const PORT = 80;
const PATIENCE_MILLISECONDS = 700;

export function servePlace({ netns, name }: Place): Disposable {
  return serveTcp(netns, name, PORT);
}

/** Every pod with every other one, and every node with every pod. */
export function pairsOf(pods: readonly Place[], nodes: readonly Place[] = []): readonly Pair[] {
  return [...pods, ...nodes].flatMap((from) => pods.filter((to) => to !== from).map((to) => ({ from, to })));
}

function isNode({ name }: Place): boolean {
  return !name.includes("/");
}

/** What does not arrive: `FROM -> TO tcp4`, `icmp6` …; empty if everything does. */
export async function unreachable(pairs: readonly Pair[]): Promise<readonly string[]> {
  const senders = Map.groupBy(pairs, ({ from }) => from);
  const missing = await Promise.all([
    ...pairs.flatMap((pair) => [missingTcp(pair, 0), missingTcp(pair, 1)]),
    ...Array.from(senders, ([from, own]) => missingEchoes(from, own)),
  ]);
  return missing.flat().toSorted();
}

/** Waits until all of them reach each other; returns the milliseconds that it took. */
export async function untilReachable(pairs: readonly Pair[], limitMilliseconds = 30_000): Promise<number> {
  const start = performance.now();
  let left = pairs;
  let missing: readonly string[] = [];
  const works = async () => {
    missing = await unreachable(left);
    // What works now is not asked again, except at the end.
    left = pairs.filter((pair) => missing.some((row) => row.startsWith(`${rowOf(pair)} `)));
    return missing.length === 0;
  };
  try {
    await pollUntil(works, "every place to be reachable", limitMilliseconds);
  } catch (error) {
    throw new Error(`Not reachable: ${missing.join(", ")}`, { cause: error });
  }
  return performance.now() - start;
}

function rowOf({ from, to }: Pair): string {
  return `${from.name} -> ${to.name}`;
}

async function missingTcp(pair: Pair, index: 0 | 1): Promise<readonly string[]> {
  const { from, to } = pair;
  const reply = await askTcpWithin(PATIENCE_MILLISECONDS, from.netns, to.addresses[index], PORT);
  // The receiver sees the pod's own address: nothing on the way translates it. A node may use the address of its tunnel.
  const isExpected = reply.startsWith(`${to.name} `) && (isNode(from) || reply.endsWith(` ${from.addresses[index]}`));
  return isExpected ? [] : [`${rowOf(pair)} tcp${index === 0 ? 4 : 6} ${reply}`];
}

/** One process of the sender for all of its pairs. */
async function missingEchoes({ host, inner }: Place, pairs: readonly Pair[]): Promise<readonly string[]> {
  const targets = pairs.flatMap(({ to }) => to.addresses);
  const seconds = PATIENCE_MILLISECONDS / 1000;
  const pings = targets.map(
    (target) => `{ ping -q -n -c 1 -W ${seconds} ${target} >/dev/null && echo "${target} "; } &`,
  );
  const { stdout } = await host.run(["nsenter", `--net=${inner}`, "sh", "-c", `${pings.join("\n")}\nwait`]);
  const arrived = new Set(stdout.split(/\s+/));
  return pairs.flatMap((pair) =>
    pair.to.addresses.flatMap((address, index) =>
      arrived.has(address) ? [] : [`${rowOf(pair)} icmp${index === 0 ? 4 : 6}`],
    ),
  );
}
