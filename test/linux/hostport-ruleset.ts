/** A ruleset for host ports, as data of this program and as `nft` lists it. */

import type { Expression } from "../../src/linux/nftables/expression.ts";
import { loadAddress, loadPort, matchInterface, matchPrefix, verdict } from "../../src/linux/nftables/match.ts";
import type { BaseChain, NftRule, Ruleset } from "../../src/linux/nftables/ruleset.ts";
import { hostNumber, protocolValue } from "../../src/linux/nftables/value.ts";
import { prefix } from "../support/ip.ts";

const SCTP = 132;
const LOCAL_ADDRESS = 2;
const DNATED = 0x20;

export const hostportTable = { family: "ip", name: "vendor_hostport" } as const;

const toPod: readonly Expression[] = [
  loadPort("destination", 2),
  { kind: "lookup", set: "hp", from: 0, to: 0 },
  { kind: "nat", type: "dnat", family: "ip", address: 0, port: 1 },
];

const fromOutside: readonly Expression[] = [
  { kind: "fib", result: "type", by: ["daddr"], to: 0 },
  { kind: "compare", operator: "equal", from: 0, value: hostNumber(LOCAL_ADDRESS) },
  { kind: "meta", key: "l4proto", to: 0 },
  {
    kind: "lookup",
    from: 0,
    set: { key: ["inet_proto"], elements: [6, 17, SCTP].map((protocol) => ({ key: protocolValue(protocol) })) },
  },
  verdict({ kind: "jump", chain: "dn" }),
];

const rules: readonly NftRule[] = [
  {
    chain: "dn",
    expressions: [{ kind: "meta", key: "l4proto", to: 0 }, loadAddress(4, "destination", 1), ...toPod],
  },
  {
    chain: "dn",
    expressions: [
      { kind: "meta", key: "l4proto", to: 0 },
      loadAddress(4, "destination", 1),
      { kind: "bitwise", from: 1, to: 1, mask: hostNumber(0), flip: hostNumber(0) },
      ...toPod,
    ],
  },
  { chain: "pre", expressions: fromOutside },
  { chain: "out", expressions: fromOutside },
  {
    chain: "post",
    expressions: [
      { kind: "ct", key: "status", to: 0 },
      { kind: "bitwise", from: 0, to: 0, mask: hostNumber(DNATED), flip: hostNumber(0) },
      { kind: "compare", operator: "different", from: 0, value: hostNumber(DNATED) },
      verdict({ kind: "return" }),
    ],
  },
  { chain: "post", expressions: [...matchPrefix("source", prefix("127.0.0.0/8")), { kind: "masquerade" }] },
  {
    chain: "post",
    expressions: [
      loadAddress(4, "source", 0),
      loadAddress(4, "destination", 1),
      { kind: "lookup", set: "hairpin", from: 0 },
      { kind: "masquerade" },
    ],
  },
  {
    chain: "guard",
    expressions: [
      ...matchInterface("iifname", "different", "lo"),
      ...matchPrefix("destination", prefix("127.0.0.0/8")),
      { kind: "counter" },
      verdict({ kind: "drop" }),
    ],
    comment: "no martians",
  },
];

export const hostportRuleset: Ruleset = {
  table: { ...hostportTable, comment: "version 1" },
  chains: [
    { name: "dn" },
    { name: "pre", base: at("nat", "prerouting", -99) },
    { name: "out", base: at("nat", "output", -99) },
    { name: "post", base: at("nat", "postrouting", 100) },
    { name: "guard", base: at("filter", "prerouting", -300) },
  ],
  sets: [
    { name: "hp", key: ["inet_proto", "ipv4_addr", "inet_service"], data: ["ipv4_addr", "inet_service"] },
    { name: "owner", key: ["inet_proto", "ipv4_addr", "inet_service"], data: ["ipv6_addr"] },
    { name: "hairpin", key: ["ipv4_addr", "ipv4_addr"] },
  ],
  elements: [],
  rules,
};

function at(type: BaseChain["type"], hook: BaseChain["hook"], priority: number): BaseChain {
  return { type, hook, priority, policy: "accept" };
}

export const hostportListing = `table ip vendor_hostport {
	comment "version 1"
	map hp {
		type inet_proto . ipv4_addr . inet_service : ipv4_addr . inet_service
	}

	map owner {
		type inet_proto . ipv4_addr . inet_service : ipv6_addr
	}

	set hairpin {
		type ipv4_addr . ipv4_addr
	}

	chain dn {
		dnat ip to meta l4proto . ip daddr . th dport map @hp
		dnat ip to meta l4proto . ip daddr & 0.0.0.0 . th dport map @hp
	}

	chain pre {
		type nat hook prerouting priority dstnat + 1; policy accept;
		fib daddr type local meta l4proto { tcp, udp, sctp } jump dn
	}

	chain out {
		type nat hook output priority -99; policy accept;
		fib daddr type local meta l4proto { tcp, udp, sctp } jump dn
	}

	chain post {
		type nat hook postrouting priority srcnat; policy accept;
		ct status & dnat != dnat return
		ip saddr 127.0.0.0/8 masquerade
		ip saddr . ip daddr @hairpin masquerade
	}

	chain guard {
		type filter hook prerouting priority raw; policy accept;
		iifname != "lo" ip daddr 127.0.0.0/8 counter packets 0 bytes 0 drop comment "no martians"
	}
}
`;
