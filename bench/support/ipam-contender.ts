/** IPAM plugins as contenders: ADD or DEL timed, the other one done untimed around it. No namespace is needed. */
import { type Command, peakMemoryOfOne, runCommand } from "./command.ts";
import type { Contender, Turn } from "./contest.ts";

export interface MeasuredIpam {
  readonly name: string;
  readonly program: string;
  /** The network config for its stdin. */
  readonly config: string;
}

export function ipamAddContender(ipam: MeasuredIpam, concurrency = 1): Contender {
  return {
    name: ipam.name,
    run: (turn, place) => runCommand(ipamCall(ipam, "ADD", turn, place)),
    after: (turn) => inOrder(concurrency, (place) => runCommand(ipamCall(ipam, "DEL", turn, place))),
    peakMemoryBytes: () => peakMemoryOf(ipam, "ADD"),
  };
}

export function ipamDelContender(ipam: MeasuredIpam, concurrency = 1): Contender {
  return {
    name: ipam.name,
    before: (turn) => inOrder(concurrency, (place) => runCommand(ipamCall(ipam, "ADD", turn, place))),
    run: (turn, place) => runCommand(ipamCall(ipam, "DEL", turn, place)),
    peakMemoryBytes: () => peakMemoryOf(ipam, "DEL"),
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
    },
  };
}

/** Of one call that stands apart: no round uses this number. */
async function peakMemoryOf(ipam: MeasuredIpam, wanted: "ADD" | "DEL"): Promise<number | undefined> {
  const turn = { round: 1_000_000 };
  const peaks: Record<string, number | undefined> = {};
  for (const command of ["ADD", "DEL"] as const) {
    peaks[command] = await peakMemoryOfOne(ipamCall(ipam, command, turn, 0));
  }
  return peaks[wanted];
}

async function inOrder(count: number, effect: (place: number) => Promise<unknown>): Promise<void> {
  for (let place = 0; place < count; place++) await effect(place);
}
