/** A DNS server in a network namespace: every name has the addresses 198.18.0.1 and 2001:db8::1. */
import { insideNetns } from "./namespace-sockets.ts";

const [TYPE_A, TYPE_AAAA] = [1, 28];
const ADDRESSES: ReadonlyMap<number, Buffer> = new Map([
  [TYPE_A, Buffer.from([198, 18, 0, 1])],
  [TYPE_AAAA, Buffer.from("20010db8000000000000000000000001", "hex")],
]);
const HEADER_BYTES = 12;

export async function serveDns(netns: string, hostname: string): Promise<Disposable> {
  const server = await insideNetns(netns, () =>
    Bun.udpSocket({
      hostname,
      port: 53,
      socket: { data: (socket, query, port, address) => void socket.send(answerTo(query), port, address) },
    }),
  );
  return { [Symbol.dispose]: () => server.close() };
}

function answerTo(query: Buffer): Buffer {
  // The name, its type and its class; what follows is optional.
  const end = query.indexOf(0, HEADER_BYTES) + 5;
  const question = query.subarray(HEADER_BYTES, end);
  const type = question.readUInt16BE(question.length - 4);
  const address = ADDRESSES.get(type);
  const header = Buffer.from(query.subarray(0, HEADER_BYTES));
  header.writeUInt16BE(0x8180, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(address === undefined ? 0 : 1, 6);
  header.writeUInt32BE(0, 8);
  return Buffer.concat([header, question, ...(address === undefined ? [] : [recordOf(type, address)])]);
}

/** For the name of the question, for a minute. */
function recordOf(type: number, address: Buffer): Buffer {
  const head = Buffer.from([0xc0, HEADER_BYTES, 0, type, 0, 1, 0, 0, 0, 60, 0, address.length]);
  return Buffer.concat([head, address]);
}
