/**
 * What is known of one connection, or of denied packets that would have begun one: who, to whom, what decided, how much.
 *
 * The same form in the history of a node, in its JSON lines, in the API and in the output of the admin tool. Names are those of
 * the moment in which it began.
 */
import * as v from "valibot";
import { POINTS, type Point } from "../policy/point.ts";

export type { Point };

const endSchema = v.object({
  /** `outside`: no pod, node, Service or network set has the address. `hidden`: the reader may not see who it is. */
  kind: v.picklist(["pod", "container", "host", "service", "network set", "outside", "hidden"]),
  address: v.string(),
  /** Absent if the protocol has none. */
  port: v.exactOptional(v.number()),
  namespace: v.exactOptional(v.string()),
  /** Of a network set: one of those that contain the address, the most specific one. */
  name: v.exactOptional(v.string()),
  /** What keeps the pod running: `Deployment shop/web`. */
  owner: v.exactOptional(v.object({ kind: v.string(), name: v.string() })),
  labels: v.exactOptional(v.record(v.string(), v.string())),
  /** Of a pod or container: where it runs. */
  node: v.exactOptional(v.string()),
});

/** Why it is not known which rule decided. */
export const UNKNOWN_RULES = {
  "older than the switch": "the connection began before flows were switched on",
  "event lost": "the kernel could not tell that the connection began",
  "several rules": "rules changed while its first packets passed, and several of them accepted it",
  "not judged": "no rule of this node had to decide",
  "rule forgotten":
    "the agent of this node does not know any more which rule wrote the number into the connection's label",
} as const;

const decisionSchema = v.object({
  point: v.picklist(POINTS),
  verdict: v.picklist(["allow", "deny", "unknown"]),
  /** The comment of the rule in the policy table (src/policy/table/rule-comment.ts reads it). */
  rule: v.exactOptional(v.string()),
  /** In place of `rule`. */
  unknown: v.exactOptional(
    v.picklist(["older than the switch", "event lost", "several rules", "not judged", "rule forgotten"]),
  ),
  /** The rule has `http`: the sidecar of the destination decides about each request, which is not in this record. */
  requestsBySidecar: v.exactOptional(v.literal(true)),
});

/** What would be decided if every staged policy were promoted, by the resources of the moment in which the record was written. */
const stagedSchema = v.object({
  /** `depends`: on the interface of a host that the packet passes. */
  verdict: v.picklist(["allowed", "denied", "depends"]),
  /** In the order in which the packet passes the points, on all nodes. */
  decisions: v.array(decisionSchema),
});

const countSchema = v.object({ packets: v.number(), bytes: v.number() });

export const flowRecordSchema = v.object({
  /** Unique in the cluster; the same each time that the record is updated. */
  id: v.string(),
  /** That has seen it. A connection between two nodes has a record on each. */
  node: v.string(),
  family: v.picklist([4, 6]),
  /** IP protocol number. */
  protocol: v.number(),
  icmp: v.exactOptional(v.object({ type: v.number(), code: v.number() })),
  /** Who opened it, as its first packet says. */
  source: endSchema,
  /** Whom it asked for, before any translation: a Service, a host port. */
  destination: endSchema,
  /** Who answers, if that is another one: the backend of the Service, the container of the host port. */
  backend: v.exactOptional(endSchema),
  /** As whom the destination sees the source, if that is another one: a masquerade. */
  seenAs: v.exactOptional(v.object({ address: v.string(), port: v.exactOptional(v.number()) })),
  /** Seen from the workloads or host endpoints of this node. */
  direction: v.picklist(["ingress", "egress", "both"]),
  verdict: v.picklist(["allowed", "denied", "unknown"]),
  /** In the order of `POINTS`. Of a denied packet the last one denies. */
  decisions: v.array(decisionSchema),
  /** Absent: no staged policy matters to it, or it was not judged (`stagedNotJudged`). */
  staged: v.exactOptional(stagedSchema),
  /** `denied` packets belong to no connection. */
  state: v.picklist(["open", "ended", "denied"]),
  /** Milliseconds since 1970. */
  start: v.number(),
  /** Of the last change of this record; of an ended connection when it ended. */
  end: v.number(),
  /** From source to destination, and back. */
  sent: countSchema,
  received: countSchema,
  /** It exists because of another connection: the ID of its record, or the tuple in words. */
  relatedTo: v.exactOptional(v.string()),
  /** Of denied packets: how many more the rule has denied in the same second without a record. */
  suppressed: v.exactOptional(v.number()),
});

export type FlowRecord = Readonly<v.InferOutput<typeof flowRecordSchema>>;
export type FlowEnd = Readonly<v.InferOutput<typeof endSchema>>;
export type FlowDecision = Readonly<v.InferOutput<typeof decisionSchema>>;
export type StagedFlow = Readonly<v.InferOutput<typeof stagedSchema>>;
export type FlowCount = Readonly<v.InferOutput<typeof countSchema>>;
export type UnknownRule = keyof typeof UNKNOWN_RULES;

/** What is missing in the answer of a node, counted since its collector started. Nothing is lost silently. */
export const flowLossesSchema = v.object({
  /** Events of the kernel that did not fit into the buffer of the socket: how often, not how many. */
  kernelOverruns: v.number(),
  /** Connections whose beginning was not seen: their rule is unknown. */
  rulesUnknown: v.number(),
  /** Connections that are in the roll-ups only, since there were too many in a second. */
  overLimit: v.number(),
  /** Connections that were followed no more to keep memory bounded. */
  overCapacity: v.number(),
  /** Denied packets beyond the limit of their rules. */
  deniedSuppressed: v.number(),
  /** Records in which an end may be `outside` only because nobody has said in time who it is. */
  namesUnknown: v.number(),
  /** Records that could not be written to the history: full disk, damaged file. */
  notStored: v.number(),
  /** Records that did not fit into the file of JSON lines. */
  notLogged: v.number(),
  /** Flows that staged policies may matter to, and were not judged. Absent: none. */
  stagedNotJudged: v.exactOptional(v.number()),
  /** Milliseconds during which no collector ran, as far as the history goes back. */
  withoutCollector: v.number(),
});
export type FlowLosses = Readonly<v.InferOutput<typeof flowLossesSchema>>;
