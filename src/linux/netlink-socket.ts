/**
 * One netlink socket: sends requests, reads the kernel's replies, turns a refusal into
 * an error. Synchronous: the kernel does the work while it takes a message, so the reply has
 * arrived when `send` returns; a missing reply was lost (EAGAIN), and waiting is useless.
 *
 * A socket belongs to the network namespace in which it was opened, whichever
 * namespace the thread enters afterwards (see netns.ts).
 */
import { errnoOf } from "./errno.ts";
import { isKernelError, KernelError } from "./kernel-error.ts";
import { type Acknowledgement, readAcknowledgement } from "./netlink/acknowledgement.ts";
import { MessageCursor } from "./netlink/message-reader.ts";
import { MessageWriter } from "./netlink/message-writer.ts";
import { encodeRequests, type NetlinkRequest, writeRequest } from "./netlink/request.ts";
import { FLAG, MESSAGE } from "./netlink/wire.ts";
import { type NetlinkChannel, type NetlinkProtocol, openNetlinkChannel } from "./netlink-channel.ts";

const DUMP_ATTEMPTS = 10;
const LATE_SEQUENCE = 0x8000_0000;
/** The default receive buffer has room for about this many link descriptions with their acknowledgements. */
const REQUESTS_AT_ONCE = 64;
// Larger than any message that the kernel builds for a dump (32 KiB).
const RECEIVE_BUFFER = 65536;
/** From this size on, the default buffer is too small, because netlink adds its own header to each queued message. */
const DEFAULT_BUFFER = 160 * 1024;

export interface NetlinkSocket {
  readonly protocol: NetlinkProtocol;
  readonly channel: NetlinkChannel;
  /** Numbers the messages, so that replies can be matched to requests. */
  nextSequence: number;
  sendBuffer: number;
}

/** Opens a socket in the current namespace of the thread. The kernel assigns its address with the first message. */
export function openNetlinkSocket(protocol: NetlinkProtocol): NetlinkSocket {
  return socketOn(openNetlinkChannel(protocol), protocol);
}

/** Whatever opens sockets to the namespace of the host. */
export interface SocketOpener {
  openSocket(protocol: NetlinkProtocol): NetlinkSocket;
}

/** For code that needs nothing else of the kernel (see host-kernel.ts). */
export const ownSockets: SocketOpener = { openSocket: openNetlinkSocket };

export function socketOn(channel: NetlinkChannel, protocol: NetlinkProtocol): NetlinkSocket {
  return { protocol, channel, nextSequence: 1, sendBuffer: DEFAULT_BUFFER };
}

export function closeNetlinkSocket(socket: NetlinkSocket): void {
  socket.channel.close();
}

/** Called with each message of a reply; must copy what it keeps. */
export type OnMessage = (message: MessageCursor) => void;

/**
 * Sends all requests, as many in one system call as there is room for replies, and
 * returns for each, in order, why it was refused, if it was. The kernel tries each of
 * them: a refused one does not stop those that follow.
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
  const first = reserveSequences(socket, requests.length);
  writer ??= new MessageWriter();
  writer.clear();
  sendBytes(socket, encodeRequests(requests, first, writer), requests[0]?.action ?? "send nothing");
  return collectOutcomes(socket, requests, first, onMessage);
}

/** Reused by every call: its content is sent at once. */
let writer: MessageWriter | undefined;

/**
 * Like `attempt`, for a few requests that take the kernel milliseconds, in a process with other work to do
 * meanwhile: a thread of the language runtime sends them and waits.
 */
export async function attemptInBackground(
  socket: NetlinkSocket,
  requests: readonly NetlinkRequest[],
): Promise<readonly (KernelError | undefined)[]> {
  const first = reserveSequences(socket, requests.length);
  const errno = await socket.channel.sendInBackground(encodeRequests(requests, first));
  if (errno !== 0) throw new KernelError(requests[0]?.action ?? "send nothing", errno);
  return collectOutcomes(socket, requests, first);
}

/** Reads up to the reply to the last request: by then all earlier requests are done and their refusals read. */
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
 * Sends a batch that the kernel applies completely or not at all. `onRefusal` is called
 * for every message that was refused. The replies end with the acknowledgement of the
 * last message, or with a refusal of the first, which applies to the whole batch.
 */
