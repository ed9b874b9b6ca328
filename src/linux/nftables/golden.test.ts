/**
 * The messages byte for byte as nft 1.0.6 sends them: nft-captures.txt contains
 * commands and the output of `strace -e write=all nft -f`, with sequence numbers cleared.
 * Anonymous sets are omitted: in addition to their contents `nft` describes the
 * expression in which they were written, which nothing reads.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { hostportRuleset, hostportTable } from "../../../test/linux/hostport-ruleset.ts";
import { address, prefix } from "../../../test/support/ip.ts";
import { addressBytes } from "../../ip/address.ts";
import { encodeBatch } from "./batch-writer.ts";
import { type Expression, ICMPX_CODE } from "./expression.ts";
import { prefixElements, rangeElements } from "./intervals.ts";
import {
  loadAddress,
  loadPort,
  matchFamily,
  matchInterfacePrefix,
  matchPorts,
  matchPrefix,
  matchProtocol,
  verdict,
} from "./match.ts";
import { changesOf, type NftChange } from "./ruleset.ts";
import { concatenate, hostNumber, interfaceValue, portValue, protocolValue } from "./value.ts";

const ACKNOWLEDGE = 4;
const table = { family: "inet", name: "x" } as const;
const TCP = protocolValue(6);
const ownerKey = concatenate(TCP, addressBytes(address("0.0.0.0")), portValue(80));
const accept = verdict({ kind: "accept" });
const drop = verdict({ kind: "drop" });
const returning = verdict({ kind: "return" });

const rule = (...expressions: readonly Expression[]): NftChange[] => [
  { kind: "add-rule", table, rule: { chain: "c", expressions } },
];
const elements = (set: string, ...list: Extract<NftChange, { kind: "add-elements" }>["elements"]): NftChange[] => [
  { kind: "add-elements", table, set, elements: list },
];

/** Changes before these give sets the same numbers as in the capture; they are not compared. */
interface Golden {
  readonly before?: readonly NftChange[];
  readonly changes: readonly NftChange[];
}

const set = (name: string): NftChange => ({ kind: "add-set", table, set: { name, key: ["mark"] } });

