/** IPAM plugins as contenders: ADD or DEL timed, the other one done untimed around it. No namespace is needed. */
import { runCommand } from "./command.ts";
import type { Command } from "./command-line.ts";
import type { Contender, Turn } from "./contest.ts";
import type { Served } from "./node-agent.ts";
import { type PeakMemory, peakMemoryOfOne } from "./peak-memory.ts";
import { someAtOnce } from "./some-at-once.ts";

export interface MeasuredIpam extends Served {
  readonly name: string;
  readonly program: string;
  /** The network config for its stdin. */
  readonly config: string;
}

/** What is done untimed: quicker than one after another, and hurries nobody. */
const UNTIMED_AT_ONCE = 4;

export function ipamAddContender(ipam: MeasuredIpam, concurrency = 1): Contender {
  return {
    name: ipam.name,
    meter: ipam.agent?.meter,
    run: (turn, place) => runCommand(ipamCall(ipam, "ADD", turn, place)),
    after: (turn) =>
      someAtOnce(concurrency, UNTIMED_AT_ONCE, (place) => runCommand(ipamCall(ipam, "DEL", turn, place))),
    peakMemory: () => peakMemoryOf(ipam, "ADD"),
  };
}

export function ipamDelContender(ipam: MeasuredIpam, concurrency = 1): Contender {
  return {
    name: ipam.name,
    meter: ipam.agent?.meter,
    before: (turn) =>
      someAtOnce(concurrency, UNTIMED_AT_ONCE, (place) => runCommand(ipamCall(ipam, "ADD", turn, place))),
    run: (turn, place) => runCommand(ipamCall(ipam, "DEL", turn, place)),
    peakMemory: () => peakMemoryOf(ipam, "DEL"),
  };
}

export function ipamCall(ipam: MeasuredIpam, command: "ADD" | "DEL", { round }: Turn, place: number): Command {
  return {
    command: [ipam.program],
    stdin: ipam.config,
    environment: {
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
      CNI_COMMAND: command,
      CNI_CONTAINERID: new Bun.CryptoHasher("sha256").update(`${round}/${place}`).digest("hex"),
      CNI_NETNS: "/run/netns/vt-bench",
      CNI_IFNAME: "eth0",
      CNI_PATH: "/opt/cni/bin",
      ...ipam.agent?.environment,
    },
  };
}

/** Of one call that stands apart: no round uses this number. */
async function peakMemoryOf(ipam: MeasuredIpam, wanted: "ADD" | "DEL"): Promise<PeakMemory | undefined> {
  const turn = { round: 1_000_000 };
  const peaks: Record<string, PeakMemory | undefined> = {};
  for (const command of ["ADD", "DEL"] as const) {
    peaks[command] = await peakMemoryOfOne(ipamCall(ipam, command, turn, 0));
  }
  return peaks[wanted];
}
