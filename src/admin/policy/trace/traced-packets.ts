/** Joins what the kernel reports about packets: who decided about each of them. Pure. */
import { POLICY_TABLE } from "../../../firewall/policy-table.ts";
import type { TableReference } from "../../../linux/nftables/ruleset.ts";
import type { TraceEvent } from "../../../linux/nftables/trace.ts";
import { type PacketHead, readHead } from "../../../linux/packet-head.ts";
import { REJECTED } from "../../../policy/render/rejected.ts";

export interface TracedPacket {
  /** As it arrived at this host; absent if it is not an IP packet. */
  readonly head: PacketHead | undefined;
  /** `rejected`: dropped, and its sender was told, as far as the kernel allows. */
  readonly outcome: "dropped" | "rejected" | "passed";
  /** The rules and policies of chains that accepted or dropped it, in order; the last one dropped it if it was. */
  readonly decisions: readonly Decision[];
}

export interface Decision {
  readonly table: TableReference;
  readonly chain: string;
  /** Of the rule; absent if the policy of the base chain decided. */
  readonly handle?: bigint;
  readonly verdict: "accept" | "drop";
}

interface OpenPacket {
  readonly head: PacketHead | undefined;
  readonly markedIn: string;
  readonly decisions: Decision[];
  /** By the last rule. */
  lastRule: Pick<Decision, "table" | "chain" | "handle"> | undefined;
  outcome: TracedPacket["outcome"];
  quietRounds: number;
}

/** So many rounds without an event: the packet has left the last chain. */
const QUIET_ROUNDS = 4;

export class TracedPackets {
  private readonly open = new Map<number, OpenPacket>();
  private readonly done: TracedPacket[] = [];

  /** `marking`: the table where the trace of each packet begins. Other packets are those of another tracer. */
  constructor(private readonly marking: TableReference) {}

  /** Call it in regular rounds, also without events. Returns the packets that are decided. */
  round(events: readonly TraceEvent[]): readonly TracedPacket[] {
    for (const packet of this.open.values()) packet.quietRounds += 1;
    for (const event of events) this.add(event);
    for (const [id, packet] of this.open)
      if (packet.outcome !== "passed" || packet.quietRounds >= QUIET_ROUNDS) this.finish(id);
    return this.done.splice(0);
  }

  /** Those that are not decided yet, as far as they are known. */
  rest(): readonly TracedPacket[] {
    for (const id of [...this.open.keys()]) this.finish(id);
    return this.done.splice(0);
  }

  private add(event: TraceEvent): void {
    const { packet: id, table, kind, chain, handle, verdict } = event;
    if (table.name === this.marking.name && table.family === this.marking.family) {
      if (handle !== undefined) this.begin(event);
      return;
    }
    const packet = this.open.get(id);
    if (packet === undefined) return;
    packet.quietRounds = 0;
    const rule = { table, chain, ...(kind === "rule" && handle !== undefined ? { handle } : {}) };
    const isRejection = verdict === "drop" && isRejected(event);
    // The rule that denied the packet sent it there.
    const decider = isRejection ? (packet.lastRule ?? rule) : rule;
    if (kind === "rule") packet.lastRule = rule;
    const isDecision = verdict === "drop" || (verdict === "accept" && kind === "rule");
    if (!isDecision) return;
    packet.decisions.push({ ...decider, verdict });
    if (verdict === "drop") packet.outcome = isRejection ? "rejected" : "dropped";
  }

  private begin(event: TraceEvent): void {
    const { packet: id, chain, networkHeader, transportHeader } = event;
    const known = this.open.get(id);
    // A packet of the host to itself is marked twice: where it leaves, and where it arrives.
    if (known !== undefined && known.markedIn !== chain) return;
    // The kernel may use the number of an earlier packet again.
    this.finish(id);
    const head = networkHeader && readHead(networkHeader, transportHeader);
    this.open.set(id, { head, markedIn: chain, decisions: [], lastRule: undefined, outcome: "passed", quietRounds: 0 });
  }

  private finish(id: number): void {
    const packet = this.open.get(id);
    if (packet === undefined) return;
    this.open.delete(id);
    const { head, decisions, outcome } = packet;
    this.done.push({ head, outcome, decisions });
  }
}

function isRejected({ table, chain }: TraceEvent): boolean {
  return table.family === POLICY_TABLE.family && table.name === POLICY_TABLE.name && chain === REJECTED;
}
