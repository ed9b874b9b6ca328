/**
 * What the controllers ask the collector of a node, and what it answers: a text of JSON each, over a WebSocket that the
 * collector opens to each replica, so that no port is open on a node.
 *
 *   controllers ── ask, more, cancel ──> collector ── answers, end, failed ──> controllers
 *
 * A question has a number of its own on the link. The collector sends as many lines of an answer as it was asked for, then waits
 * for `more`: so the memory of both is bounded, whoever reads slowly.
 */
import * as v from "valibot";
import { flowAnswerSchema } from "./flow-answer.ts";

/** Lines in one message; those of one moment are sent together. */
export const LINES_PER_MESSAGE = 64;
/** Characters in one message, in either direction. A longer one ends the link. */
export const LONGEST_MESSAGE = 4 * 1024 * 1024;
/** Characters in one line of flows, roll-ups and so on. Only an explanation may be longer: there is one for a question. */
export const LONGEST_LINE = 64 * 1024;

/** How a collector reaches the controllers. */
export interface LinkAccess {
  /** `10.0.0.1:9098`, `[fd00::1]:9098`: of each replica. */
  readonly addresses: readonly string[];
  /** In their certificates. */
  readonly serverName: string;
  /** PEM certificates: who has signed them. */
  readonly authority: string;
  /** Of the agent's account, for this purpose alone. */
  readonly token: string;
}

/** Where the link is, on the controllers. */
export const LINK_PATH = "/link";

const number = v.pipe(v.number(), v.integer(), v.minValue(1));

export const toNodeSchema = v.variant("kind", [
  /** `target`: path and parameters, as on the socket of the node. */
  v.object({ kind: v.literal("ask"), number, target: v.string(), lines: number }),
  /** This many lines more may be sent. */
  v.object({ kind: v.literal("more"), number, lines: number }),
  v.object({ kind: v.literal("cancel"), number }),
]);
export type ToNode = Readonly<v.InferOutput<typeof toNodeSchema>>;

export const fromNodeSchema = v.variant("kind", [
  v.object({ kind: v.literal("answers"), number, answers: v.array(flowAnswerSchema) }),
  v.object({ kind: v.literal("end"), number }),
  v.object({ kind: v.literal("failed"), number, message: v.string() }),
]);
export type FromNode = Readonly<v.InferOutput<typeof fromNodeSchema>>;
