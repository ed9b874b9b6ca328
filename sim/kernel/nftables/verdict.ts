/**
 * What all tables of a namespace do with a packet at one hook, as the kernel does it: base chains in the order of their
 * priorities, the first that drops decides. Chains that translate addresses run together, where the kernel translates, and the
 * first translation counts. Pure, except that it changes the flow.
 */
import { type Address, addressFromBytes, type Family } from "../../../src/ip/address.ts";
import type { Expression } from "../../../src/linux/nftables/expression.ts";
import type { Hook, NftFamily } from "../../../src/linux/nftables/ruleset.ts";
import { hostNumber, interfaceValue } from "../../../src/linux/nftables/value.ts";
import type { Packet } from "../../../src/policy/judge/packet.ts";
import type { HookPassage } from "../../../test/support/interpret/hook-passage.ts";
import { packetBytes } from "../../../test/support/interpret/packet-bytes.ts";
import {
  type ConnectionState,
  type PacketMarks,
  type Translation,
  unmarked,
} from "../../../test/support/interpret/packet-marks.ts";
import { RuleRun } from "../../../test/support/interpret/rule-run.ts";
import type { ModelChain, ModelTable, NetfilterState } from "./state.ts";

export interface PacketAtHook {
  readonly hook: Hook;
  readonly packet: Packet;
  /** Where it came in: absent if the host sends it. */
  readonly iif?: Interface;
  /** Where it goes out: absent before the route is known. */
  readonly oif?: Interface;
}

export interface Interface {
  readonly index: number;
  readonly name: string;
}

/** What rules and the connection tracking remember of a packet from hook to hook on one host. */
export type PacketFlow = PacketMarks;

export function newFlow(state: ConnectionState = "new"): PacketFlow {
  return unmarked(state);
}

export interface FoundRoute {
  readonly type: keyof typeof ROUTE_TYPE;
  /** The interfaces of its next hops. */
  readonly oifs: readonly number[];
}

/** What the rest of the host knows. */
export interface NetfilterSurroundings {
  /** `only`: for IPv6, routes through other interfaces than this one do not count; for IPv4 it can be ignored. */
  route(to: Address, only?: number): FoundRoute | undefined;
  /** The source of packets that are masqueraded at this interface. */
  addressOf(oif: number, family: Family): Address | undefined;
  nameOf(index: number): string | undefined;
}

export interface HookVerdict {
  readonly verdict: "accept" | "drop";
  /** With other addresses if they were translated. */
  readonly packet: Packet;
  /** The rule that decided, or the chain whose policy did. */
  readonly by?: { readonly table: string; readonly chain: string; readonly comment?: string | undefined };
}

const ROUTE_TYPE = {
  unicast: 1,
  local: 2,
  broadcast: 3,
  multicast: 5,
  blackhole: 6,
  unreachable: 7,
  prohibit: 8,
} as const;
/** Where the kernel translates, whatever the priorities of the chains are. */
const TRANSLATION_AT: Readonly<Record<Hook, number>> = {
  prerouting: -100,
  input: 100,
  forward: 0,
  output: -100,
  postrouting: 100,
};

export function verdictOf(
  state: NetfilterState,
  at: PacketAtHook,
  flow: PacketFlow,
  surroundings: NetfilterSurroundings,
): HookVerdict {
  let { packet } = at;
  let by: HookVerdict["by"];
  let isTranslated = false;
  for (const { table, chain } of chainsAt(state, at.hook, packet.source.family)) {
    const { base, name } = chain.chain;
    const isNat = base?.type === "nat";
    // Only the first packet of a connection is looked at; the others are translated like it.
    if (isNat && (isTranslated || flow.state !== "new")) continue;
    const run = new RuleRun(table, passageOf({ ...at, packet }, surroundings), flow);
    const verdict = run.chain(name) ?? base?.policy ?? "accept";
    if (run.decidedIn !== undefined || verdict === "drop")
      by = { table: table.name, chain: run.decidedIn ?? name, comment: run.by };
    if (verdict === "drop") return { verdict, packet, ...(by === undefined ? {} : { by }) };
    const { translation } = flow;
    flow.translation = undefined;
    if (!isNat || translation === undefined) continue;
    isTranslated = true;
    flow.translated.add(translation.end);
    packet = translated(packet, translation, at, surroundings);
  }
  return { verdict: "accept", packet, ...(by === undefined ? {} : { by }) };
}

