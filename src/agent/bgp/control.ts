/**
 * A client of BIRD's control socket. One connection: commands are sent one after another, and `closed` tells that BIRD
 * has ended.
 */
import { type BirdReply, isRefused, ReplyReader } from "../../routing/bird/replies.ts";

export interface BirdControl {
  /** Rejects if BIRD refuses the command, has ended, or does not reply in time. */
  ask(command: string): Promise<BirdReply>;
  /** Resolves when the connection is closed, by either side. */
  readonly closed: Promise<void>;
  close(): void;
}

/** A loaded machine and a table of many routes included. */
const REPLY_MILLISECONDS = 10_000;

interface Waiting {
  resolve(reply: BirdReply): void;
  reject(failure: Error): void;
}

/** Rejects if no BIRD listens there. */
export async function connectBird(path: string, limitMilliseconds = REPLY_MILLISECONDS): Promise<BirdControl> {
  const reader = new ReplyReader();
  const decoder = new TextDecoder();
  const waiting: Waiting[] = [];
  const closed = Promise.withResolvers<void>();
  let isClosed = false;
  const nextReply = () => {
    const { promise, resolve, reject } = Promise.withResolvers<BirdReply>();
    if (isClosed) reject(new Error("BIRD has ended"));
    else waiting.push({ resolve, reject });
    return promise;
  };
  const end = () => {
    isClosed = true;
    for (const each of waiting.splice(0)) each.reject(new Error("BIRD has ended"));
    closed.resolve();
  };
  // BIRD greets first, perhaps before the connection is returned.
  const greeting = nextReply();
  greeting.catch(() => {});
  const socket = await Bun.connect({
    unix: path,
    socket: {
      data(_, bytes) {
        for (const reply of reader.read(decoder.decode(bytes, { stream: true }))) waiting.shift()?.resolve(reply);
      },
      close: end,
      error: end,
    },
  });
  const inTime = async (reply: Promise<BirdReply>) => {
    const late = () => {
      for (const each of waiting.splice(0)) each.reject(new Error(`BIRD has not replied for ${limitMilliseconds} ms`));
      socket.terminate();
    };
    const timer = setTimeout(late, limitMilliseconds);
    return reply.finally(() => clearTimeout(timer));
  };
  await inTime(greeting);
  return {
    async ask(command) {
      const reply = nextReply();
      if (!isClosed) socket.write(`${command}\n`);
      const received = await inTime(reply);
      if (isRefused(received)) throw new Error(`BIRD refuses "${command}": ${received.lines.join(" ").trim()}`);
      return received;
    },
    closed: closed.promise,
    close: () => void socket.end(),
  };
}
