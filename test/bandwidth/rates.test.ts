/**
 * The rates themselves: iperf3 sends through a shaped container, and the kernel
 * counts what its token bucket lets pass, in bytes on the wire. `make test` runs the
 * low rates briefly, all at once; `make soak` up to 1 Gbit, longer and one by one.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { canMakeNetns, NetnsArea } from "../support/netns.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { ShapedPod } from "./shaped-pod.ts";

const area = new NetnsArea("bwrate");
const able = canMakeNetns && Bun.which("tc") !== null && Bun.which("iperf3") !== null;
const why = able ? "" : " (skipped: needs root, ip, tc, nsenter and iperf3)";
const {
  seconds: SECONDS,
  rates: RATES,
  order,
} = proofSize({
  everyDay: { seconds: 4, rates: [1e6, 1e7, 1e8], order: test.concurrent },
  soak: { seconds: 10, rates: [1e6, 1e7, 1e8, 1e9], order: test },
});
/** Of the 1514 bytes of a frame 1448 are iperf3's payload. */
const PAYLOAD_SHARE = 1448 / 1514;
const CONTAINERD_BURST = 4_294_967_295;
/** Other load on the machine can make a sender too slow, never too fast. */
const ATTEMPTS = 4;

/** As fractions of the rate: 1 is exact. */
interface Measured {
  readonly firstSecond: number;
  readonly after: number;
  /** What iperf3's receiver got, converted to bytes on the wire. */
  readonly received: number;
}

describe.skipIf(!able)(`a container shaped with containerd's burst${why}`, () => {
  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());

  const cases = RATES.flatMap((rate) => (["ingress", "egress"] as const).map((direction) => ({ rate, direction })));
  order.each(cases)(
    "limits its $direction to $rate bits per second from the first second on",
    async ({ rate, direction }) => {
      const bandwidth = { [`${direction}Rate`]: rate, [`${direction}Burst`]: CONTAINERD_BURST };
      const pod = new ShapedPod(area);
      await pod.must("ADD", { config: { runtimeConfig: { bandwidth } } });

      for (let attempt = 1; ; attempt++) {
        const { firstSecond, after, received } = await measure(pod, direction, rate);
        expect(firstSecond).toBeLessThan(2);
        expect(after).toBeLessThan(1.05);
        expect(received).toBeLessThan(1.1);
        if (after > 0.95 && received > 0.9) break;
        expect(attempt).toBeLessThan(ATTEMPTS);
      }
    },
    120_000,
  );
});

async function measure(pod: ShapedPod, direction: "ingress" | "egress", rate: number): Promise<Measured> {
  const [bucket] = pod.buckets();
  const enter = (path: string) => ["nsenter", `--net=${path}`, "--"];
  const server = Bun.spawn([...enter(pod.pod.path), "iperf3", "-s", "-1"], { stdout: "ignore", stderr: "ignore" });
  try {
    await pollUntil(() => isListening(pod), "iperf3's server");
    const asked = ["-c", "10.200.0.2", "-t", String(SECONDS), "-J", ...(direction === "egress" ? ["-R"] : [])];
    const client = Bun.spawn([...enter(pod.host.path), "iperf3", ...asked], { stdout: "pipe" });
    const samples = sampleWhile(client, pod, bucket?.link ?? "");
    const { end } = JSON.parse(await new Response(client.stdout).text());
    return {
      ...sharesOf(await samples, rate / 8),
      received: end.sum_received.bits_per_second / PAYLOAD_SHARE / rate,
    };
  } finally {
    server.kill();
    await server.exited;
  }
}

/** How many bytes had passed the bucket at some moment between two times, in seconds; on a busy machine they are far apart. */
interface Sample {
  readonly earliest: number;
  readonly latest: number;
  readonly bytes: number;
}

async function sampleWhile(running: Bun.Subprocess, pod: ShapedPod, link: string): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  while (running.exitCode === null) {
    const earliest = performance.now() / 1000;
    const tc = Bun.spawn(["nsenter", `--net=${pod.host.path}`, "--", "tc", "-s", "-j", "qdisc", "show", "dev", link]);
    const qdiscs: readonly { kind: string; bytes: number }[] = JSON.parse(await new Response(tc.stdout).text());
    const bytes = qdiscs.find(({ kind }) => kind === "tbf")?.bytes ?? 0;
    samples.push({ earliest, latest: performance.now() / 1000, bytes });
    await Promise.race([running.exited, Bun.sleep(100)]);
  }
  return samples;
}

/** Time starts with the last sample before the data: the control traffic before it is small. No share is overestimated. */
function sharesOf(samples: readonly Sample[], bytesPerSecond: number): Omit<Measured, "received"> {
  const talk = (samples[0]?.bytes ?? 0) + 5000;
  const start = samples.findLast(({ bytes }) => bytes < talk);
  const at = (seconds: number) => samples.find(({ earliest }) => earliest >= (start?.earliest ?? 0) + seconds);
  const share = (from: Sample | undefined, to: Sample | undefined) =>
    from === undefined || to === undefined ? 0 : (to.bytes - from.bytes) / (to.latest - from.earliest) / bytesPerSecond;
  return { firstSecond: share(start, at(1)), after: share(at(1), at(SECONDS - 0.3)) };
}

function isListening(pod: ShapedPod): boolean {
  const listening = Bun.spawnSync(["nsenter", `--net=${pod.pod.path}`, "--", "ss", "-Hltn", "sport = :5201"]);
  return listening.stdout.length > 0;
}
