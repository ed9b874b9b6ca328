/** What the page may ask of its source, by method and path. Login, session and logout are answered by the server itself. */
import type { Clock } from "../../datastore/replica/clock.ts";
import { flowLine } from "../../flows/flow-answer.ts";
import { readFlowRequest } from "../../flows/flow-request.ts";
import { quoted } from "../../quote.ts";
import type { Health } from "../api/health.ts";
import { policyDraftSchema } from "../api/policy-draft.ts";
import type { ConsoleSource } from "../source.ts";
import { jsonLine } from "./answers.ts";
import { decodeBody } from "./decode-body.ts";
import { Refusal } from "./refusal.ts";
import type { CheckedRequest } from "./request-checks.ts";

export interface PostedRequest extends CheckedRequest {
  /** "" without one. */
  readonly body: string;
}

export type ApiCall =
  | { readonly kind: "value"; readonly ask: (source: ConsoleSource, signal: AbortSignal) => Promise<object> }
  | {
      /** A stream goes on until its reader leaves. */
      readonly kind: "lines" | "stream";
      readonly lines: (source: ConsoleSource, signal: AbortSignal) => AsyncIterable<string>;
    };

export interface RouteMeans {
  readonly writable: boolean;
  readonly clock: Clock;
}

/** Throws `Refusal` and `FlowQueryError`. */
export function apiRoute(request: PostedRequest, { writable, clock }: RouteMeans): ApiCall {
  const { method, path, parameters, body } = request;
  const [resource, name, part, ...others] = segmentsOf(path);
  if (others.length > 0) throw noSuchPath(path);
  if (resource === "flows" && name !== undefined && part === "draft") {
    if (method === "GET") return value((source, signal) => source.draft(name, signal));
    if (!writable) throw new Refusal(403, "This console is read-only", READ_ONLY_REMEDY);
    const draft = decodeBody(policyDraftSchema, body, "send the draft that was shown");
    return value((source, signal) => source.applyDraft(name, draft, signal));
  }
  if (method !== "GET") throw new Refusal(405, "This is only read; use GET");
  if (part !== undefined) throw noSuchPath(path);
  switch (resource) {
    case "health":
      if (name !== undefined) throw noSuchPath(path);
      if (isTrue(parameters, "once")) return value((source, signal) => source.health(signal));
      return { kind: "stream", lines: (source, signal) => healthLines(source, clock, signal) };
    case "flows": {
      if (name !== undefined) throw noSuchPath(path);
      const question = readFlowRequest("flows", parameters);
      if (question.kind !== "flows") throw noSuchPath(path);
      const { query, follow } = question;
      const kind = follow ? "stream" : "lines";
      return { kind, lines: (source, signal) => linesOf(source.flows(query, follow, signal), flowLine) };
    }
    case "explanation": {
      if (name !== undefined) throw noSuchPath(path);
      const question = readFlowRequest("explanation", parameters);
      if (question.kind !== "explanation") throw noSuchPath(path);
      const { id } = question;
      const missing = new Refusal(404, "No flow with this ID that you may see is kept");
      return {
        kind: "lines",
        lines: (source, signal) => linesOf(source.explanation(id, signal), flowLine, missing),
      };
    }
    case "pools":
      if (name === undefined) return value((source, signal) => source.pools(signal));
      return { kind: "lines", lines: (source, signal) => linesOf(source.poolMap(name, signal), jsonLine) };
    case "addresses":
      if (name === undefined) throw noSuchPath(path);
      return value((source, signal) => source.address(name, signal));
    default:
      throw noSuchPath(path);
  }
}

const READ_ONLY_REMEDY = "Start it with --write, or apply the draft with the command that is shown";

function value(ask: Extract<ApiCall, { kind: "value" }>["ask"]): ApiCall {
  return { kind: "value", ask };
}

function noSuchPath(path: string): Refusal {
  return new Refusal(404, `The console has no path ${quoted(path)}`);
}

/** After `/api/`. Throws `Refusal`. */
function segmentsOf(path: string): readonly string[] {
  try {
    return path.split("/").slice(2).map(decodeURIComponent);
  } catch {
    throw new Refusal(400, `The path ${quoted(path)} is not encoded as it has to be`);
  }
}

function isTrue(parameters: URLSearchParams, name: string): boolean {
  const value = parameters.get(name) ?? "false";
  if (value === "true" || value === "false") return value === "true";
  throw new Refusal(400, `Cannot use "${name}": it is ${quoted(value)}; use true or false`);
}

async function* linesOf<Answer>(
  answers: AsyncIterable<Answer>,
  lineOf: (answer: Answer) => string,
  ifNone?: Refusal,
): AsyncIterable<string> {
  let isEmpty = true;
  for await (const answer of answers) {
    isEmpty = false;
    yield lineOf(answer);
  }
  if (isEmpty && ifNone !== undefined) throw ifNone;
}

const HEALTH_MILLISECONDS = 5_000;
/** Of the time that it takes, the rest is pauses: a large cluster is asked less often. */
const SHARE_OF_ASKING = 1 / 5;
/** Also without a change: what is shown says when it was known. */
const SAME_HEALTH_MILLISECONDS = 30_000;

async function* healthLines(source: ConsoleSource, clock: Clock, signal: AbortSignal): AsyncIterable<string> {
  let [shown, shownAt] = ["", 0];
  while (!signal.aborted) {
    const before = clock.now();
    const health = await source.health(signal);
    const now = clock.now();
    const text = withoutTimes(health);
    if (text !== shown || now - shownAt >= SAME_HEALTH_MILLISECONDS) {
      [shown, shownAt] = [text, now];
      yield jsonLine(health);
    }
    await clock.wait(Math.max(HEALTH_MILLISECONDS, (now - before) / SHARE_OF_ASKING), signal);
  }
}

/** When it was known is another time each time. */
function withoutTimes(health: Health): string {
  return JSON.stringify(health, (key, value) => (key === "at" || key === "knownAt" ? undefined : value));
}
