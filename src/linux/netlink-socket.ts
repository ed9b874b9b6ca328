/**
 * One netlink socket: sends, reads the kernel's answers, turns a refusal into an
 * error. Synchronous: the kernel works inside `sendto`, so an answer is there
 * when it returns, and one that is not was lost (EAGAIN): nobody waits for it.
 *
 * A socket belongs to the network namespace it was opened in, wherever the
 * thread goes afterwards (see netns.ts).
 */
import { loadOnce } from "../load-once.ts";
import { errnoOf } from "./errno.ts";
import { closeFile } from "./files.ts";
import { isKernelError, KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";
import { type Acknowledgement, readAcknowledgement } from "./netlink/acknowledgement.ts";
import { MessageCursor } from "./netlink/message-reader.ts";
import { MessageWriter } from "./netlink/message-writer.ts";
import { encodeRequests, type NetlinkRequest, writeRequest } from "./netlink/request.ts";
import { FLAG, MESSAGE } from "./netlink/wire.ts";

const PROTOCOL = { route: 0, netfilter: 12 } as const;

export type NetlinkProtocol = keyof typeof PROTOCOL;

const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0x80000;
const SOL_SOCKET = 1;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const SOL_NETLINK = 270;
const NETLINK_CAP_ACK = 10;
const NETLINK_EXT_ACK = 11;
const MSG_TRUNC = 0x20;
const MSG_DONTWAIT = 0x40;
const DUMP_ATTEMPTS = 10;
const LATE_SEQUENCE = 0x8000_0000;
/** The default receive buffer holds about this many descriptions of links with their acknowledgements. */
const REQUESTS_AT_ONCE = 64;
// Larger than any message the kernel builds for a dump (32 KiB).
const RECEIVE_BUFFER = 65536;
/** Netlink's own header per queued message makes the default too small for what is sent here from this size on. */
const DEFAULT_BUFFER = 160 * 1024;

export interface NetlinkSocket {
  readonly protocol: NetlinkProtocol;
  readonly fd: number;
  /** Numbers the messages, so that answers find their question. */
  nextSequence: number;
  sendBuffer: number;
}

/** Opens a socket in the namespace the thread is in now. The kernel gives it its address with the first message. */
export function openNetlinkSocket(protocol: NetlinkProtocol): NetlinkSocket {
  const fd = libc.socket(AF_NETLINK, SOCK_RAW_CLOEXEC, PROTOCOL[protocol]);
  if (fd < 0) throw new KernelError(`open a netlink socket (${protocol})`, libc.lastErrno());
  const socket = { protocol, fd, nextSequence: 1, sendBuffer: DEFAULT_BUFFER };
  try {
    setOption(socket, SOL_NETLINK, NETLINK_EXT_ACK, Int32Array.of(1));
    setOption(socket, SOL_NETLINK, NETLINK_CAP_ACK, Int32Array.of(1));
    return socket;
  } catch (error) {
    closeFile(fd);
    throw error;
  }
}

export function closeNetlinkSocket(socket: NetlinkSocket): void {
  closeFile(socket.fd);
}

/** Takes note of each message of an answer; what it keeps it must copy. */
export type OnMessage = (message: MessageCursor) => void;

/**
 * Sends all requests, as many in one system call as their answers have room,
 * and tells which were refused, in their order. The kernel tries each of them: a
 * refused one stops none that follow.
 */
export function attempt(
  socket: NetlinkSocket,
  requests: readonly NetlinkRequest[],
  onMessage?: OnMessage,
): readonly (KernelError | undefined)[] {
  if (requests.length <= REQUESTS_AT_ONCE) return attemptAtOnce(socket, requests, onMessage);
  const outcomes: (KernelError | undefined)[] = [];
  for (let start = 0; start < requests.length; start += REQUESTS_AT_ONCE) {
    outcomes.push(...attemptAtOnce(socket, requests.slice(start, start + REQUESTS_AT_ONCE), onMessage));
  }
  return outcomes;
}

function attemptAtOnce(
  socket: NetlinkSocket,
  requests: readonly NetlinkRequest[],
  onMessage: OnMessage | undefined,
): readonly (KernelError | undefined)[] {
  if (requests.length === 0) return [];
  const first = takeSequences(socket, requests.length);
  writer ??= new MessageWriter();
  writer.clear();
  sendBytes(socket, encodeRequests(requests, first, writer), requests[0]?.action ?? "send nothing");
  return collectOutcomes(socket, requests, first, onMessage);
}

/** Used again and again: what it holds is sent at once. */
let writer: MessageWriter | undefined;

const loadFiles = loadOnce(() => import("node:fs"));

/**
 * As `attempt`, for a few requests that take the kernel milliseconds, in a process that has others to serve
 * meanwhile: a thread of the language runtime sends them, and waits.
 */
export async function attemptAside(
  socket: NetlinkSocket,
  requests: readonly NetlinkRequest[],
): Promise<readonly (KernelError | undefined)[]> {
  const { write } = await loadFiles();
  const first = takeSequences(socket, requests.length);
  const sent = Promise.withResolvers<void>();
  write(socket.fd, encodeRequests(requests, first), (failure) => {
    if (failure === null) sent.resolve();
    else sent.reject(new KernelError(requests[0]?.action ?? "send nothing", Math.abs(failure.errno ?? 0)));
  });
  await sent.promise;
  return collectOutcomes(socket, requests, first);
}

/** Reads until the last request was answered: all before it have been done by then, and their refusals read. */
function collectOutcomes(
  socket: NetlinkSocket,
  requests: readonly NetlinkRequest[],
  first: number,
  onMessage?: OnMessage,
): readonly (KernelError | undefined)[] {
  const outcomes = new Array<KernelError | undefined>(requests.length).fill(undefined);
  const last = first + requests.length - 1;
  for (;;) {
    const messages = receive(socket);
    while (messages.next()) {
      const request = requests[messages.sequence - first];
      if (request === undefined) continue;
      const isVerdict = messages.type === MESSAGE.error;
      if (isVerdict) {
        outcomes[messages.sequence - first] = refusal(request, readAcknowledgement(messages, "request"));
      } else onMessage?.(messages);
      if (messages.sequence !== last || !(isVerdict || request.isQuestion === true)) continue;
      return outcomes;
    }
  }
}

/** Sends all requests in one system call; throws the first refusal. */
export function perform(socket: NetlinkSocket, requests: readonly NetlinkRequest[], onMessage?: OnMessage): void {
  for (const error of attempt(socket, requests, onMessage)) if (error !== undefined) throw error;
}

/**
 * Sends a batch that the kernel takes as a whole. `onRefusal` learns every
 * message that was refused. The answers end with the acknowledgement of the last
 * message, or with a refusal of the first, which stands for the whole batch.
 */
export function sendBatch(
  socket: NetlinkSocket,
  batch: { readonly bytes: Uint8Array<ArrayBuffer>; readonly first: number; readonly last: number },
  onRefusal: (sequence: number, answer: Acknowledgement) => void,
): void {
  sendBytes(socket, batch.bytes, "send a batch to the kernel");
  let refused = 0;
  for (;;) {
    const messages = receiveBatchAnswer(socket, refused);
    if (messages === undefined) return;
    while (messages.next()) {
      if (messages.type !== MESSAGE.error || messages.sequence < batch.first) continue;
      const answer = readAcknowledgement(messages, "request");
      if (answer.errno !== 0) onRefusal(messages.sequence, answer);
      if (answer.errno !== 0) refused++;
      if (messages.sequence === batch.last || messages.sequence === batch.first) return;
    }
  }
}

/** `undefined` once refusals were read and no more fit into the buffer: the first of them are known, which is enough. */
function receiveBatchAnswer(socket: NetlinkSocket, refused: number): MessageCursor | undefined {
  try {
    return receive(socket);
  } catch (error) {
    if (isKernelError(error, "ENOBUFS")) return receiveBatchAnswer(socket, refused);
    if (isKernelError(error, "EAGAIN") && refused > 0) return undefined;
    throw error;
  }
}

/** Asks for a whole table. Asks again when the table changed on the way; `read` then starts anew. */
export function dump<Row>(
  socket: NetlinkSocket,
  request: NetlinkRequest,
  read: (message: MessageCursor) => Row | undefined,
): Row[] {
  for (let tries = 1; ; tries++) {
    const rows: Row[] = [];
    const outcome = dumpOnce(socket, request, (message) => {
      const row = read(message);
      if (row !== undefined) rows.push(row);
    });
    if (outcome === "complete") return rows;
    if (tries === DUMP_ATTEMPTS) throw new KernelError(`${request.action}: it kept changing`, errnoOf("EINTR"));
  }
}

function dumpOnce(socket: NetlinkSocket, request: NetlinkRequest, onMessage: OnMessage): "complete" | "interrupted" {
  const sequence = takeSequences(socket, 1);
  const writer = new MessageWriter(256);
  writeRequest(writer, request, sequence, FLAG.dump);
  sendBytes(socket, writer.written(), request.action);

  let interrupted = false;
  for (;;) {
    const messages = receive(socket);
    while (messages.next()) {
      if (messages.sequence !== sequence) continue;
      if ((messages.flags & FLAG.dumpInterrupted) !== 0) interrupted = true;
      if (messages.type === MESSAGE.error || messages.type === MESSAGE.done) {
        const echoed = messages.type === MESSAGE.error ? "request" : "nothing";
        const error = refusal(request, readAcknowledgement(messages, echoed));
        if (error !== undefined && error.errno === errnoOf("EINTR")) return "interrupted";
        if (error !== undefined) throw error;
        return interrupted ? "interrupted" : "complete";
      }
      onMessage(messages);
    }
  }
}

/** Reserves sequence numbers for as many messages; answers the first. They begin anew long before 32 bits end. */
export function takeSequences(socket: NetlinkSocket, count: number): number {
  const first = socket.nextSequence;
  const next = first + count;
  socket.nextSequence = next > LATE_SEQUENCE ? 1 : next;
  return first;
}

/** One datagram to the kernel, however large: the socket's buffers grow with it. */
function sendBytes(socket: NetlinkSocket, bytes: Uint8Array<ArrayBuffer>, action: string): void {
  if (bytes.length > socket.sendBuffer) {
    const wanted = Int32Array.of(bytes.length * 2);
    setOption(socket, SOL_SOCKET, SO_SNDBUFFORCE, wanted);
    setOption(socket, SOL_SOCKET, SO_RCVBUFFORCE, wanted);
    socket.sendBuffer = bytes.length * 2;
  }
  const sent = libc.sendto(socket.fd, bytes, bytes.length, 0);
  if (sent < 0) throw new KernelError(action, libc.lastErrno());
}

let receiveBuffer: Uint8Array<ArrayBuffer> | undefined;

/** The next datagram. Valid until the next call, on any socket. */
function receive(socket: NetlinkSocket): MessageCursor {
  receiveBuffer ??= new Uint8Array(RECEIVE_BUFFER);
  for (;;) {
    const length = libc.recv(socket.fd, receiveBuffer, RECEIVE_BUFFER, MSG_TRUNC | MSG_DONTWAIT);
    if (length >= 0 && length <= RECEIVE_BUFFER) return new MessageCursor(receiveBuffer, length);
    if (length >= 0) throw new KernelError("read the kernel's answer", errnoOf("EMSGSIZE"));
    const errno = libc.lastErrno();
    if (errno !== errnoOf("EINTR")) throw new KernelError("read the kernel's answer", errno);
  }
}

function refusal({ action, whenNone }: NetlinkRequest, { errno, text }: Acknowledgement): KernelError | undefined {
  if (errno === 0 || (whenNone !== undefined && errno === errnoOf(whenNone))) return undefined;
  return new KernelError(action, errno, text);
}

function setOption(socket: NetlinkSocket, level: number, name: number, value: Int32Array): void {
  if (libc.setsockopt(socket.fd, level, name, value, value.byteLength) === 0) return;
  throw new KernelError(`set option ${name} of a netlink socket`, libc.lastErrno());
}
