/** Requests to a browser and what it tells, on its pair of pipes: JSON, each message with a zero byte behind it. */
import type { ChildProcess } from "node:child_process";
import { Readable, Writable } from "node:stream";

/** The parameters and results of methods and events are those of the protocol. */
export type Parameters = Readonly<Record<string, unknown>>;

export interface Protocol {
  /** Throws with the message of the browser. `Result`: what the caller reads of the answer. */
  send<Result = unknown>(method: string, parameters?: Parameters, sessionId?: string): Promise<Result>;
  /** Events of one session, until the browser ends. */
  listen(sessionId: string, onEvent: (method: string, parameters: Parameters) => void): void;
}

interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
  readonly method?: string;
  readonly params?: Parameters;
  readonly sessionId?: string;
}

export function protocolOf(child: ChildProcess): Protocol {
  const [, , errors, writing, reading] = child.stdio;
  if (!(errors instanceof Readable && writing instanceof Writable && reading instanceof Readable))
    throw new Error("Cannot talk to chromium: it has no pipes");
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  const listeners = new Map<string, (method: string, parameters: Parameters) => void>();
  let said = "";
  errors.on("data", (text: Buffer) => {
    said = `${said}${text.toString()}`.slice(-2_000);
  });
  let ended: Error | undefined;
  const end = (error: Error) => {
    ended ??= error;
    for (const { reject } of waiting.values()) reject(ended);
    waiting.clear();
  };
  child.once("error", end);
  child.once("exit", (code) => end(new Error(`chromium has ended with ${code}: ${said}`)));
  writing.on("error", () => {});
  let sent = 0;
  readMessages(reading, ({ id, result, error, method, params = {}, sessionId = "" }) => {
    if (method !== undefined) listeners.get(sessionId)?.(method, params);
    const asked = waiting.get(id ?? 0);
    waiting.delete(id ?? 0);
    if (error === undefined) asked?.resolve(result);
    else asked?.reject(new Error(error.message));
  });
  return {
    async send<Result>(method: string, params: Parameters = {}, sessionId?: string): Promise<Result> {
      if (ended !== undefined) throw ended;
      sent += 1;
      const id = sent;
      const answer = new Promise<unknown>((resolve, reject) => waiting.set(id, { resolve, reject }));
      writing.write(`${JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) })}\0`);
      return (await answer.catch((cause: Error) => {
        throw new Error(`${method}: ${cause.message}`, { cause });
      })) as Result;
    },
    listen: (sessionId, onEvent) => void listeners.set(sessionId, onEvent),
  };
}

function readMessages(reading: Readable, onMessage: (message: Answer) => void): void {
  let parts: Buffer[] = [];
  reading.on("data", (chunk: Buffer) => {
    let rest = chunk;
    for (;;) {
      const end = rest.indexOf(0);
      if (end < 0) break;
      onMessage(JSON.parse(Buffer.concat([...parts, rest.subarray(0, end)]).toString()) as Answer);
      parts = [];
      rest = rest.subarray(end + 1);
    }
    parts.push(rest);
  });
}
