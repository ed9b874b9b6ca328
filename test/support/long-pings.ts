/** Pings from a pod that go on until they are stopped, while something else happens. */
import type { Pods } from "./pods-in-namespace.ts";
import { pollUntil } from "./poll.ts";

export interface LongPings {
  readonly from: string;
  readonly address: string;
  /** Waits until it has sent so many more: what happened before is covered. */
  more(count: number): Promise<void>;
  /** Stops them. Numbers of those that have no reply; the last one may still be on its way, and does not count. */
  stop(): Promise<{ readonly sent: number; readonly lost: readonly number[] }>;
}

const INTERVAL_SECONDS = 0.01;

/** 10 ms apart. */
export async function startLongPings(pods: Pods, from: string, address: string): Promise<LongPings> {
  const program = address.includes(":") ? "ping6" : "ping";
  const file = `/tmp/${program}-${address.replaceAll(/[:.]/g, "-")}`;
  const command = `${program} -i ${INTERVAL_SECONDS} ${address} > ${file} 2>&1 & echo $!`;
  const process = (await pods.exec(from, "sh", "-c", command)).trim();
  const started = performance.now();
  const sentSoFar = () => (performance.now() - started) / 1_000 / INTERVAL_SECONDS;
  return {
    from,
    address,
    async more(count) {
      const wanted = sentSoFar() + count;
      await pollUntil(() => sentSoFar() >= wanted, `${count} more pings`, 60_000);
    },
    async stop() {
      await pods.exec(from, "sh", "-c", `kill -INT ${process}`);
      let text = "";
      const hasEnded = async () => {
        text = await pods.exec(from, "cat", file);
        return text.includes("packets transmitted");
      };
      await pollUntil(hasEnded, "the summary of the pings");
      const sent = Number(/(\d+) packets transmitted/.exec(text)?.[1]);
      const replied = new Set([...text.matchAll(/seq=(\d+)/g)].map(([, number]) => Number(number)));
      const numbers = Array.from({ length: Math.max(sent - 1, 0) }, (_, number) => number);
      return { sent, lost: numbers.filter((number) => !replied.has(number)) };
    },
  };
}
