import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { addressBytes } from "../../src/ip/address.ts";
import { isKernelError } from "../../src/linux/kernel-error.ts";
import { closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { commit, readGeneration, tryCommit } from "../../src/linux/nftables/commit.ts";
import { type Expression, ICMPX_CODE } from "../../src/linux/nftables/expression.ts";
import { prefixElements, rangeElements } from "../../src/linux/nftables/intervals.ts";
import {
  loadAddress,
  loadPort,
  matchFamily,
  matchInterface,
  matchInterfacePrefix,
  matchPorts,
  matchPrefix,
  matchProtocol,
  verdict,
} from "../../src/linux/nftables/match.ts";
import {
  findChain,
  findElements,
  findTable,
  listChains,
  listElements,
  listRules,
  listSets,
  listTables,
} from "../../src/linux/nftables/read.ts";
import { changesOf, type NftChange, type Ruleset } from "../../src/linux/nftables/ruleset.ts";
import type { NftElement } from "../../src/linux/nftables/set.ts";
import { concatenate, hostNumber, interfaceValue, portValue, protocolValue } from "../../src/linux/nftables/value.ts";
import { address, prefix } from "../support/ip.ts";
import { isKernelAtLeast } from "../support/kernel-version.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { testNeeding } from "../support/needs.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { thrownBy } from "../support/thrown-by.ts";
import { hostportListing, hostportRuleset, hostportTable } from "./hostport-ruleset.ts";

const area = new NetnsArea("nft");
const able = canMakeNetns && Bun.which("nft") !== null;
const why = able ? "" : " (skipped: needs root, ip, nsenter and nft)";

describe.skipIf(!able)(`nf_tables in a private namespace${why}`, () => {
  let place: TestNetns;
  let socket: NetlinkSocket;

  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());

  beforeEach(() => {
    place = area.create();
    socket = insideNetns(place.path, () => openNetlinkSocket("netfilter"));
  });
  afterEach(() => {
    closeNetlinkSocket(socket);
    area.delete(place);
  });

  const listing = (table: string) => runIn(place, ["nft", "list", "table", ...table.split(" ")]);

  describe("host ports", () => {
    const table = hostportTable;
    const key = concatenate(protocolValue(6), addressBytes(address("0.0.0.0")), portValue(8080));
    const podA = concatenate(addressBytes(address("10.0.0.1")), portValue(80));
    const podB = concatenate(addressBytes(address("10.0.0.2")), portValue(80));
    const ownerA = addressBytes(address("fd00::a"));
    const ownerB = addressBytes(address("fd00::b"));

    const change = (kind: "add" | "delete" | "destroy", set: string, element: NftElement): NftChange => ({
      kind: `${kind}-elements`,
      table,
      set,
      elements: [element],
    });
    const add = (pod: Uint8Array, owner: Uint8Array, comment: string) => [
      change("add", "owner", { key, data: owner, comment }),
      change("add", "hp", { key, data: pod }),
    ];
    const remove = (owner: Uint8Array) => [
      change("add", "owner", { key, data: owner }),
      change("delete", "owner", { key }),
      change("destroy", "hp", { key }),
    ];
    const held = () => findElements(socket, table, "owner", [key])[0]?.data;
    const target = () => findElements(socket, table, "hp", [key])[0]?.data;

    beforeEach(() => commit(socket, changesOf(hostportRuleset)));

    test("the ruleset is listed by nft as intended", () => {
      expect(listing("ip vendor_hostport")).toBe(hostportListing);
    });

    test("an element is added with its owner's comment, and read back by key", () => {
      commit(socket, add(podA, ownerA, "net/cid/eth0"));

      expect(listing("ip vendor_hostport")).toContain('tcp . 0.0.0.0 . 8080 comment "net/cid/eth0" : fd00::a');
      expect(listing("ip vendor_hostport")).toContain("tcp . 0.0.0.0 . 8080 : 10.0.0.1 . 80");
      const other = concatenate(protocolValue(17), addressBytes(address("0.0.0.0")), portValue(8080));
      expect(findElements(socket, table, "owner", [other, key])).toEqual([
        undefined,
        { key, data: ownerA, comment: "net/cid/eth0" },
      ]);
      expect(listElements(socket, table, "owner")).toEqual([{ key, data: ownerA, comment: "net/cid/eth0" }]);
    });

    test("the same element again succeeds, another owner gets EEXIST at the owner's element, and nothing of the batch is applied", () => {
      commit(socket, add(podA, ownerA, "a"));
      commit(socket, add(podA, ownerA, "a"));
      const hairpin = concatenate(addressBytes(address("10.0.0.2")), addressBytes(address("10.0.0.2")));
      const batch = [change("add", "hairpin", { key: hairpin }), ...add(podB, ownerB, "b")];
      const refusals = tryCommit(socket, batch);

      expect(refusals.length).toBe(2);
      expect(refusals[0]?.change).toBe(batch[1]);
      expect(isKernelError(refusals[0]?.error, "EEXIST")).toBe(true);
      expect(refusals[1]?.change).toBe(batch[2]);
      expect([held(), target()]).toEqual([ownerA, podA]);
      expect(listElements(socket, table, "hairpin")).toEqual([]);
    });

    const testDestroying = testNeeding(
      isKernelAtLeast("6.3") ? undefined : "needs Linux 6.3, which can destroy elements; the product does not",
    );

    testDestroying("only the owner can delete, and may do so twice", () => {
      commit(socket, add(podA, ownerA, "a"));
      const [refusal] = tryCommit(socket, remove(ownerB));
      expect(isKernelError(refusal?.error, "EEXIST")).toBe(true);
      expect([held(), target()]).toEqual([ownerA, podA]);

      commit(socket, remove(ownerA));
      expect([held(), target()]).toEqual([undefined, undefined]);
      commit(socket, remove(ownerA));
      commit(socket, remove(ownerB));
    });

    test("the first of thousands of conflicts are reported, and the socket can still be used", () => {
      const keys = Array.from({ length: 3000 }, (_, port) =>
        concatenate(protocolValue(6), addressBytes(address("0.0.0.0")), portValue(port + 1)),
      );
      const all = (owner: Uint8Array) => keys.map((each) => change("add", "owner", { key: each, data: owner }));
      commit(socket, all(ownerA));
      const conflicts = all(ownerB);
      const [first] = tryCommit(socket, conflicts);

      expect(first?.change).toBe(conflicts[0]);
      expect(isKernelError(first?.error, "EEXIST")).toBe(true);
      const owners = findElements(socket, table, "owner", keys).map((element) => element?.data);
      expect(owners).toEqual(keys.map(() => ownerA));
    });

    test("a plain delete does not compare data, and is ENOENT for a missing element", () => {
      commit(socket, add(podA, ownerA, "a"));
      commit(socket, [change("delete", "hp", { key, data: podB })]);
      expect(target()).toBeUndefined();
      const [refusal] = tryCommit(socket, [change("delete", "hp", { key })]);
      expect(isKernelError(refusal?.error, "ENOENT")).toBe(true);
    });

    testDestroying("an owner moves to a new address, and a deleted owner's port is taken over, in one batch", () => {
      commit(socket, add(podA, ownerA, "a"));
      commit(socket, [
        change("add", "owner", { key, data: ownerA }),
        change("delete", "hp", { key }),
        change("add", "hp", { key, data: podB }),
      ]);
      expect([held(), target()]).toEqual([ownerA, podB]);

      commit(socket, [...remove(ownerA), ...add(podA, ownerB, "b")]);
      expect([held(), target()]).toEqual([ownerB, podA]);
      expect(tryCommit(socket, remove(ownerA)).length).toBeGreaterThan(0);
      expect([held(), target()]).toEqual([ownerB, podA]);
    });

    test("of two concurrent first uses one creates the table, the other gets EEXIST and adds no rule twice", () => {
      const before = listRules(socket, table).length;
      const create: NftChange = { kind: "create-table", table };
      const [refusal] = tryCommit(socket, [create, ...changesOf(hostportRuleset)]);
      expect(refusal?.change).toBe(create);
      expect(isKernelError(refusal?.error, "EEXIST")).toBe(true);
      expect(listRules(socket, table).length).toBe(before);
    });

    test("everything is decoded as it was written", () => {
      expect(findTable(socket, table)).toEqual(hostportRuleset.table);
      expect(listTables(socket)).toEqual([hostportRuleset.table]);
      expect(listChains(socket, table)).toEqual([...hostportRuleset.chains]);
      expect(findChain(socket, table, "pre")).toEqual(hostportRuleset.chains[1]);
      expect(findChain(socket, table, "none")).toBeUndefined();
      expect(listSets(socket, table)).toEqual([...hostportRuleset.sets]);
      const rules = listRules(socket, table).map(({ handle, ...rule }) => rule);
      expect(rules.map(namedSets)).toEqual(hostportRuleset.rules.map(namedSets));
      const nowhere = { family: "ip", name: "nowhere" } as const;
      expect(findTable(socket, nowhere)).toBeUndefined();
      expect([
        ...listRules(socket, nowhere),
        ...listSets(socket, nowhere),
        ...listElements(socket, nowhere, "x"),
      ]).toEqual([]);
    });
  });

  describe("policy", () => {
    const table = { family: "inet", name: "vt_policy" } as const;
    const stateMap: Expression[] = [
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
    ];
    const ruleset: Ruleset = {
      table,
      chains: [
        { name: "group" },
        { name: "from", base: { type: "filter", hook: "forward", priority: 0, policy: "accept" } },
        { name: "host", base: { type: "filter", hook: "input", priority: 1, policy: "drop" }, comment: "own" },
      ],
      sets: [
        { name: "members", key: ["ipv4_addr"], comment: "app == 'web'" },
        { name: "nets", key: ["ipv6_addr"], holdsIntervals: true },
        { name: "ports", key: ["ipv4_addr", "inet_service"], holdsIntervals: true },
        { name: "spoof", key: ["ifname", "ipv4_addr"] },
        { name: "endpoints", key: ["ifname"], data: "verdict" },
      ],
      elements: [
        { set: "members", elements: [{ key: addressBytes(address("10.0.0.9")) }] },
        { set: "nets", elements: prefixElements([prefix("fd00::/64"), prefix("ff00::/8")]) },
        {
          set: "ports",
          elements: [
            {
              key: concatenate(addressBytes(address("10.0.0.0")), portValue(80)),
              keyEnd: concatenate(addressBytes(address("10.0.0.255")), portValue(90)),
            },
          ],
        },
        { set: "spoof", elements: [{ key: concatenate(interfaceValue("cali1"), addressBytes(address("10.0.0.9"))) }] },
        { set: "endpoints", elements: [{ key: interfaceValue("cali1"), data: { kind: "goto", chain: "group" } }] },
      ],
      rules: [
        { chain: "from", expressions: stateMap },
        { chain: "from", expressions: [...matchInterfacePrefix("iifname", "cali"), { kind: "counter" }] },
        {
          chain: "from",
          expressions: [
            { kind: "meta", key: "iifname", to: 0 },
            { kind: "lookup", set: "endpoints", from: 0, to: "verdict" },
          ],
        },
        {
          chain: "from",
          expressions: [
            ...matchFamily(4),
            { kind: "meta", key: "iifname", to: 0 },
            loadAddress(4, "source", 4),
            { kind: "lookup", set: "spoof", from: 0, isInverted: true },
            verdict({ kind: "drop" }),
          ],
        },
        {
          chain: "group",
          expressions: [
            ...matchFamily(4),
            loadAddress(4, "source", 0),
            { kind: "lookup", set: "members", from: 0 },
            ...matchProtocol(6),
            ...matchPorts("destination", 8000, 8010),
            verdict({ kind: "accept" }),
          ],
          comment: "default.web ingress 0",
        },
        {
          chain: "group",
          expressions: [
            ...matchFamily(4),
            loadAddress(4, "destination", 0),
            loadPort("destination", 1),
            { kind: "lookup", set: "ports", from: 0 },
            verdict({ kind: "return" }),
          ],
        },
        {
          chain: "group",
          expressions: [
            ...matchFamily(6),
            loadAddress(6, "source", 0),
            { kind: "lookup", set: "nets", from: 0 },
            ...matchPrefix("destination", prefix("fd00:1:8000::/33")),
            { kind: "limit", rate: 10n, per: "minute", burst: 5 },
            { kind: "log", prefix: "denied ", level: 6 },
            verdict({ kind: "drop" }),
          ],
        },
        {
          chain: "host",
          expressions: [
            ...matchInterface("iifname", "equal", "lo"),
            { kind: "range", operator: "outside", from: 0, first: interfaceValue("a"), last: interfaceValue("b") },
            verdict({ kind: "accept" }),
          ],
        },
        {
          chain: "host",
          expressions: [...matchProtocol(6), { kind: "counter" }, { kind: "reject", type: "tcp reset", code: 0 }],
        },
        { chain: "host", expressions: [{ kind: "reject", type: "icmpx", code: ICMPX_CODE.adminProhibited }] },
        { chain: "host", expressions: [...matchFamily(6), { kind: "reject", type: "icmp", code: 4 }] },
        {
          chain: "host",
          expressions: [
            { kind: "immediate", to: 0, value: hostNumber(5) },
            { kind: "set-meta", key: "mark", from: 0 },
            { kind: "set-ct", key: "mark", from: 0 },
            { kind: "immediate", to: 4, value: Uint8Array.of(0x20, ...Array<number>(15).fill(0)) },
            { kind: "set-ct", key: "label", from: 4 },
            { kind: "log", prefix: "n", group: 3 },
            verdict({ kind: "goto", chain: "group" }),
          ],
        },
      ],
    };

    test("is read back as it was written, and nft lists it", () => {
      commit(socket, changesOf(ruleset));

      expect(listChains(socket, table)).toEqual([...ruleset.chains]);
      expect(listSets(socket, table)).toEqual([...ruleset.sets]);
      const rules = listRules(socket, table).map(({ handle, ...rule }) => namedSets(rule));
      expect(rules).toEqual(
        ruleset.chains.flatMap(({ name }) => ruleset.rules.filter((rule) => rule.chain === name)).map(namedSets),
      );
      for (const { set, elements } of ruleset.elements) {
        expect(sortedByKey(listElements(socket, table, set))).toEqual(sortedByKey(elements));
      }
      const text = listing("inet vt_policy");
      for (const line of POLICY_LINES) expect(text).toContain(line);
    });

    test("a chain in use is rewritten, replaced and removed in one batch", () => {
      commit(socket, changesOf(ruleset));
      const point = (chain: string): NftChange[] => [
        { kind: "delete-elements", table, set: "endpoints", elements: [{ key: interfaceValue("cali1") }] },
        {
          kind: "add-elements",
          table,
          set: "endpoints",
          elements: [{ key: interfaceValue("cali1"), data: { kind: "goto", chain } }],
        },
      ];
      const last = listRules(socket, table, "host").at(-1);
      if (last === undefined) throw new Error("expected a rule");
      commit(socket, [
        { kind: "add-chain", table, chain: { name: "group2" } },
        { kind: "add-rule", table, rule: { chain: "group2", expressions: [verdict({ kind: "drop" })] } },
        ...point("group2"),
        { kind: "delete-rule", table, chain: "host", handle: last.handle },
        { kind: "flush-chain", table, chain: "group" },
        { kind: "delete-chain", table, chain: "group" },
        { kind: "flush-set", table, set: "members" },
        { kind: "delete-set", table, set: "members" },
      ]);

      expect(listChains(socket, table).map((chain) => chain.name)).toEqual(["from", "host", "group2"]);
      expect(listElements(socket, table, "endpoints")[0]?.data).toEqual({ kind: "goto", chain: "group2" });
      expect(listing("inet vt_policy")).not.toContain("members");
    });

    test("a refusal names the change that the kernel refused", () => {
      commit(socket, changesOf(ruleset));
      const bad: NftChange = {
        kind: "add-rule",
        table,
        rule: { chain: "group", expressions: [{ kind: "lookup", set: "nowhere", from: 0 }] },
      };
      const error = thrownBy(() => commit(socket, [{ kind: "flush-chain", table, chain: "group" }, bad]));
      expect(error.kind).toBe("kernel-refused");
      expect(error.message).toContain('add a rule to chain "group" of table inet "vt_policy": ENOENT');
      expect(listRules(socket, table, "group").length).toBe(3);
      const [busy] = tryCommit(socket, [{ kind: "delete-chain", table, chain: "group" }]);
      expect(isKernelError(busy?.error, "EBUSY")).toBe(true);
    });

    test("fifty thousand elements are written in one batch and read back", () => {
      const elements = Array.from({ length: 50_000 }, (_, index) => ({ key: hostNumber(index), comment: `e${index}` }));
      commit(socket, [
        ...changesOf({ ...ruleset, elements: [], rules: [] }),
        { kind: "add-elements", table, set: "members", elements },
      ]);
      const found = listElements(socket, table, "members");
      expect(found.length).toBe(elements.length);
      expect(new Set(found.map((element) => element.comment)).size).toBe(elements.length);
    });

    test("a batch can require that nothing was changed since", () => {
      const generation = readGeneration(socket);
      expect(tryCommit(socket, changesOf(ruleset), generation)).toEqual([]);
      expect(readGeneration(socket)).not.toBe(generation);
      const [refusal] = tryCommit(socket, [{ kind: "delete-table", table }], generation);
      expect(refusal?.change).toBeUndefined();
      expect(isKernelError(refusal?.error, "ERESTART")).toBe(true);
      commit(socket, [{ kind: "delete-table", table }]);
      expect(findTable(socket, table)).toBeUndefined();
    });

    test("adjacent ranges are not merged and are removed one by one", () => {
      const ranges = [prefix("10.0.0.0/24"), prefix("10.0.1.0/24"), prefix("255.255.255.255/32")];
      const set = { name: "s", key: ["ipv4_addr"], holdsIntervals: true } as const;
      commit(
        socket,
        changesOf({
          table,
          chains: [],
          rules: [],
          sets: [set],
          elements: [{ set: "s", elements: prefixElements(ranges) }],
        }),
      );
      expect(listing("inet vt_policy")).toContain(
        "elements = { 10.0.0.0/24, 10.0.1.0/24,\n\t\t\t     255.255.255.255 }",
      );

      const first = rangeElements([
        { first: addressBytes(address("10.0.0.0")), last: addressBytes(address("10.0.0.255")) },
      ]);
      commit(socket, [{ kind: "delete-elements", table, set: "s", elements: first }]);
      expect(listing("inet vt_policy")).toContain("elements = { 10.0.1.0/24, 255.255.255.255 }");
      const overlap = prefixElements([prefix("10.0.1.128/25")]);
      const [refusal] = tryCommit(socket, [{ kind: "create-elements", table, set: "s", elements: overlap }]);
      expect(isKernelError(refusal?.error, "ENOTEMPTY", "EEXIST")).toBe(true);
    });
  });
});

