/** A connection between two nodes has a record on each: which one is the other. Pure. */
import type { FlowQuery } from "../../../flows/flow-query.ts";
import type { FlowEnd, FlowRecord } from "../../../flows/flow-record.ts";

/** Clocks of two nodes differ, and the second node sees a denied packet later or not at all. */
const TOLERANCE = 10_000;

/** Both ends as the destination sees them: after all translations. */
function tupleOf({ source, seenAs, destination, backend, protocol }: FlowRecord): string {
  const from = seenAs ?? source;
  const to = backend ?? destination;
  return [protocol, from.address, from.port ?? "", to.address, to.port ?? ""].join(" ");
}

export function isPartner(flow: FlowRecord, other: FlowRecord): boolean {
  return (
    other.node !== flow.node &&
    tupleOf(other) === tupleOf(flow) &&
    other.start <= flow.end + TOLERANCE &&
    flow.start <= other.end + TOLERANCE
  );
}

/** Finds it, among few others. */
export function partnerQuery(flow: FlowRecord): FlowQuery {
  const to = flow.backend ?? flow.destination;
  return {
    from: (flow.seenAs ?? flow.source).address,
    to: to.address,
    ...(to.port === undefined ? {} : { port: to.port }),
    protocol: String(flow.protocol),
    since: Math.max(0, flow.start - TOLERANCE),
    until: flow.end + TOLERANCE,
    last: 100,
  };
}

/** The nodes of a flow, in the order in which its packets pass them, each with its record if there is one. */
export interface NodeOfFlow {
  /** Absent: it is not known on which node that end is, or that end is outside. */
  readonly node?: string;
  readonly side: "source" | "destination" | "both";
  readonly record?: FlowRecord;
}

export function nodesOf(flow: FlowRecord, partner: FlowRecord | undefined): readonly NodeOfFlow[] {
  const records = partner === undefined ? [flow] : [flow, partner];
  const recordOn = (node: string | undefined) => records.find((record) => record.node === node);
  const from = nodeOfEnd(flow.source);
  const to = nodeOfEnd(flow.backend ?? flow.destination);
  if (from !== undefined && from === to) return [withRecord(from, "both", recordOn(from))];
  const other = (node: string | undefined) => records.find((record) => record.node !== node)?.node;
  const first = from ?? other(to);
  const second = to ?? other(first);
  if (first === second) return first === undefined ? [] : [withRecord(first, "both", recordOn(first))];
  return [withRecord(first, "source", recordOn(first)), withRecord(second, "destination", recordOn(second))].filter(
    ({ node }) => node !== undefined,
  );
}

function withRecord(node: string | undefined, side: NodeOfFlow["side"], record: FlowRecord | undefined): NodeOfFlow {
  return { side, ...(node === undefined ? {} : { node }), ...(record === undefined ? {} : { record }) };
}

function nodeOfEnd({ kind, node, name }: FlowEnd): string | undefined {
  return kind === "host" ? name : node;
}
