/** Datagrams of the largest size, and a long TCP transfer, between two pods: nothing on the way is too small for what they send. */
import { expect } from "bun:test";
import { insideNetns } from "../support/namespace-sockets.ts";
import { pollUntil } from "../support/poll.ts";
import type { Pair } from "./reachability.ts";
import type { RoutedNetwork } from "./routed-network.ts";

const PORT = 7008;
/** What fits into a packet of 65,535 bytes: IPv4 counts its header, IPv6 does not. */
const LARGEST_DATAGRAM = [65_507, 65_527] as const;
const PATIENCE_MILLISECONDS = 3_000;
const CHUNK = crypto.getRandomValues(new Uint8Array(65_536));

const TRANSFERRED_BYTES = 50_000_000;

export async function expectLargePackets(network: RoutedNetwork, pair: Pair): Promise<void> {
  for (const family of [0, 1] as const) {
    await pollUntil(() => largestDatagramReturns(pair, family), "a datagram of 64 KB to come back", 10_000);
    const { fragments, tooBig } = await network.seenDuring(async () => {
      expect(await transfer(pair, family, TRANSFERRED_BYTES)).toBe(TRANSFERRED_BYTES);
    });
    expect({ fragments, tooBig }).toEqual({ fragments: 0, tooBig: 0 });
  }
}

/** Whether a datagram of the largest size arrives unchanged and comes back unchanged. */
async function largestDatagramReturns({ from, to }: Pair, index: 0 | 1): Promise<boolean> {
  const address = to.addresses[index];
  const content = Buffer.from(CHUNK.subarray(0, LARGEST_DATAGRAM[index]));
  const heard = Promise.withResolvers<boolean>();
  const echo = await insideNetns(to.netns, () =>
    Bun.udpSocket({
      hostname: address,
      port: PORT,
      socket: { data: (socket, data, port, sender) => void socket.send(data, port, sender) },
    }),
  );
  const client = await insideNetns(from.netns, () =>
    Bun.udpSocket({
      hostname: from.addresses[index],
      port: 0,
      socket: { data: (_socket, data) => heard.resolve(data.equals(content)) },
    }),
  );
  client.send(content, PORT, address);
  const silence = setTimeout(() => heard.resolve(false), PATIENCE_MILLISECONDS);
  const isSame = await heard.promise;
  clearTimeout(silence);
  client.close();
  echo.close();
  return isSame;
}

/** Sends so many bytes over one connection; returns how many arrived unchanged. */
async function transfer({ from, to }: Pair, index: 0 | 1, bytes: number): Promise<number> {
  const address = to.addresses[index];
  const done = Promise.withResolvers<number>();
  let arrived = 0;
  let isSame = true;
  const server = insideNetns(to.netns, () =>
    Bun.listen({
      hostname: address,
      port: PORT,
      socket: {
        data(_socket, data) {
          isSame &&= isExpected(data, arrived % CHUNK.length);
          arrived += data.length;
          if (arrived >= bytes) done.resolve(isSame ? arrived : 0);
        },
        close: () => done.resolve(isSame ? arrived : 0),
        error: (_socket, error) => done.reject(error),
      },
    }),
  );
  let sent = 0;
  const pump = (socket: { write(data: Uint8Array): number }) => {
    while (sent < bytes) {
      const start = sent % CHUNK.length;
      const written = socket.write(CHUNK.subarray(start, Math.min(CHUNK.length, start + bytes - sent)));
      if (written <= 0) return;
      sent += written;
    }
  };
  const client = await insideNetns(from.netns, () =>
    Bun.connect({
      hostname: address,
      port: PORT,
      socket: { open: pump, drain: pump, data: () => {}, error: () => {} },
    }),
  );
  try {
    return await done.promise;
  } finally {
    client.terminate();
    server.stop(true);
  }
}

function isExpected(data: Buffer, start: number): boolean {
  for (let offset = 0; offset < data.length; ) {
    const place = (start + offset) % CHUNK.length;
    const length = Math.min(data.length - offset, CHUNK.length - place);
    if (!data.subarray(offset, offset + length).equals(CHUNK.subarray(place, place + length))) return false;
    offset += length;
  }
  return true;
}
