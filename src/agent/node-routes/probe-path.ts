/**
 * Probes the path through a tunnel to another node, and answers the probes of others.
 *
 * An agent answers at the address of its tunnel, with less than it was sent; what it reads has no meaning. So whoever reaches
 * it learns that an agent runs there, and nothing else.
 */
import { type Address, formatAddress, parseAddress, unmapAddress } from "../../ip/address.ts";
import { type ConnectionLimits, LimitedConnections } from "../../limited-connections.ts";
import { readChecksumOffload, setChecksumOffload } from "../../linux/checksum-offload.ts";
import { transfer } from "../../linux/counted-transfer.ts";
import { countPassing, isPassing, largestPassing, type Patience } from "../../linux/measure-path.ts";
import {
  type AskingSocket,
  type DatagramSocket,
  openAnsweringSocket,
  openDatagramSocket,
  openEchoSocket,
  SMALL_PACKET,
} from "../../linux/unchecked-datagrams.ts";
import { PROBE_PORT } from "../../model/probe-port.ts";
import { type ComparedTurn, isNothingArriving, judgeTcp, type PathResult } from "../../routing/tunnel-paths.ts";

type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>;

/** What the agent does with tunnels beside routing; a simulated node has no packets. */
export interface TunnelProbes {
  probe(path: ProbedPath, wait: Wait, signal: AbortSignal): Promise<PathResult>;
  /** Until the signal is aborted. Throws if the port is taken. */
  answer(answered: Answered, wait: Wait, signal: AbortSignal): Promise<void>;
  isOffloadOn(device: string): boolean;
  setOffload(device: string, state: "on" | "off"): void;
}

export interface Answered {
  /** Of the tunnel of this node. */
  readonly address: Address;
  /** Of the tunnel of another node. Pods reach the port too, and are not answered. */
  readonly isPeer: (address: Address) => boolean;
}

export interface ProbedPath {
  readonly node: string;
  /** Of its tunnel. */
  readonly address: Address;
  /** Of the node itself. */
  readonly remote: Address;
  /** Of the device. */
  readonly mtu: number;
}

const REPLY_MILLISECONDS = 1_000;
const ANSWER_MILLISECONDS = 100;
const TRIES = 3;
/** As large as segments that are left to the card are; a healthy network needs some milliseconds. */
const TCP_BYTES = 64 * 1024;
const TCP_MILLISECONDS = 3_000;
/** So many are compared, each with datagrams after it, if the first one had to send something again. */
const TURNS = 4;
/** About as many as TCP needs packets with an MTU of 1450; with a larger one these say more than those of TCP. */
const DATAGRAMS = 46;
const LIMITS: ConnectionLimits = { most: 64, requestMilliseconds: 10_000, replyMilliseconds: 2_000 };

export const ownTunnelProbes: TunnelProbes = {
  probe: probePath,
  answer,
  isOffloadOn: readChecksumOffload,
  setOffload: setChecksumOffload,
};

async function probePath(
  { node, address, remote, mtu }: ProbedPath,
  wait: Wait,
  signal: AbortSignal,
): Promise<PathResult> {
  using sockets = new DisposableStack();
  const opened = <Socket extends AskingSocket>(socket: Socket) => {
    sockets.defer(() => socket.close());
    return socket;
  };
  const patience = { tries: TRIES, replyMilliseconds: REPLY_MILLISECONDS, wait, signal };
  const datagrams = opened(openDatagramSocket(address, PROBE_PORT));
  const hasAgent = await isPassing(datagrams, SMALL_PACKET, patience);
  // An agent answers with a small one: what is lost is lost on the way to it. Without one, the kernel of the node does.
  const socket: AskingSocket = hasAgent ? datagrams : opened(openEchoSocket(address));
  if (!hasAgent && !(await isPassing(socket, SMALL_PACKET, patience))) {
    const isThere = await isPassing(opened(openEchoSocket(remote)), SMALL_PACKET, patience);
    return { node, small: "lost", large: "lost", tcp: "unknown", isThere };
  }
  const largest = await largestPassing(socket, { family: address.family, mtu }, patience);
  if (largest === undefined) return { node, small: "lost", large: "lost", tcp: "unknown" };
  if (largest < mtu) return { node, small: "passed", large: "lost", tcp: "unknown", workingMtu: largest };
  const result = hasAgent ? await compareWithTcp(datagrams, { address, mtu }, patience) : UNKNOWN;
  return { node, small: "passed", large: "passed", ...result };
}

type TcpResult = Pick<PathResult, "tcp" | "loss">;
const UNKNOWN: TcpResult = { tcp: "unknown" };

/** A connection that is refused has arrived, and an agent of another release may not listen. */
async function compareWithTcp(
  datagrams: DatagramSocket,
  { address, mtu }: Pick<ProbedPath, "address" | "mtu">,
  patience: Patience,
): Promise<TcpResult> {
  const place = { remote: address, port: PROBE_PORT, bytes: TCP_BYTES };
  const burst = { size: mtu, count: DATAGRAMS };
  const turns: ComparedTurn[] = [];
  while (turns.length < TURNS && !isNothingArriving(turns) && !patience.signal.aborted) {
    const sent = await transfer(place, { ...patience, replyMilliseconds: TCP_MILLISECONDS });
    if (sent === "refused") return UNKNOWN;
    if (turns.length === 0 && sent.arrived === "all" && sent.repeated === 0) return { tcp: "passed" };
    const passed = await countPassing(datagrams, burst, patience);
    turns.push({ ...sent, datagrams: burst.count, lostDatagrams: burst.count - passed });
  }
  return judgeTcp(turns);
}

async function answer({ address, isPeer }: Answered, wait: Wait, signal: AbortSignal): Promise<void> {
  const datagrams = openAnsweringSocket(address, PROBE_PORT, isPeer);
  try {
    const listener = listen(address, isPeer);
    try {
      while (!signal.aborted) {
        datagrams.answer();
        await wait(ANSWER_MILLISECONDS, signal);
      }
    } finally {
      listener.stop(true);
    }
  } finally {
    datagrams.close();
  }
}

/** Responds with one byte to as many as a probe sends, and closes. */
function listen(address: Address, isPeer: Answered["isPeer"]) {
  type Connection = Bun.Socket<{ bytes: number }>;
  const connections = new LimitedConnections<Connection>(LIMITS, (connection) => connection.terminate());
  return Bun.listen<{ bytes: number }>({
    hostname: formatAddress(address),
    port: PROBE_PORT,
    exclusive: true,
    socket: {
      open(connection) {
        connection.data = { bytes: 0 };
        const remote = parseAddress(connection.remoteAddress);
        const isWanted = remote !== undefined && isPeer(unmapAddress(remote));
        if (!isWanted || !connections.admit(connection, connection.remoteAddress)) connection.terminate();
      },
      data(connection, bytes) {
        connection.data.bytes += bytes.length;
        if (connection.data.bytes < TCP_BYTES) return;
        connections.reply(connection);
        connection.end(Uint8Array.of(1));
      },
      close: (connection) => connections.left(connection),
      error: (connection) => connection.terminate(),
    },
  });
}