const GOLDEN: Readonly<Record<string, Golden>> = {
  "table ip vendor_hostport (the ruleset of test/linux/hostport-ruleset.ts)": { changes: changesOf(hostportRuleset) },
  'add element ip vendor_hostport owner { tcp . 0.0.0.0 . 80 comment "net/cid/eth0" : fd00::1 }': {
    before: changesOf({ ...hostportRuleset, rules: [] }),
    changes: [
      {
        kind: "add-elements",
        table: hostportTable,
        set: "owner",
        elements: [{ key: ownerKey, data: addressBytes(address("fd00::1")), comment: "net/cid/eth0" }],
      },
    ],
  },
  "delete element ip vendor_hostport owner { tcp . 0.0.0.0 . 80 }": {
    changes: [{ kind: "delete-elements", table: hostportTable, set: "owner", elements: [{ key: ownerKey }] }],
  },
  'add set inet x s4 { type ipv4_addr; flags interval; comment "hello"; }': {
    changes: [
      {
        kind: "add-set",
        table,
        set: { name: "s4", key: ["ipv4_addr"], holdsIntervals: true, comment: "hello" },
      },
    ],
  },
  "add element inet x s4 { 10.0.0.0/8, 192.168.1.5 }": {
    before: [set("s4")],
    changes: elements(
      "s4",
      { key: hostNumber(0), interval: "end" },
      ...prefixElements([prefix("10.0.0.0/8"), prefix("192.168.1.5/32")]),
    ),
  },
  "add element inet x s4 { 255.0.0.0/8 }": {
    before: [set("s4")],
    changes: elements("s4", ...prefixElements([prefix("255.0.0.0/8")])),
  },
  "add map inet x vm { type ifname : verdict; }": {
    changes: [{ kind: "add-set", table, set: { name: "vm", key: ["ifname"], data: "verdict" } }],
  },
  'add element inet x vm { "cali1" : goto d }': {
    before: [set("s4"), set("vm")],
    changes: elements("vm", { key: interfaceValue("cali1"), data: { kind: "goto", chain: "d" } }),
  },
  "add set inet x cc { type ipv4_addr . inet_service; flags interval; }": {
    changes: [
      { kind: "add-set", table, set: { name: "cc", key: ["ipv4_addr", "inet_service"], holdsIntervals: true } },
    ],
  },
  "add element inet x cc { 10.0.0.0/8 . 80-90 }": {
    before: [set("s4"), set("vm"), set("cc")],
    changes: elements("cc", {
      key: concatenate(addressBytes(address("10.0.0.0")), portValue(80)),
      keyEnd: concatenate(addressBytes(address("10.255.255.255")), portValue(90)),
    }),
  },
  "add set inet x ports { type inet_service; }": {
    changes: [{ kind: "add-set", table, set: { name: "ports", key: ["inet_service"] } }],
  },
  "add set inet x ia { type ifname . ipv4_addr; }": {
    changes: [{ kind: "add-set", table, set: { name: "ia", key: ["ifname", "ipv4_addr"] } }],
  },
  'add element inet x ia { "cali1" . 10.0.0.1 }': {
    before: [set("s4"), set("vm"), set("cc"), set("ports"), set("ia")],
    changes: elements("ia", { key: concatenate(interfaceValue("cali1"), addressBytes(address("10.0.0.1"))) }),
  },
  'add chain inet x f { type filter hook forward priority 1; policy drop; comment "way"; }': {
    changes: [
      {
        kind: "add-chain",
        table,
        chain: {
          name: "f",
          base: { type: "filter", hook: "forward", priority: 1, policy: "drop" },
          comment: "way",
        },
      },
    ],
  },
  "add rule inet x c ct state vmap { established : accept, related : accept, invalid : drop }": {
    before: Array.from({ length: 10 }, (_, index) => set(`s${index}`)),
    changes: rule(
      { kind: "ct", key: "state", to: 0 },
      {
        kind: "lookup",
        from: 0,
        to: "verdict",
        set: {
          key: ["ct_state"],
          data: "verdict",
          elements: [
            { key: hostNumber(2), data: { kind: "accept" } },
            { key: hostNumber(4), data: { kind: "accept" } },
            { key: hostNumber(1), data: { kind: "drop" } },
          ],
        },
      },
    ),
  },
  "add set inet x dd { type ipv4_addr . inet_service; flags dynamic,timeout; timeout 10s; }": {
    changes: [
      {
        kind: "add-set",
        table,
        set: { name: "dd", key: ["ipv4_addr", "inet_service"], timeoutMilliseconds: 10_000 },
      },
    ],
  },
  "add rule inet x c delete @dd { ip saddr . tcp sport }": {
    before: [set("dd")],
    changes: rule(...matchFamily(4), ...matchProtocol(6), loadAddress(4, "source", 0), loadPort("source", 1), {
      kind: "remove-element",
      set: "dd",
      from: 0,
    }),
  },
  'add rule inet x c iifname "cali*" jump d': {
    changes: rule(...matchInterfacePrefix("iifname", "cali"), verdict({ kind: "jump", chain: "d" })),
  },
  "add rule inet x c iifname vmap @vm": {
    before: [set("s4"), set("vm")],
    changes: rule({ kind: "meta", key: "iifname", to: 0 }, { kind: "lookup", set: "vm", from: 0, to: "verdict" }),
  },
  "add rule inet x c ip saddr @s4 tcp dport 80-90 accept": {
    before: [set("s4")],
    changes: rule(
      ...matchFamily(4),
      loadAddress(4, "source", 0),
      { kind: "lookup", set: "s4", from: 0 },
      ...matchProtocol(6),
      ...matchPorts("destination", 80, 90),
      accept,
    ),
  },
  "add rule inet x c ip6 daddr fd00::/64 udp dport != { 53, 100-200 } counter drop": {
    before: Array.from({ length: 11 }, (_, index) => set(`s${index}`)),
    changes: rule(
      ...matchFamily(6),
      ...matchPrefix("destination", prefix("fd00::/64")),
      ...matchProtocol(17),
      loadPort("destination", 0),
      {
        kind: "lookup",
        from: 0,
        isInverted: true,
        set: {
          key: ["inet_service"],
          holdsIntervals: true,
          elements: [
            { key: portValue(0), interval: "end" },
            ...rangeElements([
              { first: portValue(53), last: portValue(53) },
              { first: portValue(100), last: portValue(200) },
            ]),
          ],
        },
      },
      { kind: "counter" },
      drop,
    ),
  },
  "add rule inet x c ip daddr . meta l4proto . th dport != { 1.2.3.4 . tcp . 80 } return": {
    before: Array.from({ length: 12 }, (_, index) => set(`s${index}`)),
    changes: rule(
      ...matchFamily(4),
      loadAddress(4, "destination", 0),
      { kind: "meta", key: "l4proto", to: 1 },
      loadPort("destination", 2),
      {
        kind: "lookup",
        from: 0,
        isInverted: true,
        set: {
          key: ["ipv4_addr", "inet_proto", "inet_service"],
          elements: [{ key: concatenate(addressBytes(address("1.2.3.4")), TCP, portValue(80)) }],
        },
      },
      returning,
    ),
  },
  "add rule inet x c meta mark set meta mark and 0xffffff00 or 0x5": {
    changes: rule(
      { kind: "meta", key: "mark", to: 0 },
      { kind: "bitwise", from: 0, to: 0, mask: hostNumber(0xffffff00), flip: hostNumber(5) },
      { kind: "set-meta", key: "mark", from: 0 },
    ),
  },
  'add rule inet x c meta mark & 0x1 == 0x1 log prefix "denied " level info': {
    changes: rule(
      { kind: "meta", key: "mark", to: 0 },
      { kind: "bitwise", from: 0, to: 0, mask: hostNumber(1), flip: hostNumber(0) },
      { kind: "compare", operator: "equal", from: 0, value: hostNumber(1) },
      { kind: "log", prefix: "denied ", level: 6 },
    ),
  },
  'add rule inet x c log group 3 prefix "a"': { changes: rule({ kind: "log", prefix: "a", group: 3 }) },
  "add rule inet x c limit rate 10/second burst 5 packets accept": {
    changes: rule({ kind: "limit", rate: 10n, per: "second", burst: 5 }, accept),
  },
  "add rule inet x c notrack": { changes: rule({ kind: "notrack" }) },
  "add rule inet x c meta l4proto tcp reject with tcp reset": {
    changes: rule(...matchProtocol(6), { kind: "reject", type: "tcp reset", code: 0 }),
  },
  "add rule inet x c counter reject with icmpx type admin-prohibited": {
    changes: rule({ kind: "counter" }, { kind: "reject", type: "icmpx", code: ICMPX_CODE.adminProhibited }),
  },
  "add rule inet x c fib saddr . iif oif missing drop": {
    changes: rule(
      { kind: "fib", result: "oif", by: ["saddr", "iif", "present"], to: 0 },
      { kind: "compare", operator: "equal", from: 0, value: hostNumber(0) },
      drop,
    ),
  },
  "add rule inet x c ct mark set 1": {
    changes: rule({ kind: "immediate", to: 0, value: hostNumber(1) }, { kind: "set-ct", key: "mark", from: 0 }),
  },
  "add rule inet x c ct label set 5": {
    changes: rule(
      { kind: "immediate", to: 0, value: Uint8Array.of(0x20, ...Array<number>(15).fill(0)) },
      { kind: "set-ct", key: "label", from: 0 },
    ),
  },
  "flush chain inet x c": { changes: [{ kind: "flush-chain", table, chain: "c" }] },
};

