/**
 * Sums of what the nodes have counted. Two nodes count a connection between them: one saw it leave, the other saw it arrive. It
 * counts once. Pure.
 */
import type { FlowRollup } from "../../flows/flow-answer.ts";
import { groupPort, groupWords, ruleTitle } from "./flow-words.ts";

export interface FlowSum {
  readonly flows: number;
  readonly packets: number;
  readonly bytes: number;
}

/** Of all connections between two groups to one port, with one verdict. */
export interface PairSum extends FlowSum {
  readonly source: FlowRollup["source"];
  readonly destination: FlowRollup["destination"];
  readonly protocol: number;
  readonly port?: number;
  readonly verdict: FlowRollup["verdict"];
}

const NOTHING: FlowSum = { flows: 0, packets: 0, bytes: 0 };

function plus(left: FlowSum, right: FlowSum): FlowSum {
  return { flows: left.flows + right.flows, packets: left.packets + right.packets, bytes: left.bytes + right.bytes };
}

function minus(left: FlowSum, right: FlowSum): FlowSum {
  const rest = (name: keyof FlowSum) => Math.max(0, left[name] - right[name]);
  return { flows: rest("flows"), packets: rest("packets"), bytes: rest("bytes") };
}

/** Whichever is more, each on its own. */
function most(left: FlowSum, right: FlowSum): FlowSum {
  return {
    flows: Math.max(left.flows, right.flows),
    packets: Math.max(left.packets, right.packets),
    bytes: Math.max(left.bytes, right.bytes),
  };
}

export function pairSums(rollups: readonly FlowRollup[]): readonly PairSum[] {
  const pairs = Map.groupBy(rollups, ({ source, destination, protocol, port }) =>
    JSON.stringify([groupKey(source), groupKey(destination), protocol, port]),
  );
  return [...pairs.values()].flatMap(sumsOfPair);
}

/** Where the node of a rollup stood: at the source, at the destination, or it had both. Without rules, or if they are hidden, nobody knows. */
type View = "leaving" | "arriving" | "whole" | "unknown";

function viewOf({ rules }: FlowRollup): View {
  const leaves = rules.some((rule) => /^(workload egress|host out): /.test(rule));
  const arrives = rules.some((rule) => /^(workload ingress|host in): /.test(rule));
  if (leaves && arrives) return "whole";
  return leaves ? "leaving" : arrives ? "arriving" : "unknown";
}

function sumsOfPair(rollups: readonly FlowRollup[]): readonly PairSum[] {
  const [first] = rollups;
  if (first === undefined) return [];
  const { source, destination, protocol, port } = first;
  const seen = (verdict: FlowRollup["verdict"], view: View) =>
    rollups.filter((each) => each.verdict === verdict && viewOf(each) === view).reduce(plus, NOTHING);
  const [deniedThere, deniedByHidden] = [seen("denied", "arriving"), seen("denied", "unknown")];
  return (["allowed", "denied", "unknown"] as const).flatMap((verdict) => {
    const [whole, leaving, arriving] = [seen(verdict, "whole"), seen(verdict, "leaving"), seen(verdict, "arriving")];
    const unknown = seen(verdict, "unknown");
    // What the node of the source denies never arrives. What it lets pass, the node of the destination may deny.
    const isAllowed = verdict === "allowed";
    const sent = isAllowed ? minus(leaving, plus(deniedThere, deniedByHidden)) : leaving;
    const sentByHidden = isAllowed ? minus(unknown, deniedThere) : unknown;
    const seenOnce = verdict === "denied" ? plus(leaving, arriving) : most(sent, arriving);
    const sum = plus(whole, most(seenOnce, sentByHidden));
    if (sum.flows === 0 && sum.packets === 0) return [];
    return [{ source, destination, protocol, ...(port === undefined ? {} : { port }), verdict, ...sum }];
  });
}

function groupKey({ kind, namespace, name, ownerKind }: FlowRollup["source"]): readonly unknown[] {
  return [kind, namespace, name, ownerKind];
}

export interface TopRow extends FlowSum {
  /** By the titles of columns. */
  readonly cells: Readonly<Record<string, string>>;
}

export const GROUPINGS = ["pair", "source", "destination", "port", "rule"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** One row for each group, in no order. */
export function topRows(rollups: readonly FlowRollup[], by: Grouping): readonly TopRow[] {
  const parts =
    by === "rule" ? rollups.flatMap(ruleParts) : pairSums(rollups).map((sum) => ({ cells: cellsOf(sum, by), sum }));
  const groups = Map.groupBy(parts, ({ cells }) => JSON.stringify(cells));
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first === undefined ? [] : [{ cells: first.cells, ...group.map(({ sum }) => sum).reduce(plus, NOTHING) }];
  });
}

function cellsOf(pair: PairSum, by: Exclude<Grouping, "rule">): TopRow["cells"] {
  const SOURCE = groupWords(pair.source);
  const DESTINATION = groupWords(pair.destination);
  const PORT = groupPort(pair);
  const VERDICT = pair.verdict;
  switch (by) {
    case "pair":
      return { SOURCE, DESTINATION, PORT, VERDICT };
    case "source":
      return { SOURCE, VERDICT };
    case "destination":
      return { DESTINATION, VERDICT };
    case "port":
      return { PORT, VERDICT };
  }
}

/** Each rule that took part: the sums of rules do not add up to those of flows. Of a denied one only the last, which denied. */
function ruleParts(rollup: FlowRollup): readonly { readonly cells: TopRow["cells"]; readonly sum: FlowSum }[] {
  const { rules, verdict, flows, packets, bytes } = rollup;
  const decided = verdict === "denied" ? rules.slice(-1) : rules;
  return decided.map((rule) => {
    const [point = "", comment = ""] = rule.split(/: (.*)/s);
    return { cells: { RULE: ruleTitle(comment), POINT: point, VERDICT: verdict }, sum: { flows, packets, bytes } };
  });
}
