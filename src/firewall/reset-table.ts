/**
 * The table that resets TCP connections which policy denies now. The node agent owns it: it exists for some seconds after such a
 * connection was ended, and is gone with the agent.
 *
 *   packet of an ended connection ──▶ from a pod, with a source that is not the pod's? ──▶ the guard, which comes next, drops it
 *   that arrives, or of this host └─▶ begins a connection? ──▶ what its sender had before is forgotten, and the policies judge it
 *                                 └─▶ its sender gets a reset, whoever it sends to gets nothing
 *   the reset itself, and what makes an idle end send something ──▶ not tracked, marked
 *
 * A connection that begins with the addresses and ports of an ended one is another one: it may be allowed by now, or answered by
 * another pod behind the Service. Both its ends begin with a SYN, unless that is a reply to what only made an idle end send something.
 *
 * Before connection tracking and all translation: an ended connection is known by how each of its ends sees it, and the reset
 * comes from whom the end talks to. The kernel makes it of the packet that it answers, so that its sequence number is right.
 */
import { identity } from "../identity.ts";
import { type Address, addressBytes, type Family } from "../ip/address.ts";
import { isKernelError } from "../linux/kernel-error.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../linux/netlink-socket.ts";
import { commit, tryCommit } from "../linux/nftables/commit.ts";
import type { Expression } from "../linux/nftables/expression.ts";
import {
  loadAddress,
  loadPort,
  matchFamily,
  matchInterfacePrefix,
  matchProtocol,
  type Side,
  verdict,
} from "../linux/nftables/match.ts";
import { changesOf, type NftChange, type NftRule, type TableReference } from "../linux/nftables/ruleset.ts";
import type { NftElement, NftSet } from "../linux/nftables/set.ts";
import { concatenate, hostNumber, portValue } from "../linux/nftables/value.ts";
import { PROBE_ACKNOWLEDGEMENT, type TcpEnd } from "../linux/tcp-probe.ts";
import { TCP } from "../model/protocols.ts";

const RESET_TABLE: TableReference = { family: "inet", name: `${identity.policyTable}_resets` };

/** One end of an ended connection: what it sends arrives like this. */
export interface EndedSender {
  readonly from: TcpEnd;
  readonly to: TcpEnd;
}

const FAMILIES = [4, 6] as const;
/** Before the guard of sources and doNotTrack policies: what these drop gets no reset. */
const PRIORITY = -310;
const ARRIVED_CHAIN = "arrived";
const NO_ROUTE = 0;
/** Longer than a round trip, and than a packet that was sent before. */
export const RESET_MILLISECONDS = 10_000;
const FLAGS_OFFSET = 13;
const FLAG = { syn: 0x02, reset: 0x04 } as const;
const ACKNOWLEDGEMENT = { offset: 8, length: 4 } as const;

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

  /** Until they begin again, at most for `RESET_MILLISECONDS`. */
  add(senders: readonly EndedSender[]): void {
    commit(this.socket, elementChanges("add-elements", senders));
  }

  /** Also if it is not there any more. */
  remove(sender: EndedSender): void {
    const [refusal] = tryCommit(this.socket, elementChanges("delete-elements", [sender]));
    if (refusal !== undefined && !isKernelError(refusal.error, "ENOENT")) throw refusal.error;
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
      {
        chain: "output",
        expressions: [...withFlag(FLAG.reset), ...ofEnded(family, "destination"), ...mark.set, ...passOn],
      },
      { chain: "output", expressions: [...beginning(), ...forget(family), verdict({ kind: "accept" })] },
      { chain: "output", expressions: [...matchProtocol(TCP), ...ofEnded(family, "source"), ...reset()] },
      {
        chain: "prerouting",
        expressions: [
          ...matchProtocol(TCP),
          ...ofEnded(family, "source"),
          verdict({ kind: "goto", chain: ARRIVED_CHAIN }),
        ],
      },
      { chain: ARRIVED_CHAIN, expressions: [...ofForeignSource(family), verdict({ kind: "accept" })] },
      { chain: ARRIVED_CHAIN, expressions: [...beginning(), ...forget(family), verdict({ kind: "accept" })] },
    ]),
    { chain: ARRIVED_CHAIN, expressions: reset() },
  ];
  const base = (hook: "prerouting" | "output") => ({
    name: hook,
    base: { type: "filter", hook, priority: PRIORITY, policy: "accept" } as const,
  });
  return [
    { kind: "add-table", table: RESET_TABLE, isOwned: true },
    ...changesOf({
      ...{ table: RESET_TABLE, sets: FAMILIES.map(setOf), rules, elements: [] },
      chains: [{ name: ARRIVED_CHAIN }, base("prerouting"), base("output")],
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
  const key = [address, "inet_service", address, "inet_service"] as const;
  return { name: `ended${family}`, key, timeoutMilliseconds: RESET_MILLISECONDS };
}

/** `sender`: where a packet has the end that sends what is reset. */
function ofEnded(family: Family, sender: Side): readonly Expression[] {
  return [...loadEnds(family, sender), { kind: "lookup", set: setOf(family).name, from: 0 }];
}

/** As the guard sees it. */
function ofForeignSource(family: Family): readonly Expression[] {
  return [
    ...matchInterfacePrefix("iifname", identity.interfacePrefix),
    ...matchFamily(family),
    { kind: "fib", result: "oif", by: ["saddr", "iif"], to: 0 },
    { kind: "compare", operator: "equal", from: 0, value: hostNumber(NO_ROUTE) },
  ];
}

function forget(family: Family): readonly Expression[] {
  return [...loadEnds(family, "source"), { kind: "remove-element", set: setOf(family).name, from: 0 }];
}

function loadEnds(family: Family, sender: Side): readonly Expression[] {
  const receiver = sender === "source" ? "destination" : "source";
  const words = family === 4 ? 1 : 4;
  return [
    ...matchFamily(family),
    loadAddress(family, sender, 0),
    loadPort(sender, words),
    loadAddress(family, receiver, words + 1),
    loadPort(receiver, 2 * words + 1),
  ];
}

function beginning(): readonly Expression[] {
  const acknowledged = new Uint8Array(ACKNOWLEDGEMENT.length);
  new DataView(acknowledged.buffer).setUint32(0, PROBE_ACKNOWLEDGEMENT);
  return [
    ...withFlag(FLAG.syn),
    { kind: "payload", base: "transport", ...ACKNOWLEDGEMENT, to: 0 },
    { kind: "compare", operator: "different", from: 0, value: acknowledged },
  ];
}

function withFlag(flag: number): readonly Expression[] {
  return [
    ...matchProtocol(TCP),
    { kind: "payload", base: "transport", offset: FLAGS_OFFSET, length: 1, to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: Uint8Array.of(flag), flip: Uint8Array.of(0) },
    { kind: "compare", operator: "equal", from: 0, value: Uint8Array.of(flag) },
  ];
}

function reset(): readonly Expression[] {
  return [{ kind: "counter" }, { kind: "reject", type: "tcp reset", code: 0 }];
}
