/**
 * Asks the server: an answer as a whole, or line by line. Every request but the first has the CSRF token of the session. If the
 * session has ended, the page asks for a login and keeps the view.
 */
import * as v from "valibot";
import { CSRF_HEADER, refusalSchema } from "../api/session.ts";
import { linesOf } from "./lines.ts";
import { session, sessionEnded } from "./session-state.ts";

/** The server said no, or could not be asked. */
export class Refusal extends Error {
  constructor(
    /** 0: nobody answered. */
    readonly status: number,
    message: string,
    readonly remedy?: string,
  ) {
    super(message);
  }
}

export interface Request {
  readonly signal?: AbortSignal;
  /** Sent as JSON, by POST. */
  readonly body?: unknown;
  /** The answer begins, perhaps long before its first line. */
  opened?(): void;
}

type Schema<Value> = v.GenericSchema<unknown, Value>;

/** Throws `Refusal`, or the reason of the signal. */
export async function ask<Value>(path: string, schema: Schema<Value>, request: Request = {}): Promise<Value> {
  const response = await responseOf(path, request);
  return decoded(schema, await response.json().catch(() => undefined), path);
}

/** `schemaOf` says what a line is, so that not every kind is tried for each of many lines. */
export async function* askLines<Value>(
  path: string,
  schemaOf: (line: object) => Schema<Value>,
  request: Request = {},
): AsyncGenerator<Value> {
  const response = await responseOf(path, request);
  request.opened?.();
  if (response.body === null) return;
  for await (const line of linesOf(response.body)) {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null) throw unreadable(path);
    const failed = v.safeParse(v.object({ error: refusalSchema }), value);
    if (failed.success) throw new Refusal(503, failed.output.error.message, failed.output.error.remedy);
    yield decoded(schemaOf(value), value, path);
  }
}

async function responseOf(path: string, { signal, body }: Request): Promise<Response> {
  const csrfToken = session.peek()?.csrfToken;
  const response = await fetch(path, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      ...(csrfToken === undefined ? {} : { [CSRF_HEADER]: csrfToken }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
    credentials: "same-origin",
    cache: "no-store",
    redirect: "error",
  }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw new Refusal(0, "The console does not answer", error instanceof Error ? error.message : undefined);
  });
  if (response.ok) return response;
  throw await refusalOf(response, path);
}

async function refusalOf(response: Response, path: string): Promise<Refusal> {
  const read = v.safeParse(refusalSchema, await response.json().catch(() => undefined));
  const said = read.success ? read.output : { message: `The console answered ${response.status}` };
  if (response.status === 401 && path !== "/api/login") sessionEnded(said);
  return new Refusal(response.status, said.message, said.remedy);
}

function decoded<Value>(schema: Schema<Value>, value: unknown, path: string): Value {
  const read = v.safeParse(schema, value);
  if (read.success) return read.output;
  throw unreadable(path);
}

function unreadable(path: string): Refusal {
  return new Refusal(
    0,
    `The page does not understand the answer of ${path}`,
    "Load the page again: the console may be newer",
  );
}

/** What a view says about its stream. */
export type Following =
  | { readonly kind: "asking" }
  | { readonly kind: "live" }
  /** The answer is complete, and nothing follows. */
  | { readonly kind: "complete" }
  | { readonly kind: "lost"; readonly refusal: Refusal; readonly retryAt: number };

const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 15_000;

/**
 * Runs `read` again and again: each time from the beginning, with growing pauses after failures. `read` says when it is live. Ends
 * with the signal, when the session ends, or if `read` returns although nothing failed and it does not follow.
 */
export async function keepFollowing(
  read: (signal: AbortSignal, live: () => void) => Promise<"again" | "complete">,
  tell: (following: Following) => void,
  signal: AbortSignal,
): Promise<void> {
  let pause = FIRST_PAUSE;
  while (!signal.aborted && session.peek() !== undefined) {
    const failure = await read(signal, () => {
      pause = FIRST_PAUSE;
      tell({ kind: "live" });
    }).catch((error: unknown) => error);
    if (signal.aborted || session.peek() === undefined) return;
    if (failure === "complete") return tell({ kind: "complete" });
    const refusal = failure instanceof Refusal ? failure : new Refusal(0, lostWords(failure));
    tell({ kind: "lost", refusal, retryAt: Date.now() + pause });
    await passed(pause, signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

function lostWords(failure: unknown): string {
  return failure === "again" ? "The console ended the answer" : "The connection to the console was lost";
}

function passed(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
