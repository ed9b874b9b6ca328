/**
 * What a node answers: a line of JSON each, on the socket of the node as from the API of the cluster.
 *
 *   GET /flows?QUERY           flows, the oldest first, then `losses`; with `follow=true` also what comes, until the client leaves.
 *                              A flow that changes comes again with the same ID
 *   GET /rollups?QUERY         who talked to whom, summed over the time asked for
 *   GET /explanation?id=ID     why the flow was allowed or denied, with the resources as they were
 */
import * as v from "valibot";
import { parseJson } from "../parse-json.ts";
import type { FlowQuery, Sight } from "./flow-query.ts";
import { type FlowRecord, flowLossesSchema, flowRecordSchema } from "./flow-record.ts";

const groupSchema = v.object({
  kind: v.picklist(["pod", "container", "host", "service", "network set", "outside", "hidden"]),
  namespace: v.exactOptional(v.string()),
  /** Of the owner, else of the pod, container, host or set itself; absent if outside. */
  name: v.exactOptional(v.string()),
  ownerKind: v.exactOptional(v.string()),
});

/** Connections between two workloads to one port that the same rules decided. */
export const flowRollupSchema = v.object({
  node: v.string(),
  /** Milliseconds since 1970: from the first minute to the end of the last one. */
  from: v.number(),
  until: v.number(),
  source: groupSchema,
  destination: groupSchema,
  protocol: v.number(),
  port: v.exactOptional(v.number()),
  verdict: v.picklist(["allowed", "denied", "unknown"]),
  /** `POINT: COMMENT` of each rule that decided. */
  rules: v.array(v.string()),
  /** Connections that began, or denied packets. */
  flows: v.number(),
  packets: v.number(),
  bytes: v.number(),
});
export type FlowRollup = Readonly<v.InferOutput<typeof flowRollupSchema>>;
export type FlowGroup = Readonly<v.InferOutput<typeof groupSchema>>;

const explainedSideSchema = v.object({
  direction: v.picklist(["ingress", "egress"]),
  /** Whose policies these are. */
  of: v.string(),
  namespace: v.exactOptional(v.string()),
  verdict: v.string(),
  reason: v.string(),
  policies: v.array(v.object({ title: v.string(), tier: v.string(), outcome: v.string() })),
});

export const flowExplanationSchema = v.object({
  flow: flowRecordSchema,
  /** In the order in which the packet passed them. Absent: not kept any more, see `missing`. */
  sides: v.exactOptional(v.array(explainedSideSchema)),
  /** What is not known any more, and where the judge disagrees with what was recorded, in words. */
  missing: v.array(v.string()),
});
export type FlowExplanation = Readonly<v.InferOutput<typeof flowExplanationSchema>>;

export const flowAnswerSchema = v.union([
  v.object({ flow: flowRecordSchema }),
  v.object({ rollup: flowRollupSchema }),
  v.object({ explanation: flowExplanationSchema }),
  /** Of one node; the last line of its answer, and now and then while it is followed. */
  v.object({ losses: v.object({ node: v.string(), ...flowLossesSchema.entries }) }),
  /** A node did not answer, or not completely; in words. */
  v.object({ problem: v.object({ node: v.exactOptional(v.string()), message: v.string() }) }),
]);
export type FlowAnswer = Readonly<v.InferOutput<typeof flowAnswerSchema>>;

/** What answers: the collector of a node, or the merged nodes of a cluster. */
export interface FlowSource {
  /** Ends when everything is said, or when the signal is aborted. */
  answer(question: FlowQuestion, signal: AbortSignal): AsyncIterable<FlowAnswer>;
}

export interface FlowFilter {
  readonly query: FlowQuery;
  /**
   * Whose question it is: the query is about what this reader may see. So an answer has neither more nor other flows than the reader
   * is shown; who shows them hides the rest of each. Absent: a reader of everything.
   */
  readonly sight?: Sight;
}

export type FlowQuestion =
  | (FlowFilter & { readonly kind: "flows"; readonly follow: boolean })
  | (FlowFilter & { readonly kind: "rollups" })
  | { readonly kind: "explanation"; readonly id: string };

/** Whether it is a line of the file that `flowLogFile` names. */
export function isFlowLine(text: string): boolean {
  return (
    text.startsWith("{") && text.length <= LONGEST_FLOW_LINE && v.safeParse(flowRecordSchema, parseLine(text)).success
  );
}

const LONGEST_FLOW_LINE = 1_000_000;

function parseLine(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Besides what JSON escapes: line breaks of Unicode, control characters of terminals, and what turns the direction of text. */
const CONTROLS = /[\u2028\u2029\p{Cc}\p{Bidi_Control}]/gu;

/** One line of JSON, whatever names and labels contain. */
export function flowLine(value: FlowAnswer | FlowRecord): string {
  const text = JSON.stringify(value).replace(
    CONTROLS,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `${text}\n`;
}
