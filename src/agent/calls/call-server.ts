/**
 * Serves CNI calls that the plugins' processes hand over.
 *
 *   plugin's process                     node agent
 *        | ------------ connects ----------> |
 *        | <----------- greeting ----------- |   if it differs from its own, it does the call itself
 *        | ------------- call -------------> |   the work begins
 *        | - shuts down sending, or dies --> |   the work is aborted, and undoes itself
 *        | <------------ reply ------------- |
 *
 * A connection carries one call. If the agent dies, the plugin's process sees
 * the connection closed without a reply and does the whole call itself: every
 * command can safely be repeated.
 */
import type { Socket, UnixSocketListener } from "bun";
import type { Reply } from "../../cni/reply.ts";
import { PluginError } from "../../errors.ts";
import { LimitedConnections } from "../../limited-connections.ts";
import { FrameBuffer, joined } from "./frame.ts";
import { decodeCall, encodeReply, type HandedCall } from "./handed-call.ts";

export interface CallService {
  readonly path: string;
  readonly greeting: Uint8Array;
  /**
   * With more, the oldest without a call in progress is closed, or the new one if there is none; their callers do the call
   * themselves: a process that runs out of descriptors can neither accept a connection nor turn to anything else.
   */
  readonly mostConnections: number;
  /** Whether the call can be served here; otherwise its caller does it itself. */
  accepts(call: HandedCall): boolean;
  /** Never rejects: every failure becomes a reply. */
  serve(call: HandedCall, signal: AbortSignal): Promise<Served>;
}

export interface Served {
  readonly reply: Reply;
  /** Work to do after the reply is sent, when nobody waits for it. */
  afterwards(): void;
}

export interface CallServer {
  /** Accepts no new calls; resolves when the calls in progress have ended and their callers have the replies. */
  stop(): Promise<void>;
}

interface Connection {
  readonly received: FrameBuffer;
  /** Not accepted by the other side's socket yet. */
  unsent: Uint8Array;
  isInProgress: boolean;
  /** When the reply was sent, by the monotonic clock. */
  repliedAt: number | undefined;
  readonly stopping: AbortController;
  /** Resolved when the other side has received the whole reply, or has disconnected. */
  readonly over: PromiseWithResolvers<void>;
}

const NOTHING = new Uint8Array(0);
/** A caller sends its call within a second; one that does not is disconnected. */
const CALL_MILLISECONDS = 5_000;
/** A caller reads its reply at once. */
const REPLY_MILLISECONDS = 30_000;
/** How long a server that is told to stop waits for a caller to read its reply. */
const READ_MILLISECONDS = 2_000;

export function serveCalls(service: CallService): CallServer {
  const inProgress = new Set<Promise<void>>();
  const connected = new Set<Socket<Connection>>();
  const limits = {
    most: service.mostConnections,
    requestMilliseconds: CALL_MILLISECONDS,
    replyMilliseconds: REPLY_MILLISECONDS,
  };
  const limited = new LimitedConnections<Socket<Connection>>(limits, (socket) => void socket.terminate());

  const listener: UnixSocketListener<Connection> = Bun.listen<Connection>({
    unix: service.path,
    allowHalfOpen: true,
    socket: {
      open(socket) {
        socket.data = newConnection();
        if (!limited.admit(socket)) return void socket.terminate();
        connected.add(socket);
        send(socket, service.greeting);
      },
      data(socket, bytes) {
        const connection = socket.data;
        if (connection.isInProgress) return;
        const call = handedCall(connection.received, bytes);
        if (call === undefined) return;
        // A caller that does not follow the protocol does its call itself.
        if (call === "unreadable" || !service.accepts(call)) return void socket.terminate();
        connection.isInProgress = true;
        limited.begin(socket);
        const replied = () => limited.reply(socket);
        const work = serveCall(socket, call, { service, replied }).finally(() => inProgress.delete(work));
        inProgress.add(work);
      },
      drain: (socket) => sendRest(socket),
      end(socket) {
        if (!socket.data.isInProgress) socket.end();
        else if (!isReplied(socket)) stop(socket.data, "the caller was told to stop");
      },
      close(socket) {
        connected.delete(socket);
        limited.left(socket);
        socket.data.over.resolve();
        if (!isReplied(socket)) stop(socket.data, "the caller has disconnected");
      },
      error: ({ data }) => stop(data, "the caller has disconnected"),
    },
  });
  return {
    async stop() {
      listener.stop(false);
      // A caller that was greeted and has not sent its call yet does it itself.
      for (const socket of connected) if (!socket.data.isInProgress) socket.terminate();
      while (inProgress.size > 0) {
        await Promise.race([Promise.all(inProgress), Bun.sleep(READ_MILLISECONDS)]);
        for (const socket of connected) if (isUnread(socket)) socket.terminate();
      }
    },
  };
}

async function serveCall(
  socket: Socket<Connection>,
  call: HandedCall,
  { service, replied }: { readonly service: CallService; readonly replied: () => void },
): Promise<void> {
  const { reply, afterwards } = await service.serve(call, socket.data.stopping.signal);
  socket.data.repliedAt = performance.now();
  send(socket, encodeReply(reply));
  replied();
  afterwards();
  await socket.data.over.promise;
}

function newConnection(): Connection {
  return {
    received: new FrameBuffer(),
    unsent: NOTHING,
    isInProgress: false,
    repliedAt: undefined,
    stopping: new AbortController(),
    over: Promise.withResolvers(),
  };
}

function isReplied({ data }: Socket<Connection>): boolean {
  return data.repliedAt !== undefined;
}

/** Whether the caller had its time to read the reply and has not read all of it. */
function isUnread({ data }: Socket<Connection>): boolean {
  return data.repliedAt !== undefined && performance.now() - data.repliedAt > READ_MILLISECONDS;
}

/** `undefined` while the frame is incomplete. */
function handedCall(received: FrameBuffer, bytes: Uint8Array): HandedCall | "unreadable" | undefined {
  try {
    const frame = received.add(bytes);
    return frame === "too large" ? "unreadable" : frame && decodeCall(frame);
  } catch {
    return "unreadable";
  }
}

function stop({ stopping }: Connection, reason: string): void {
  if (!stopping.signal.aborted) stopping.abort(new PluginError("interrupted", `Cannot finish: ${reason}`));
}

function send(socket: Socket<Connection>, bytes: Uint8Array): void {
  socket.data.unsent = joined(socket.data.unsent, bytes);
  sendRest(socket);
}

function sendRest(socket: Socket<Connection>): void {
  const { data } = socket;
  const count = socket.write(data.unsent);
  if (count < 0) return;
  data.unsent = data.unsent.subarray(count);
  if (data.repliedAt === undefined || data.unsent.length > 0) return;
  socket.end();
  data.over.resolve();
}
