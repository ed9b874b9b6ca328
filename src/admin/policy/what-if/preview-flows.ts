/** Recorded connections that a change of policies would deny or newly allow. */
import { PluginError } from "../../../errors.ts";
import type { FlowEnd, FlowRecord } from "../../../flows/flow-record.ts";
import { flowReplay, type ReplayedFlow } from "../../../flows/replay-flows.ts";
import { PROTOCOL_NAMES, protocolNumber } from "../../../model/protocols.ts";
import { withFlows } from "../../flows/flow-access.ts";
import { MissingNotes } from "../../flows/missing.ts";
import { flowsAskedFor } from "../../flows/query.ts";
import type { Given } from "../../main/command.ts";
import type { Call, Clock, Cluster, Terminal } from "../../main/context.ts";
import type { ComparedPolicy } from "./read-reach.ts";

export const USUAL_SINCE = "1d";

export interface PreviewedFlows {
  /** More than these were not looked at. */
  readonly isCut: boolean;
  readonly compared: number;
  readonly notJudged: number;
  readonly denied: readonly FlowRow[];
  readonly allowed: readonly FlowRow[];
}

/** Connections between two workloads to one port. */
export interface FlowRow {
  readonly from: string;
  readonly to: string;
  readonly packets: string;
  readonly connections: number;
  /** Of them, those that are open now. */
  readonly open: number;
  /** Why, after the change. */
  readonly reason: string;
}

const MOST_FLOWS = 500_000;

/** A text: why there are none. */
export async function previewFlows(
  context: Call & Terminal & Cluster & Clock,
  given: Given,
  { states }: ComparedPolicy,
): Promise<PreviewedFlows | string> {
  const since = given.values.get("since") ?? USUAL_SINCE;
  const query = flowsAskedFor({ ...given, values: new Map([["since", since]]) }, context.now());
  const comparison = new FlowComparison(states);
  const missing = new MissingNotes(context);
  try {
    await withFlows(context, given, async (ask) => {
      for await (const answer of ask("flows", query)) {
        if ("flow" in answer) comparison.add(answer.flow);
        else missing.take(answer);
        if (comparison.seen >= MOST_FLOWS) return;
      }
    });
  } catch (failure) {
    context.signal.throwIfAborted();
    if (!(failure instanceof PluginError)) throw failure;
    return `${failure.message}${failure.details === "" ? "" : ` (${failure.details})`}`;
  }
  missing.tellLosses();
  return comparison.result;
}

class FlowComparison {
  seen = 0;
  private notJudged = 0;
  /** How many records of a connection there are, and how many of each node. */
  private readonly known = new Map<string, number>();
  private readonly rows = { denied: new Map<string, FlowRow>(), allowed: new Map<string, FlowRow>() };
  private readonly before: (flow: FlowRecord) => ReplayedFlow;
  private readonly after: (flow: FlowRecord) => ReplayedFlow;

  constructor({ before, after }: ComparedPolicy["states"]) {
    this.before = flowReplay(before.resources, before);
    this.after = flowReplay(after.resources, after);
  }

  add(flow: FlowRecord): void {
    if (this.isKnown(flow)) return;
    this.seen += 1;
    const [former, present] = [this.before(flow), this.after(flow)];
    if (former.verdict === present.verdict && isCertain(present)) return;
    if (!isCertain(former) || !isCertain(present)) {
      this.notJudged += 1;
      return;
    }
    const rows = this.rows[present.verdict];
    const target = flow.backend ?? flow.destination;
    const [from, to, packets] = [groupOf(flow.source), groupOf(target), packetsOf(flow, target)];
    const name = JSON.stringify([from, to, packets]);
    const row = rows.get(name) ?? { from, to, packets, connections: 0, open: 0, reason: present.reason };
    const connections = row.connections + 1 + (flow.suppressed ?? 0);
    rows.set(name, { ...row, connections, open: row.open + (flow.state === "open" ? 1 : 0) });
  }

  /** Whether another node has recorded it too. A later connection may have the same ports, and pings have none. */
  private isKnown({ node, protocol, icmp, source, destination, backend }: FlowRecord): boolean {
    const ends = [source, backend ?? destination].map(({ address, port }) => [address, port]);
    const key = JSON.stringify([protocol, icmp, ...ends]);
    const own = `${node} ${key}`;
    const count = (this.known.get(own) ?? 0) + 1;
    this.known.set(own, count);
    if (count <= (this.known.get(key) ?? 0)) return true;
    this.known.set(key, count);
    return false;
  }

  get result(): PreviewedFlows {
    const { denied, allowed } = this.rows;
    const sorted = (rows: ReadonlyMap<string, FlowRow>) =>
      Array.from(rows.values()).sort((left, right) => right.connections - left.connections);
    return {
      ...{ isCut: this.seen >= MOST_FLOWS, compared: this.seen, notJudged: this.notJudged },
      ...{ denied: sorted(denied), allowed: sorted(allowed) },
    };
  }
}

function isCertain(flow: ReplayedFlow): flow is ReplayedFlow & { readonly verdict: "allowed" | "denied" } {
  return flow.verdict === "allowed" || flow.verdict === "denied";
}

/** As in the table of workloads. */
function groupOf({ kind, namespace, name, owner, address }: FlowEnd): string {
  const own = owner?.name ?? name;
  if (kind === "outside" || kind === "hidden" || own === undefined) return address;
  const prefix = kind === "host" ? "node " : kind === "network set" ? "set " : "";
  return `${prefix}${namespace === undefined ? own : `${namespace}/${own}`}`;
}

function packetsOf({ protocol, icmp }: FlowRecord, { port }: FlowEnd): string {
  const name =
    PROTOCOL_NAMES.find((each) => protocolNumber(each) === protocol)?.toUpperCase() ?? `protocol ${protocol}`;
  return port !== undefined && icmp === undefined ? `${name} ${port}` : name;
}