describe("encodeBatch()", () => {
  const captures = readCaptures();

  test.each(Object.entries(GOLDEN))("writes what `%s` writes", (command, { before = [], changes }) => {
    const all = messagesOf([...before, ...changes]);
    const own = before.length === 0 ? all : all.slice(messagesOf(before).length);
    const captured = captures.get(command);
    expect(captured).toBeDefined();
    expect(own.filter(isNotAnonymousSet)).toEqual((captured ?? []).filter(isNotAnonymousSet));
  });

  test("covers every captured command", () => {
    expect([...captures.keys()].sort()).toEqual(Object.keys(GOLDEN).sort());
  });

  test("cuts the prefix of a log line after a whole character: the kernel refuses more than 127 bytes", () => {
    const log = (prefix: string) => messagesOf(rule({ kind: "log", prefix, group: 3 }));
    expect(log("é".repeat(110))).toEqual(log("é".repeat(63)));
    expect(log(`x${"é".repeat(110)}`)).toEqual(log(`x${"é".repeat(63)}`));
    expect(log("x".repeat(128))).toEqual(log("x".repeat(127)));
    expect(log("x".repeat(127))).not.toEqual(log("x".repeat(126)));
  });

  test("frames the batch, requests one acknowledgement for the last message, and maps messages to changes", () => {
    const many = Array.from({ length: 4000 }, (_, index) => ({ key: hostNumber(index) }));
    const changes = [set("a"), ...elements("a", ...many), set("b")];
    const { bytes, changeOfMessage } = encodeBatch(changes, 7, 5);
    const messages = split(bytes);
    const types = messages.map((message) => viewOf(message).getUint16(4, true));

    expect(changeOfMessage).toEqual([0, 1, 1, 2]);
    expect(types).toEqual([16, 0x0a09, 0x0a0c, 0x0a0c, 0x0a09, 17]);
    expect(messages[0]?.toHex()).toBe(`1c00000010000100${"07000000"}000000000000000a0800010000000005`);
    expect(messages.map((message) => viewOf(message).getUint32(8, true))).toEqual([7, 8, 9, 10, 11, 12]);
    const asking = messages.map((message) => (viewOf(message).getUint16(6, true) & ACKNOWLEDGE) !== 0);
    expect(asking).toEqual([false, false, false, false, true, false]);
  });
});

