/**
 * What the agent of a node says of its BGP sessions, tunnels and routes, for people alone: nothing is computed from it. It is
 * bounded, so that a Node stays small whatever happens; and read as text of strangers, since others can write annotations too.
 */
import * as v from "valibot";
import { identity } from "../identity.ts";
import { redact } from "../redaction.ts";

/** Annotation of a Node. Absent: there is no session and no problem, or the agent is of a release that says nothing. */
export const ROUTING_STATE_ANNOTATION = `${identity.labelPrefix}routing-state`;

/** Of sessions that are not established, and of problems. */
const MOST_SHOWN = 5;
const LONGEST_TEXT = 400;
const LONGEST_ANNOTATION = 16 * 1024;

const text = v.pipe(v.string(), v.maxLength(LONGEST_TEXT), v.regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u));
const time = v.pipe(v.string(), v.isoTimestamp());
const count = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1_000_000));

const asNumber = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(2 ** 32 - 1));

const sessionSchema = v.object({
  address: text,
  asNumber,
  /** The BGPPeer, or the node of the mesh. */
  peer: text,
  /** As BGP calls it: `Active`, `OpenSent` */
  state: text,
  /** Since when it is not established, as far as the agent knows. */
  since: time,
  lastError: v.exactOptional(text),
});

const stateSchema = v.pipe(
  v.object({
    /** When it was written: it is of now as long as the agent runs. */
    at: time,
    /** Absent: no BGP on this node. */
    sessions: v.exactOptional(v.object({ wanted: count, established: count })),
    /** The first of those that are not established. */
    down: v.pipe(v.array(sessionSchema), v.maxLength(MOST_SHOWN)),
    problems: v.pipe(
      v.array(v.object({ state: v.picklist(["failed", "warning"]), message: text })),
      v.maxLength(MOST_SHOWN),
    ),
  }),
  v.check(({ sessions }) => sessions === undefined || sessions.established <= sessions.wanted),
);

export type RoutingState = Readonly<v.InferOutput<typeof stateSchema>>;
export type RoutingProblem = RoutingState["problems"][number];
export type DownSession = RoutingState["down"][number];

/** What the agent knows, of any size. */
export interface KnownRouting {
  readonly sessions?: { readonly wanted: number; readonly established: number };
  readonly down: readonly DownSession[];
  readonly problems: readonly RoutingProblem[];
}

/** Within the bounds, and comparable with what was written. */
export function boundedRouting({ sessions, down, problems }: KnownRouting): KnownRouting {
  const left = problems.length - MOST_SHOWN;
  const shown = left > 0 ? [...problems.slice(0, MOST_SHOWN - 1), andMore(problems.slice(MOST_SHOWN - 1))] : problems;
  return {
    ...(sessions === undefined ? {} : { sessions }),
    down: down.slice(0, MOST_SHOWN).map(({ lastError, ...session }) => ({
      ...session,
      ...{ peer: plain(session.peer), state: plain(session.state) },
      ...(lastError === undefined ? {} : { lastError: plain(lastError) }),
    })),
    problems: shown.map(({ state, message }) => ({ state, message: plain(message) })),
  };
}

function andMore(problems: readonly RoutingProblem[]): RoutingProblem {
  const state = problems.some((each) => each.state === "failed") ? "failed" : "warning";
  return { state, message: `${problems.length} more problems of routes, which are in the log of the agent` };
}

/** Without what moves a terminal's cursor, and without secrets. */
function plain(value: string): string {
  const line = redact(value).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ");
  return line.length <= LONGEST_TEXT ? line : `${line.slice(0, LONGEST_TEXT - 1).toWellFormed()}…`;
}

/** `undefined`: nothing is to be said. `known`: of `boundedRouting()`. */
export function writeRoutingState(known: KnownRouting, at: Date): string | undefined {
  const { sessions, down, problems } = known;
  if (sessions === undefined && problems.length === 0) return undefined;
  return JSON.stringify({ at: at.toISOString(), ...known, down, problems });
}

/** `undefined`: the node has none. */
export function readRoutingState(
  annotations: Readonly<Record<string, string>> | undefined,
): RoutingState | "unreadable" | undefined {
  const written = annotations?.[ROUTING_STATE_ANNOTATION];
  if (written === undefined) return undefined;
  if (written.length > LONGEST_ANNOTATION) return "unreadable";
  try {
    const read = v.safeParse(stateSchema, JSON.parse(written));
    return read.success ? read.output : "unreadable";
  } catch {
    return "unreadable";
  }
}

/** Whether the two say the same: BGP tries again all the time, and its state and times change as it does. */
export function isSameRouting(left: KnownRouting, right: KnownRouting): boolean {
  return Bun.deepEquals(essence(left), essence(right));
}

function essence({ sessions, down, problems }: KnownRouting) {
  const peers = down.map(({ address, asNumber, peer, lastError }) => [address, asNumber, peer, lastError ?? ""]);
  return [sessions ?? "none", peers, problems];
}
