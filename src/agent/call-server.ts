/**
 * Serves CNI calls that the plugins' processes hand over.
 *
 *   plugin's process                     node agent
 *        | ------------ connects ----------> |
 *        | <----------- greeting ----------- |   the same as its own? else it does its work itself
 *        | ------------- call -------------> |   the work begins
 *        | ---- ends sending, or goes -----> |   the work is told to stop, and undoes itself
 *        | <------------ answer ------------ |
 *
 * A connection carries one call. If the agent dies, the plugin's process finds
 * the connection closed without an answer, and does the whole call itself:
 * every command can be given again.
 */
import type { Socket, UnixSocketListener } from "bun";
import type { Answer } from "../cni/answer.ts";
import { PluginError } from "../errors.ts";
import { decodeFrame, joined } from "./frame.ts";
import { decodeCall, encodeAnswer, type HandedCall } from "./handed-call.ts";

export interface CallService {
  readonly path: string;
  readonly greeting: Uint8Array;
  /** Never rejects: every failure is an answer. */
  answer(call: HandedCall, signal: AbortSignal): Promise<Served>;
}

export interface Served {
  readonly answer: Answer;
  /** What is to be done behind the answer, when nobody waits for it. */
  afterwards(): void;
}

export interface CallServer {
  /** Takes no new calls; resolves when those under way have ended, and their callers have the answers. */
  stop(): Promise<void>;
}

interface Conversation {
  received: Uint8Array;
  /** What the other side has not taken yet. */
  unsent: Uint8Array;
  isUnderWay: boolean;
  isAnswered: boolean;
  readonly stopping: AbortController;
  /** Resolved when the other side has taken all of its answer, or has gone. */
  readonly over: PromiseWithResolvers<void>;
}

const NOTHING = new Uint8Array(0);

export function serveCalls(service: CallService): CallServer {
  const underWay = new Set<Promise<void>>();
  const connected = new Set<Socket<Conversation>>();

  const listener: UnixSocketListener<Conversation> = Bun.listen<Conversation>({
    unix: service.path,
    allowHalfOpen: true,
    socket: {
      open(socket) {
        socket.data = newConversation();
        connected.add(socket);
        send(socket, service.greeting);
      },
      data(socket, bytes) {
        const conversation = socket.data;
        if (conversation.isUnderWay) return;
        // The bytes are the runtime's own and change with the next ones.
        conversation.received = joined(conversation.received, new Uint8Array(bytes));
        const call = handedCall(conversation.received);
        if (call === undefined) return;
        // Whoever does not speak as agreed does its work itself.
        if (call === "unreadable") return void socket.terminate();
        conversation.isUnderWay = true;
        const work = converse(socket, call, service).finally(() => underWay.delete(work));
        underWay.add(work);
      },
      drain: (socket) => sendRest(socket),
      end(socket) {
        if (!socket.data.isUnderWay) socket.end();
        else if (!socket.data.isAnswered) stop(socket.data, "the caller was told to stop");
      },
      close(socket) {
        connected.delete(socket);
        socket.data.over.resolve();
        if (!socket.data.isAnswered) stop(socket.data, "the caller has gone");
      },
      error: ({ data }) => stop(data, "the caller has gone"),
    },
  });
  return {
    async stop() {
      listener.stop(false);
      // Who was greeted and has not handed its call over yet does it itself.
      for (const socket of connected) if (!socket.data.isUnderWay) socket.terminate();
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

async function converse(socket: Socket<Conversation>, call: HandedCall, service: CallService): Promise<void> {
  const { answer, afterwards } = await service.answer(call, socket.data.stopping.signal);
  socket.data.isAnswered = true;
  send(socket, encodeAnswer(answer));
  afterwards();
  await socket.data.over.promise;
}

function newConversation(): Conversation {
  return {
    received: NOTHING,
    unsent: NOTHING,
    isUnderWay: false,
    isAnswered: false,
    stopping: new AbortController(),
    over: Promise.withResolvers(),
  };
}

/** `undefined` while some of it is missing. */
function handedCall(received: Uint8Array): HandedCall | "unreadable" | undefined {
  try {
    const frame = decodeFrame(received);
    return frame && decodeCall(frame);
  } catch {
    return "unreadable";
  }
}

function stop({ stopping }: Conversation, reason: string): void {
  if (!stopping.signal.aborted) stopping.abort(new PluginError("interrupted", `Cannot finish: ${reason}`));
}

function send(socket: Socket<Conversation>, bytes: Uint8Array): void {
  socket.data.unsent = joined(socket.data.unsent, bytes);
  sendRest(socket);
}

function sendRest(socket: Socket<Conversation>): void {
  const { data } = socket;
  const count = socket.write(data.unsent);
  if (count < 0) return;
  data.unsent = data.unsent.subarray(count);
  if (!data.isAnswered || data.unsent.length > 0) return;
  socket.end();
  data.over.resolve();
}