function messagesOf(changes: readonly NftChange[]): string[] {
  const messages = split(encodeBatch(changes, 0).bytes).slice(1, -1);
  for (const message of messages) {
    const view = viewOf(message);
    view.setUint32(8, 0);
    view.setUint16(6, view.getUint16(6, true) & ~ACKNOWLEDGE, true);
  }
  return messages.map((message) => message.toHex());
}

function split(bytes: Uint8Array): Uint8Array[] {
  const messages: Uint8Array[] = [];
  for (let start = 0; start < bytes.length; ) {
    const length = viewOf(bytes).getUint32(start, true);
    messages.push(bytes.slice(start, start + length));
    start += (length + 3) & ~3;
  }
  return messages;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

function isNotAnonymousSet(hex: string): boolean {
  return !/^.{8}090a.*5f5f(736574|6d6170)256400/.test(hex);
}

function readCaptures(): Map<string, string[]> {
  const captures = new Map<string, string[]>();
  let messages: string[] = [];
  for (const line of readFileSync(`${import.meta.dir}/nft-captures.txt`, "utf8").split("\n")) {
    if (line.startsWith("## ")) {
      messages = [];
      captures.set(line.slice(3), messages);
    } else if (line !== "") messages.push(line.slice(line.indexOf(" ") + 1));
  }
  return captures;
}
