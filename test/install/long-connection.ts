/** A TCP connection between two pods over which numbers are sent until the test looks at them. */
import { expect } from "bun:test";
import type { Pods } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";

export interface LongConnection {
  /** Fails unless every number so far has arrived, in its order, and more still do. */
  expectWhole(): Promise<void>;
}

interface Ends {
  readonly from: string;
  readonly to: string;
  readonly address: string;
}

const PORT = 9000;
const RECEIVED = "/tmp/received";

/** Ten numbers a second. */
export async function startLongConnection(pods: Pods, { from, to, address }: Ends): Promise<LongConnection> {
  // At the end of its input it would tell the other end so, which would end.
  await pods.exec(to, "sh", "-c", `(sleep 3600 | nc -l -p ${PORT} > ${RECEIVED}) > /dev/null 2>&1 &`);
  const count = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done";
  const received = async () => (await pods.exec(to, "cat", RECEIVED)).trim().split("\n");
  const connects = async () => {
    await pods.exec(from, "sh", "-c", `(${count}) 2>/dev/null | nc ${address} ${PORT} >/dev/null 2>&1 &`);
    await Bun.sleep(500);
    return (await received()).length > 1;
  };
  await pollUntil(connects, `the connection from ${from} to ${to}`);
  return {
    async expectWhole() {
      const numbers = await received();
      // The last line may not be complete.
      const complete = numbers.slice(0, -1);
      expect(complete).toEqual(complete.map((_, index) => String(index + 1)));
      const goesOn = async () => (await received()).length > numbers.length + 3;
      await pollUntil(goesOn, `more numbers from ${from} in ${to}`);
    },
  };
}
