/**
 * The rates themselves, by iperf3 through a shaped container: a short run of the
 * small ones in `make test`, all at once; up to 1 Gbit, longer and one by one in `make soak`.
 *
 * Goodput is told as the rate on the wire: 1448 of the 1514 bytes of a frame are payload.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { canMakeNetns, NetnsArea } from "../support/netns.ts";
import { pollUntil } from "../support/poll.ts";
import { ShapedPod } from "./shaped-pod.ts";

const area = new NetnsArea("bwrate");
const able = canMakeNetns && Bun.which("tc") !== null && Bun.which("iperf3") !== null;
const why = able ? "" : " (skipped: needs root, ip, tc, nsenter and iperf3)";
const isSoak = proofSize() === "soak";

const SECONDS = isSoak ? 10 : 4;
const RATES = isSoak ? [1e6, 1e7, 1e8, 1e9] : [1e6, 1e7, 1e8];
const WIRE_SHARE = 1514 / 1448;
const CONTAINERD_BURST = 4_294_967_295;
/** What a bucket holds may also pass late, when the sender was slow at first. */
const BURST_SECONDS = 0.1;
/** A machine that is busy elsewhere can make a sender too slow, never too fast. */
const ATTEMPTS = 4;

interface Measured {
  /** Of the wire rate asked for: 1 is exact. */
  readonly firstSecond: number;
  readonly after: number;
}

describe.skipIf(!able)(`a container shaped with containerd's burst${why}`, () => {
  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());

  const cases = RATES.flatMap((rate) => (["ingress", "egress"] as const).map((direction) => ({ rate, direction })));
  (isSoak ? test : test.concurrent).each(cases)(
      "holds its $direction to $rate bits per second from the first second on",
      async ({ rate, direction }) => {
        const bandwidth = { [`${direction}Rate`]: rate, [`${direction}Burst`]: CONTAINERD_BURST };
        const pod = new ShapedPod(area);
        await pod.must("ADD", { config: { runtimeConfig: { bandwidth } } });

        for (let attempt = 1; ; attempt++) {
          const { firstSecond, after } = await measure(pod, direction, rate);
          expect(firstSecond).toBeLessThan(2);
          expect(after).toBeLessThan(1.05 + BURST_SECONDS / (SECONDS - 1));
          if (after > 0.95) break;
          expect(attempt).toBeLessThan(ATTEMPTS);
        }
      },
      120_000,
    );
});

async function measure(pod: ShapedPod, direction: "ingress" | "egress", rate: number): Promise<Measured> {
  const enter = (path: string) => ["nsenter", `--net=${path}`, "--"];
  const server = Bun.spawn([...enter(pod.pod.path), "iperf3", "-s", "-1", "-J", "-i", "0.5"], { stdout: "pipe" });
  try {
    await pollUntil(() => isListening(pod), "iperf3's server");
    // Small writes: at 1 Mbit one of the usual 128 KiB takes a second.
    const asked = ["-c", "10.200.0.2", "-t", String(SECONDS), "-l", "8K", "-i", "0.5", "-J"];
    const reversed = direction === "egress" ? ["-R"] : [];
    const client = Bun.spawn([...enter(pod.host.path), "iperf3", ...asked, ...reversed], { stdout: "pipe" });
    const [ofClient, ofServer] = await Promise.all([
      new Response(client.stdout).json(),
      new Response(server.stdout).json(),
    ]);
    const { intervals } = direction === "egress" ? ofClient : ofServer;
    return { firstSecond: shareOf(intervals, rate, 0, 1), after: shareOf(intervals, rate, 1, SECONDS) };
  } finally {
    server.kill();
    await server.exited;
  }
}

interface Interval {
  readonly sum: { readonly start: number; readonly end: number; readonly seconds: number; readonly bytes: number };
}

/** Told by the receiver, between two moments. */
function shareOf(intervals: readonly Interval[], rate: number, from: number, to: number): number {
  const within = intervals.map(({ sum }) => sum).filter(({ start, end }) => start >= from - 0.1 && end <= to + 0.1);
  const total = (field: "bytes" | "seconds") => within.reduce((sum, each) => sum + each[field], 0);
  return (total("bytes") * 8 * WIRE_SHARE) / total("seconds") / rate;
}

function isListening(pod: ShapedPod): boolean {
  const listening = Bun.spawnSync(["nsenter", `--net=${pod.pod.path}`, "--", "ss", "-Hltn", "sport = :5201"]);
  return listening.stdout.length > 0;
}
