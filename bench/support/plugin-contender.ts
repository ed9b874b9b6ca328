/**
 * CNI plugins as contenders: ADD or DEL timed, the other one done untimed around
 * it. All use the same namespaces in turn, for each turn leaves them empty.
 */
import { runCommand } from "./command.ts";
import type { Command } from "./command-line.ts";
import type { Contender, Turn } from "./contest.ts";
import type { Served } from "./node-agent.ts";
import { peakMemoryOfOne } from "./peak-memory.ts";
import { someAtOnce } from "./some-at-once.ts";

export interface MeasuredPlugin extends Served {
  readonly name: string;
  readonly program: string;
  /** The network config for its stdin. */
  readonly config: string;
  /** CNI_PATH. */
  readonly path: string;
}

const INTERFACE = "eth0";
/** What is done untimed: quicker than one after another, and hurries nobody. */
const UNTIMED_AT_ONCE = 4;

/** As many namespaces as attachments are made at once; they vanish with the private host. */
export async function makePods(count: number): Promise<void> {
  for (let place = 0; place < count; place++) {
    const made = Bun.spawnSync(["ip", "netns", "add", podName(place)]);
    if (made.exitCode !== 0) throw new Error(`Cannot make a pod: ${made.stderr}`);
  }
}

export function addContender(plugin: MeasuredPlugin, concurrency = 1): Contender {
  return {
    name: plugin.name,
    meter: plugin.agent?.meter,
    run: (turn, place) => runCommand(callOf(plugin, "ADD", turn, place)),
    after: (turn) =>
      someAtOnce(concurrency, UNTIMED_AT_ONCE, (place) => runCommand(callOf(plugin, "DEL", turn, place))),
    async peakMemory() {
      const turn = { round: 0 };
      const peak = await peakMemoryOfOne(callOf(plugin, "ADD", turn, 0));
      await runCommand(callOf(plugin, "DEL", turn, 0));
      return peak;
    },
  };
}

export function delContender(plugin: MeasuredPlugin, concurrency = 1): Contender {
  return {
    name: plugin.name,
    meter: plugin.agent?.meter,
    before: (turn) =>
      someAtOnce(concurrency, UNTIMED_AT_ONCE, (place) => runCommand(callOf(plugin, "ADD", turn, place))),
    run: (turn, place) => runCommand(callOf(plugin, "DEL", turn, place)),
  };
}

export function callOf(plugin: MeasuredPlugin, command: "ADD" | "DEL", { round }: Turn, place: number): Command {
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
      ...plugin.agent?.environment,
    },
  };
}

/** 64 hexadecimal digits that differ from the first on, as runtimes give them: peers name links by the beginning. */
function containerId(round: number, place: number): string {
  return new Bun.CryptoHasher("sha256").update(`${round}/${place}`).digest("hex");
}

export function podName(place: number): string {
  return `vt-bench-${place}`;
}
