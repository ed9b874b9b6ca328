/**
 * Numbered datagrams from one namespace to another and back, a few milliseconds apart, while something else happens.
 * Late replies count as well: only a lost packet is lost.
 */
import { insideNetns } from "../support/namespace-sockets.ts";

export interface Traffic {
  /** Waits for the last replies, and says what was lost. */
  stop(): Promise<Delivery>;
}

export interface Delivery {
  readonly sent: number;
  readonly lost: number;
  /** The longest time without a datagram that came back. */
  readonly longestGapMilliseconds: number;
}

interface Ends {
  /** Paths of namespaces. */
  readonly from: string;
  readonly to: string;
  /** Of `to`. */
  readonly address: string;
}

const INTERVAL_MILLISECONDS = 5;
const GRACE_MILLISECONDS = 500;

export async function startTraffic({ from, to, address }: Ends): Promise<Traffic> {
  const [echo, sender, replies] = [await openEcho(to, address), new Map<number, number>(), new Set<number>()];
  const { port } = echo;
  const hostname = address.includes(":") ? "::" : "0.0.0.0";
  const socket = await insideNetns(from, () =>
    Bun.udpSocket({
      hostname,
      port: 0,
      socket: { data: (_socket, data) => void replies.add(data.readUInt32BE(0)), error: () => {} },
    }),
  );
  const send = () => {
    const number = sender.size;
    const datagram = Buffer.alloc(4);
    datagram.writeUInt32BE(number);
    sender.set(number, performance.now());
    try {
      socket.send(datagram, port, address);
    } catch {
      // No route: lost.
    }
  };
  send();
  const timer = setInterval(send, INTERVAL_MILLISECONDS);
  return {
    async stop() {
      clearInterval(timer);
      await Bun.sleep(GRACE_MILLISECONDS);
      socket.close();
      echo.close();
      return deliveryOf(sender, replies);
    },
  };
}

function openEcho(netns: string, hostname: string) {
  return insideNetns(netns, () =>
    Bun.udpSocket({
      hostname,
      port: 0,
      socket: {
        data(echo, data, port, address) {
          try {
            echo.send(data, port, address);
          } catch {
            // No route back.
          }
        },
        error: () => {},
      },
    }),
  );
}

/** `sent`: when each datagram was sent. */
function deliveryOf(sent: ReadonlyMap<number, number>, replies: ReadonlySet<number>): Delivery {
  const times = [...sent].filter(([number]) => replies.has(number)).map(([, time]) => time);
  const ends = [...sent.values()];
  const marks = [ends[0] ?? 0, ...times, ends.at(-1) ?? 0];
  const gaps = marks.slice(1).map((time, index) => time - (marks[index] ?? time));
  return { sent: sent.size, lost: sent.size - times.length, longestGapMilliseconds: Math.max(...gaps) };
}
