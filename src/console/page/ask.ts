/**
 * Asks the server: an answer as a whole, or line by line. Every request but the first has the CSRF token of the session. If the
 * session has ended, the page asks for a login and keeps the view.
 */
import * as v from "valibot";
import { linesOf } from "../../lines.ts";
import { CSRF_HEADER, type RefusalAnswer, refusalSchema, streamEndSchema, UNATTENDED_HEADER } from "../api/session.ts";
import { csrfToken, loginMode, sessionEnded } from "./session-state.ts";

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
  /** Nobody asked for it just now, so it does not keep the session. */
  readonly isUnattended?: boolean;
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
  for await (const line of linesOf(piecesOf(response.body), { unended: "a line" })) {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null) throw unreadable(path);
    if ("refused" in value) throw endOfStream(decoded(streamEndSchema, value, path).refused);
    yield decoded(schemaOf(value), value, path);
  }
}

/** Not every browser iterates over a body. */
async function* piecesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function endOfStream({ status, message, remedy }: RefusalAnswer & { readonly status: number }): Refusal {
  if (status === 401) sessionEnded({ message, ...(remedy === undefined ? {} : { remedy }) });
  return new Refusal(status, message, remedy);
}

async function responseOf(path: string, { signal, body, isUnattended }: Request): Promise<Response> {
  const token = csrfToken();
  const response = await fetch(path, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      ...(token === undefined ? {} : { [CSRF_HEADER]: token }),
      ...(isUnattended === true ? { [UNATTENDED_HEADER]: "true" } : {}),
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
  if (response.status === 401 && path === "/api/login") loginMode.value = said.mode ?? loginMode.value;
  else if (response.status === 401) sessionEnded(said);
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
