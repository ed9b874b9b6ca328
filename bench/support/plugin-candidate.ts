/**
 * CNI plugins as candidates: ADD or DEL is timed, the other command runs before
 * or after, not timed. All use the same namespaces in turn, since each turn
 * leaves them empty.
 */
import { runCommand } from "./command-candidate.ts";
import type { Command } from "./command-line.ts";
import type { Candidate, Turn } from "./comparison.ts";
import type { Served } from "./node-agent.ts";
import { peakMemoryOfOne } from "./peak-memory.ts";
import { runConcurrently } from "./run-concurrently.ts";

export interface MeasuredPlugin extends Served {
  readonly name: string;
  readonly program: string;
  /** The network config for its stdin. */
  readonly config: string;
  /** CNI_PATH. */
  readonly path: string;
  /** CNI_ARGS of each concurrent attachment, in their order. */
  readonly cniArguments?: readonly string[];
}

const INTERFACE = "eth0";
/** Concurrency of calls that are not timed: faster than one after another, without loading the host. */
const UNTIMED_AT_ONCE = 4;

/** Creates one namespace per concurrent attachment; they are removed with the private host. */
export async function makePods(count: number): Promise<void> {
  for (let place = 0; place < count; place++) {
    const made = Bun.spawnSync(["ip", "netns", "add", podName(place)]);
    if (made.exitCode !== 0) throw new Error(`Cannot create a pod: ${made.stderr}`);
  }
}

export function addCandidate(plugin: MeasuredPlugin, concurrency = 1): Candidate {
  return {
    name: plugin.name,
    meter: plugin.agent?.meter,
    run: (turn, place) => runCommand(callOf(plugin, "ADD", turn, place)),
    after: (turn) =>
      runConcurrently(concurrency, UNTIMED_AT_ONCE, (place) => runCommand(callOf(plugin, "DEL", turn, place))),
    async peakMemory() {
      const turn = { round: 0 };
      const peak = await peakMemoryOfOne(callOf(plugin, "ADD", turn, 0));
      await runCommand(callOf(plugin, "DEL", turn, 0));
      return peak;
    },
  };
}

export function delCandidate(plugin: MeasuredPlugin, concurrency = 1): Candidate {
  return {
    name: plugin.name,
    meter: plugin.agent?.meter,
    before: (turn) =>
      runConcurrently(concurrency, UNTIMED_AT_ONCE, (place) => runCommand(callOf(plugin, "ADD", turn, place))),
    run: (turn, place) => runCommand(callOf(plugin, "DEL", turn, place)),
  };
}

export function callOf(plugin: MeasuredPlugin, command: "ADD" | "DEL", { round }: Turn, place: number): Command {
  const cniArguments = plugin.cniArguments?.[place];
  return {
    command: [plugin.program],
    stdin: plugin.config,
    environment: {
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
      CNI_COMMAND: command,
      CNI_CONTAINERID: containerId(round, place),
      CNI_NETNS: `/run/netns/${podName(place)}`,
      CNI_IFNAME: INTERFACE,
      CNI_PATH: plugin.path,
      ...(cniArguments === undefined ? {} : { CNI_ARGS: cniArguments }),
      ...plugin.agent?.environment,
    },
  };
}

/** 64 hexadecimal digits that differ from the first digit on, like those of runtimes: peers derive link names from the first digits. */
function containerId(round: number, place: number): string {
  return new Bun.CryptoHasher("sha256").update(`${round}/${place}`).digest("hex");
}

export function podName(place: number): string {
  return `vt-bench-${place}`;
}
