/**
 * Follows packets through all chains of this network namespace, those of other programs too. A table of its own marks them
 * (`meta nftrace set 1`), and the kernel then reports every rule that one of them matches.
 *
 * The table has an owner, this socket: it is gone with it, however the process ends. Linux 5.12 and later.
 */
import type { AttributeCursor, MessageCursor } from "../netlink/message-reader.ts";
import { drain, hasLost, joinGroups } from "../netlink-group.ts";
import { closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket } from "../netlink-socket.ts";
import { commit } from "./commit.ts";
import type { Expression } from "./expression.ts";
import { type KnownRule, listRules } from "./read.ts";
import type { ChainPolicy, NftChange, NftFamily, TableReference } from "./ruleset.ts";
import { readVerdict, type Verdict } from "./verdict.ts";
import * as wire from "./wire.ts";

/** NFNLGRP_NFTRACE */
const GROUP = 9;
/** A packet causes some 20 messages of 200 bytes. */
const BUFFER_BYTES = 8 * 1024 * 1024;
/** Before all other chains of the hook. */
const FIRST = -2_147_483_648;
const MOST_PER_SECOND = 50;

const TRACE = {
  table: 1,
  chain: 2,
  handle: 3,
  type: 4,
  verdict: 5,
  id: 6,
  networkHeader: 8,
  transportHeader: 9,
  policy: 16,
} as const;
const TYPE = { 1: "policy", 2: "return", 3: "rule" } as const;

/** One thing that happened to a packet. */
export interface TraceEvent {
  /** The kernel's number of the packet. It may be used again later. */
  readonly packet: number;
  /** A rule matched, a chain returned, or a base chain ended with its policy. */
  readonly kind: "rule" | "return" | "policy";
  readonly table: TableReference;
  readonly chain: string;
  readonly handle?: bigint;
  /** Absent if it is none that this program knows: queued or stolen. */
  readonly verdict?: Verdict["kind"];
  /** With the first event of each base chain. */
  readonly networkHeader?: Uint8Array;
  readonly transportHeader?: Uint8Array;
}

export interface TraceReading {
  readonly events: readonly TraceEvent[];
  /** Some events did not fit into the buffer. */
  readonly hasLost: boolean;
}

export interface Tracer {
  /** Where the trace of each packet begins. */
  readonly table: TableReference;
  /** What has arrived since the last call. */
  read(): TraceReading;
  /** In the order of evaluation; none if the chain is gone. */
  rulesOf(table: TableReference, chain: string): readonly KnownRule[];
  close(): void;
}

export class PacketTracer implements Tracer {
  private readonly listener: NetlinkSocket;
  private readonly owner: NetlinkSocket;

  /** Marks packets that meet one of the lists of conditions, not more than some 50 a second. */
  constructor(
    readonly table: TableReference,
    alternatives: readonly (readonly Expression[])[],
  ) {
    this.listener = openNetlinkSocket("netfilter");
    this.owner = openNetlinkSocket("netfilter");
    try {
      joinGroups(this.listener, [GROUP], BUFFER_BYTES);
      commit(this.owner, markingTable(table, alternatives));
    } catch (failure) {
      this.close();
      throw failure;
    }
  }

  read(): TraceReading {
    const events: TraceEvent[] = [];
    const drained = drain(this.listener, (message) => {
      const event = readTrace(message);
      if (event !== undefined) events.push(event);
    });
    return { events, hasLost: hasLost(drained) };
  }

  rulesOf(table: TableReference, chain: string): readonly KnownRule[] {
    return listRules(this.owner, table, chain);
  }

  /** Removes the table. */
  close(): void {
    closeNetlinkSocket(this.owner);
    closeNetlinkSocket(this.listener);
  }
}

const CHAINS = ["prerouting", "output"] as const;

function markingTable(table: TableReference, alternatives: readonly (readonly Expression[])[]): NftChange[] {
  const mark: readonly Expression[] = [
    { kind: "limit", rate: BigInt(MOST_PER_SECOND), per: "second", burst: MOST_PER_SECOND },
    { kind: "immediate", to: 0, value: Uint8Array.of(1) },
    { kind: "set-meta", key: "nftrace", from: 0 },
  ];
  return [
    { kind: "add-table", table, isOwned: true },
    ...CHAINS.flatMap((hook): NftChange[] => [
      {
        kind: "add-chain",
        table,
        chain: { name: hook, base: { type: "filter", hook, priority: FIRST, policy: "accept" } },
      },
      ...alternatives.map(
        (conditions): NftChange => ({
          kind: "add-rule",
          table,
          rule: { chain: hook, expressions: [...conditions, ...mark] },
        }),
      ),
    ]),
  ];
}

function readTrace(message: MessageCursor): TraceEvent | undefined {
  if (message.type !== wire.MESSAGE.trace) return undefined;
  const family = familyOf(message.view.getUint8(message.start));
  let [packet, name, chain] = [0, "", ""];
  let kind: TraceEvent["kind"] | undefined;
  const more: { -readonly [Field in keyof TraceEvent]?: TraceEvent[Field] } = {};
  const attributes = message.attributes(wire.HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === TRACE.id) packet = attributes.u32Big();
    else if (attributes.type === TRACE.table) name = attributes.text();
    else if (attributes.type === TRACE.chain) chain = attributes.text();
    else if (attributes.type === TRACE.handle) more.handle = attributes.u64Big();
    else if (attributes.type === TRACE.type) kind = kindOf(attributes.u32Big());
    else if (attributes.type === TRACE.verdict) Object.assign(more, verdictIn(attributes.nested()));
    else if (attributes.type === TRACE.policy) more.verdict = policyOf(attributes.u32Big());
    else if (attributes.type === TRACE.networkHeader) more.networkHeader = attributes.copy();
    else if (attributes.type === TRACE.transportHeader) more.transportHeader = attributes.copy();
  }
  if (kind === undefined || family === undefined) return undefined;
  return { packet, kind, table: { family, name }, chain, ...more };
}

function kindOf(number: number): TraceEvent["kind"] | undefined {
  return number === 1 || number === 2 || number === 3 ? TYPE[number] : undefined;
}

function verdictIn(attributes: AttributeCursor): Pick<TraceEvent, "verdict"> {
  const verdict = readVerdict(attributes);
  return verdict === undefined ? {} : { verdict: verdict.kind };
}

function policyOf(number: number): ChainPolicy {
  return number === wire.POLICY.drop ? "drop" : "accept";
}

function familyOf(number: number): NftFamily | undefined {
  for (const family of ["inet", "ip", "ip6", "bridge", "netdev"] as const)
    if (wire.FAMILY[family] === number) return family;
  return undefined;
}