export function sendBatch(
  socket: NetlinkSocket,
  batch: { readonly bytes: Uint8Array<ArrayBuffer>; readonly first: number; readonly last: number },
  onRefusal: (sequence: number, reply: Acknowledgement) => void,
): void {
  sendBytes(socket, batch.bytes, "send a batch to the kernel");
  let refused = 0;
  for (;;) {
    const messages = receiveBatchReply(socket, refused);
    if (messages === undefined) return;
    while (messages.next()) {
      if (messages.type !== MESSAGE.error || messages.sequence < batch.first) continue;
      const reply = readAcknowledgement(messages, "request");
      if (reply.errno !== 0) onRefusal(messages.sequence, reply);
      if (reply.errno !== 0) refused++;
      if (messages.sequence === batch.last || messages.sequence === batch.first) return;
    }
  }
}

/** `undefined` if refusals were read and the rest did not fit into the buffer: the first ones are enough. */
function receiveBatchReply(socket: NetlinkSocket, refused: number): MessageCursor | undefined {
  try {
    return receive(socket);
  } catch (error) {
    if (isKernelError(error, "ENOBUFS")) return receiveBatchReply(socket, refused);
    if (isKernelError(error, "EAGAIN") && refused > 0) return undefined;
    throw error;
  }
}

/** Reads a whole table. If the table changes meanwhile, reads it again from the start. */
export function dump<Row>(
  socket: NetlinkSocket,
  request: NetlinkRequest,
  read: (message: MessageCursor) => Row | undefined,
): Row[] {
  const steps = dumpSteps(socket, request, read);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Like `dump`, for a large table, in a process with other work to do meanwhile: it comes between the kernel's replies. */
export async function dumpInSteps<Row>(
  socket: NetlinkSocket,
  request: NetlinkRequest,
  { read, pause }: { read(message: MessageCursor): Row | undefined; pause(): Promise<void> },
): Promise<Row[]> {
  const steps = dumpSteps(socket, request, read);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await pause();
  }
}

/** A step is one reply of the kernel, with many rows. Until the last one the socket is used for nothing else. */
export function* dumpSteps<Row>(
  socket: NetlinkSocket,
  request: NetlinkRequest,
  read: (message: MessageCursor) => Row | undefined,
): Generator<undefined, Row[]> {
  for (let tries = 1; ; tries++) {
    const rows: Row[] = [];
    const outcome = yield* dumpOnce(socket, request, (message) => {
      const row = read(message);
      if (row !== undefined) rows.push(row);
    });
    if (outcome === "complete") return rows;
    if (tries === DUMP_ATTEMPTS) throw new KernelError(`${request.action}: it kept changing`, errnoOf("EINTR"));
  }
}

function* dumpOnce(
  socket: NetlinkSocket,
  request: NetlinkRequest,
  onMessage: OnMessage,
): Generator<undefined, "complete" | "interrupted"> {
  const sequence = reserveSequences(socket, 1);
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
    yield undefined;
  }
}

/** Reserves sequence numbers for this many messages; returns the first. They restart long before 32 bits overflow. */
export function reserveSequences(socket: NetlinkSocket, count: number): number {
  const first = socket.nextSequence;
  const next = first + count;
  socket.nextSequence = next > LATE_SEQUENCE ? 1 : next;
  return first;
}

/** Sends one datagram of any size to the kernel: the socket's buffers are enlarged if needed. */
function sendBytes(socket: NetlinkSocket, bytes: Uint8Array<ArrayBuffer>, action: string): void {
  if (bytes.length > socket.sendBuffer) {
    socket.channel.enlarge(bytes.length * 2);
    socket.sendBuffer = bytes.length * 2;
  }
  const errno = socket.channel.send(bytes);
  if (errno !== 0) throw new KernelError(action, errno);
}

let receiveBuffer: Uint8Array<ArrayBuffer> | undefined;

/** The next datagram. Valid until the next call, on any socket. */
function receive(socket: NetlinkSocket): MessageCursor {
  const received = receiveOrErrno(socket);
  if (typeof received === "number") throw new KernelError("read the kernel's reply", received);
  return received;
}

/** For a caller that expects an error: creating one takes longer than the system call. */
export function receiveOrErrno(socket: NetlinkSocket): MessageCursor | number {
  receiveBuffer ??= new Uint8Array(RECEIVE_BUFFER);
  for (;;) {
    const length = socket.channel.receive(receiveBuffer);
    if (length >= 0 && length <= RECEIVE_BUFFER) return new MessageCursor(receiveBuffer, length);
    const errno = length >= 0 ? errnoOf("EMSGSIZE") : -length;
    if (errno !== errnoOf("EINTR")) return errno;
  }
}

function refusal({ action, whenNone }: NetlinkRequest, { errno, text }: Acknowledgement): KernelError | undefined {
  if (errno === 0 || (whenNone !== undefined && errno === errnoOf(whenNone))) return undefined;
  return new KernelError(action, errno, text);
}