const POLICY_LINES = [
  `comment "app == 'web'"`,
  "elements = { 10.0.0.9 }",
  "elements = { fd00::/64,\n\t\t\t     ff00::/8 }",
  "elements = { 10.0.0.0/24 . 80-90 }",
  'elements = { "cali1" . 10.0.0.9 }',
  'elements = { "cali1" : goto group }',
  "ct state vmap { invalid : drop, established : accept, related : accept }",
  'iifname "cali*" counter packets 0 bytes 0',
  "iifname vmap @endpoints",
  "iifname . ip saddr != @spoof drop",
  'ip saddr @members tcp dport 8000-8010 accept comment "default.web ingress 0"',
  "ip6 saddr @nets ip6 daddr fd00:1:8000::/33 limit rate 10/minute",
  "meta l4proto tcp counter packets 0 bytes 0 reject with tcp reset",
  "\t\treject with icmpx admin-prohibited",
  "reject with icmpv6 port-unreachable",
];

type Rule = Ruleset["rules"][number];

/** The kernel gives an anonymous set a name. */
function namedSets(rule: Rule): unknown {
  const expressions = rule.expressions.map((expression) => {
    if (expression.kind !== "lookup") return expression;
    const isOwn = typeof expression.set !== "string" || expression.set.startsWith("__");
    return { ...expression, set: isOwn ? "own" : expression.set };
  });
  return { ...rule, expressions };
}

function sortedByKey(elements: readonly NftElement[]): NftElement[] {
  return elements.toSorted((left, right) => Buffer.compare(left.key, right.key));
}