interface ChainAt {
  readonly table: ModelTable;
  readonly chain: ModelChain;
}

function chainsAt(state: NetfilterState, hook: Hook, family: Family): readonly ChainAt[] {
  const all = [...state.tables.values()]
    .filter((table) => concerns(table.family, family))
    .flatMap((table) => [...table.chains.values()].map((chain) => ({ table, chain })))
    .filter(({ chain }) => chain.chain.base?.hook === hook);
  const priorityOf = ({ chain: { chain } }: ChainAt) => chain.base?.priority ?? 0;
  const placeOf = (each: ChainAt) => (each.chain.chain.base?.type === "nat" ? TRANSLATION_AT[hook] : priorityOf(each));
  // Of two with the same priority, the kernel runs the one that was registered last first.
  return all
    .toReversed()
    .toSorted((left, right) => placeOf(left) - placeOf(right) || priorityOf(left) - priorityOf(right));
}

function concerns(table: NftFamily, family: Family): boolean {
  return table === "inet" || table === (family === 4 ? "ip" : "ip6");
}

function passageOf(at: PacketAtHook, surroundings: NetfilterSurroundings): HookPassage {
  const { hook, packet, iif, oif } = at;
  return {
    hook,
    packet: packetBytes(packet),
    ...(iif === undefined ? {} : { iif: iif.index, iifname: iif.name }),
    ...(oif === undefined ? {} : { oif: oif.index, oifname: oif.name }),
    fib: (question) => answerFib(question, at, surroundings),
  };
}

const LOOPBACK = "lo";

/** A source that is local to the host has no route back, and the loopback interface always has one. */
function answerFib(
  { result, by }: Extract<Expression, { kind: "fib" }>,
  { hook, packet, iif, oif }: PacketAtHook,
  surroundings: NetfilterSurroundings,
): Uint8Array {
  const address = by.includes("saddr") ? packet.source : packet.destination;
  const only = by.includes("iif") ? iif?.index : by.includes("oif") ? oif?.index : undefined;
  const route = surroundings.route(address, only);
  if (result === "type") return hostNumber(route === undefined ? 0 : ROUTE_TYPE[route.type]);
  if (hook === "prerouting" && iif?.name === LOOPBACK) return interfaceFound(result, by, iif.index, surroundings);
  const oifs = route?.type === "unicast" ? route.oifs : [];
  const found = only === undefined ? oifs[0] : oifs.find((each) => each === only);
  return interfaceFound(result, by, found ?? 0, surroundings);
}

function interfaceFound(
  result: "oif" | "oifname",
  by: readonly string[],
  index: number,
  { nameOf }: NetfilterSurroundings,
): Uint8Array {
  if (by.includes("present")) return Uint8Array.of(index === 0 ? 0 : 1);
  return result === "oif" ? hostNumber(index) : interfaceValue(index === 0 ? "" : (nameOf(index) ?? ""));
}

function translated(
  packet: Packet,
  { end, address, port }: Translation,
  { oif }: PacketAtHook,
  surroundings: NetfilterSurroundings,
): Packet {
  const { family } = packet.source;
  const to =
    address === "masquerade"
      ? surroundings.addressOf(oif?.index ?? 0, family)
      : address === undefined
        ? undefined
        : addressFromBytes(address);
  const toPort = port === undefined ? undefined : new DataView(port.buffer, port.byteOffset).getUint16(0);
  if (end === "source")
    return {
      ...packet,
      ...(to === undefined ? {} : { source: to }),
      ...(toPort === undefined ? {} : { sourcePort: toPort }),
    };
  return {
    ...packet,
    ...(to === undefined ? {} : { destination: to }),
    ...(toPort === undefined ? {} : { destinationPort: toPort }),
    beforeNat: packet.beforeNat ?? packet,
  };
}
