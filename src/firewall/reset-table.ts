/**
 * The table that resets TCP connections which policy denies now. The node agent owns it: it exists for some seconds after such a
 * connection was ended, and is gone with the agent.
 *
 *   packet that arrives ──▶ of an ended connection, and does not begin one? ──▶ its sender gets a reset, whoever it sends to gets nothing
 *   packet of this host ──▶ the same
 *   the reset itself, and what makes an idle end send something ──▶ not tracked, marked
 *
 * Before connection tracking and all translation: an ended connection is known by how each of its ends sees it, and the reset
 * comes from whom the end talks to. The kernel makes it of the packet that it answers, so that its sequence number is right.
 */
import { identity } from "../identity.ts";
import { type Address, addressBytes, type Family } from "../ip/address.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../linux/netlink-socket.ts";
import { commit } from "../linux/nftables/commit.ts";
import type { Expression } from "../linux/nftables/expression.ts";
import { loadAddress, loadPort, matchFamily, matchProtocol, type Side, verdict } from "../linux/nftables/match.ts";
import { changesOf, type NftChange, type NftRule, type TableReference } from "../linux/nftables/ruleset.ts";
import type { NftElement, NftSet } from "../linux/nftables/set.ts";
import { concatenate, portValue } from "../linux/nftables/value.ts";
import type { TcpEnd } from "../linux/tcp-probe.ts";
import { TCP } from "../model/protocols.ts";

const RESET_TABLE: TableReference = { family: "inet", name: `${identity.policyTable}_resets` };

/** One end of an ended connection: what it sends arrives like this. */
export interface EndedSender {
  readonly from: TcpEnd;
  readonly to: TcpEnd;
}

const FAMILIES = [4, 6] as const;
/** Before doNotTrack policies. */
const PRIORITY = -310;
const FLAGS_OFFSET = 13;
const FLAG = { syn: 0x02, reset: 0x04, ack: 0x10 } as const;

/** The bit of the packet mark that tells them from what programs send. */
export interface ResetMark {
  readonly set: readonly Expression[];
  readonly isSet: readonly Expression[];
}

/** Of one process: the kernel removes it when that ends. */
export class ResetTable {
  private constructor(private readonly socket: NetlinkSocket) {}

  /** Throws if the kernel cannot reset before it tracks connections, or another process has the table. */
  static open(kernel: SocketOpener, mark: ResetMark): ResetTable {
    const socket = kernel.openSocket("netfilter");
    try {
      commit(socket, resetTableChanges(mark));
      return new ResetTable(socket);
    } catch (failure) {
      closeNetlinkSocket(socket);
      throw failure;
    }
  }

  add(senders: readonly EndedSender[]): void {
    commit(this.socket, elementChanges("add-elements", senders));
  }

  /** Each must be there. */
  remove(senders: readonly EndedSender[]): void {
    commit(this.socket, elementChanges("delete-elements", senders));
  }

  /** The table is gone with the socket that owns it. */
  close(): void {
    closeNetlinkSocket(this.socket);
  }
}

function resetTableChanges(mark: ResetMark): NftChange[] {
  const passOn: readonly Expression[] = [{ kind: "notrack" }, verdict({ kind: "accept" })];
  const rules: readonly NftRule[] = [
    { chain: "output", expressions: [...mark.isSet, ...passOn] },
    // A reset to a program of this host arrives by the loopback interface, and looks as if the other end had sent it.
    { chain: "prerouting", expressions: [...mark.isSet, verdict({ kind: "accept" })] },
    ...FAMILIES.flatMap((family): readonly NftRule[] => [
      { chain: "prerouting", expressions: [...notBeginning(), ...ofEnded(family, "source"), ...reset()] },
      { chain: "output", expressions: [...isReset(), ...ofEnded(family, "destination"), ...mark.set, ...passOn] },
      { chain: "output", expressions: [...notBeginning(), ...ofEnded(family, "source"), ...reset()] },
    ]),
  ];
  const base = (hook: "prerouting" | "output") => ({
    name: hook,
    base: { type: "filter", hook, priority: PRIORITY, policy: "accept" } as const,
  });
  return [
    { kind: "add-table", table: RESET_TABLE, isOwned: true },
    ...changesOf({
      ...{ table: RESET_TABLE, sets: FAMILIES.map(setOf), rules, elements: [] },
      chains: [base("prerouting"), base("output")],
    }).slice(1),
  ];
}

function elementChanges(kind: "add-elements" | "delete-elements", senders: readonly EndedSender[]): NftChange[] {
  return Array.from(
    Map.groupBy(senders, ({ from }) => from.address.family),
    ([family, own]): NftChange => ({ kind, table: RESET_TABLE, set: setOf(family).name, elements: own.map(elementOf) }),
  );
}

function elementOf({ from, to }: EndedSender): NftElement {
  const parts = [from, to].flatMap(({ address, port }: { readonly address: Address; readonly port: number }) => [
    addressBytes(address),
    portValue(port),
  ]);
  return { key: concatenate(...parts) };
}

function setOf(family: Family): NftSet {
  const address = family === 4 ? "ipv4_addr" : "ipv6_addr";
  return { name: `ended${family}`, key: [address, "inet_service", address, "inet_service"] };
}

/** `sender`: where a packet has the end that sends what is reset. */
function ofEnded(family: Family, sender: Side): readonly Expression[] {
  const receiver = sender === "source" ? "destination" : "source";
  const words = family === 4 ? 1 : 4;
  return [
    ...matchFamily(family),
    loadAddress(family, sender, 0),
    loadPort(sender, words),
    loadAddress(family, receiver, words + 1),
    loadPort(receiver, 2 * words + 1),
    { kind: "lookup", set: setOf(family).name, from: 0 },
  ];
}

/** The policies judge what begins a connection: it may be allowed again. */
function notBeginning(): readonly Expression[] {
  return withFlags(FLAG.syn | FLAG.ack, "different", FLAG.syn);
}

function isReset(): readonly Expression[] {
  return withFlags(FLAG.reset, "equal", FLAG.reset);
}

function withFlags(mask: number, operator: "equal" | "different", value: number): readonly Expression[] {
  return [
    ...matchProtocol(TCP),
    { kind: "payload", base: "transport", offset: FLAGS_OFFSET, length: 1, to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: Uint8Array.of(mask), flip: Uint8Array.of(0) },
    { kind: "compare", operator, from: 0, value: Uint8Array.of(value) },
  ];
}

function reset(): readonly Expression[] {
  return [{ kind: "counter" }, { kind: "reject", type: "tcp reset", code: 0 }];
}
