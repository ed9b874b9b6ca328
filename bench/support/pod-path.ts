/** Measures the way between two pods of different nodes: a round trip, and the throughput of a TCP connection. */
import { addressBytes, parseAddress } from "../../src/ip/address.ts";
import * as libc from "../../src/linux/libc.ts";
import { insideNetns } from "../../test/support/namespace-sockets.ts";

/** Between two network namespaces, given by their paths. */
export interface PodPath {
  readonly name: string;
  readonly from: string;
  readonly to: string;
  /** The IPv4 address of `to`. */
  readonly address: string;
  /** Of TCP, if policy does not let every port through. */
  readonly port?: number;
}

const PORT = 7100;
const [AF_INET, SOCK_DGRAM] = [2, 2];
const SOL_SOCKET = 1;
const SO_RCVTIMEO = 20;
const RECEIVE_LIMIT = BigInt64Array.of(5n, 0n);

/**
 * The times of so many round trips of a small datagram, in microseconds. Both ends are sockets of this thread: the kernel
 * carries the packet to the other one within `sendto`, and no process has to be woken.
 */
export function timeRoundTrips({ from, to, address }: PodPath, count: number): readonly number[] {
  const server = datagramSocket(to);
  const client = datagramSocket(from);
  try {
    bindTo(server, PORT);
    bindTo(client, PORT);
    connectTo(client, address);
    connectTo(server, addressIn(from));
    return Array.from({ length: count }, () => {
      const start = Bun.nanoseconds();
      pass(client, server);
      pass(server, client);
      return (Bun.nanoseconds() - start) / 1000;
    });
  } finally {
    libc.close(client);
    libc.close(server);
  }
}

/** Gigabits per second. */
export async function measureThroughput(path: PodPath, seconds: number): Promise<number> {
  const { from, to, address, port = PORT } = path;
  const inside = (netns: string) => ["nsenter", `--net=${netns}`, "--", "iperf3", "-p", String(port)];
  const server = Bun.spawn([...inside(to), "-s", "-1"], { stdout: "ignore", stderr: "ignore" });
  try {
    for (let attempt = 0; attempt < 100; attempt++) {
      const { stdout } = Bun.spawnSync([...inside(from), "-J", "-t", String(seconds), "-c", address]);
      const received = JSON.parse(stdout.toString()).end?.sum_received;
      if (received !== undefined) return received.bits_per_second / 1e9;
      // The server does not listen yet.
      await Bun.sleep(50);
    }
    throw new Error("Cannot measure the throughput: no connection");
  } finally {
    server.kill();
    await server.exited;
  }
}

function datagramSocket(netns: string): number {
  const socket = insideNetns(netns, () => libc.socket(AF_INET, SOCK_DGRAM, 0));
  check("socket", socket);
  check("setsockopt", libc.setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, RECEIVE_LIMIT, RECEIVE_LIMIT.byteLength));
  return socket;
}

const buffer = new Uint8Array(64);

function pass(from: number, to: number): void {
  check("sendto", libc.sendto(from, buffer, buffer.length, 0));
  check("recv", libc.recv(to, buffer, buffer.length, 0));
}

function bindTo(socket: number, port: number): void {
  const name = socketAddress("0.0.0.0", port);
  check("bind", libc.bind(socket, name, name.length));
}

function connectTo(socket: number, address: string): void {
  const name = socketAddress(address, PORT);
  check("connect", libc.connect(socket, name, name.length));
}

/** The address of the pod's interface. */
function addressIn(netns: string): string {
  const { stdout } = Bun.spawnSync(["nsenter", `--net=${netns}`, "--", "ip", "-j", "-4", "address", "show", "eth0"]);
  return JSON.parse(stdout.toString())[0].addr_info[0].local;
}

function socketAddress(text: string, port: number): Uint8Array {
  const address = parseAddress(text);
  if (address === undefined) throw new Error(`"${text}" is not an address`);
  return Uint8Array.of(AF_INET, 0, port >> 8, port & 255, ...addressBytes(address), ...new Uint8Array(8));
}

function check(call: string, code: number): void {
  if (code < 0) throw new Error(`${call} failed: error number ${libc.lastErrno()}`);
}
