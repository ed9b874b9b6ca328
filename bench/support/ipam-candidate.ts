/** IPAM plugins as candidates: ADD or DEL is timed, the other command runs before or after, not timed. No namespace is needed. */
import { runCommand } from "./command-candidate.ts";
import type { Command } from "./command-line.ts";
import type { Candidate, Turn } from "./comparison.ts";
import type { Served } from "./node-agent.ts";
import { type PeakMemory, peakMemoryOfOne } from "./peak-memory.ts";
import { runConcurrently } from "./run-concurrently.ts";

export interface MeasuredIpam extends Served {
  readonly name: string;
  readonly program: string;
  /** The network config for its stdin. */
  readonly config: string;
}

/** Concurrency of calls that are not timed: faster than one after another, without loading the host. */
const UNTIMED_AT_ONCE = 4;

export function ipamAddCandidate(ipam: MeasuredIpam, concurrency = 1): Candidate {
  return {
    name: ipam.name,
    meter: ipam.agent?.meter,
    run: (turn, place) => runCommand(ipamCall(ipam, "ADD", turn, place)),
    after: (turn) =>
      runConcurrently(concurrency, UNTIMED_AT_ONCE, (place) => runCommand(ipamCall(ipam, "DEL", turn, place))),
    peakMemory: () => peakMemoryOf(ipam, "ADD"),
  };
}

export function ipamDelCandidate(ipam: MeasuredIpam, concurrency = 1): Candidate {
  return {
    name: ipam.name,
    meter: ipam.agent?.meter,
    before: (turn) =>
      runConcurrently(concurrency, UNTIMED_AT_ONCE, (place) => runCommand(ipamCall(ipam, "ADD", turn, place))),
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

/** Of one separate call: no round uses this number. */
async function peakMemoryOf(ipam: MeasuredIpam, wanted: "ADD" | "DEL"): Promise<PeakMemory | undefined> {
  const turn = { round: 1_000_000 };
  const peaks: Record<string, PeakMemory | undefined> = {};
  for (const command of ["ADD", "DEL"] as const) {
    peaks[command] = await peakMemoryOfOne(ipamCall(ipam, command, turn, 0));
  }
  return peaks[wanted];
}
