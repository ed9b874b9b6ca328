import { beforeEach, describe, expect, test } from "bun:test";
import { type Told, told } from "../../../../test/support/tracked-message.ts";
import { type PacketHead, readWholeHead } from "../../../linux/packet-head.ts";
import { DeniedPackets } from "./denied-packets.ts";
import { AddressTexts, EndNames } from "./end-names.ts";
import { FlowIds } from "./flow-ids.ts";
import { RuleDecisions } from "./rule-decisions.ts";

const START = 1_800_000_000_000;
const SECOND = 1_000;
const RULE = "shop/db ingress 0";

/** The head of a TCP packet of 60 bytes from 198.51.100.1 to 10.0.0.2. */
function head(sourcePort: number, destinationPort = 5432): PacketHead {
  const bytes = Uint8Array.fromHex("4500003c0000400040060000c63364010a000002");
  const ports = Uint8Array.of(sourcePort >> 8, sourcePort & 255, destinationPort >> 8, destinationPort & 255);
  const read = readWholeHead(Uint8Array.from([...bytes, ...ports]));
  if (read === undefined) throw new Error("not a packet");
  return read;
}

let names: EndNames;
let rules: RuleDecisions;
let denied: DeniedPackets;
const records = (now: number) => denied.flush(now).map(({ record }) => record);

function begin(): void {
  rules = new RuleDecisions();
  denied = new DeniedPackets("node-1", new FlowIds(), { names, rules, texts: new AddressTexts(50) });
}

interface Packet {
  readonly from?: number;
  readonly prefix?: string;
  readonly time?: number;
  readonly connection?: Told;
}

function add(now: number, { from = 40_000, prefix = `wi ${RULE}`, time, connection }: Packet = {}): void {
  const more = { ...(time === undefined ? {} : { time }), ...(connection && { connection: told(connection) }) };
  denied.add({ head: head(from), prefix, ...more }, now);
}

beforeEach(() => {
  names = new EndNames({ most: 50, mostAskedPerSecond: 100 });
  names.learn([["10.0.0.2", { kind: "pod", namespace: "shop", name: "db", isLocal: true }]]);
  begin();
});

describe("DeniedPackets", () => {
  test("a packet that is sent again belongs to the same record", () => {
    add(START);
    expect(names.takeQuestions()).toEqual(["198.51.100.1"]);
    expect(records(START + 100)).toEqual([]);
    names.learn([["198.51.100.1", { kind: "outside" }]]);
    const [first] = records(START + 200);
    expect(first).toMatchObject({
      source: { kind: "outside", address: "198.51.100.1", port: 40_000 },
      destination: { kind: "pod", name: "db", address: "10.0.0.2", port: 5432 },
      direction: "ingress",
      verdict: "denied",
      state: "denied",
      decisions: [{ point: "workload ingress", verdict: "deny", rule: RULE }],
      sent: { packets: 1, bytes: 60 },
    });
    add(START + SECOND, { time: START + SECOND - 5 });
    add(START + SECOND, { from: 40_001 });
    expect(records(START + SECOND)).toMatchObject([
      { id: first?.id ?? "", start: START, end: START + SECOND - 5, sent: { packets: 2, bytes: 120 } },
      { source: { port: 40_001 }, sent: { packets: 1 } },
    ]);
    // Long after it, somebody tries again.
    records(START + 60 * SECOND);
    add(START + 61 * SECOND);
    const [again] = records(START + 61 * SECOND);
    expect(again?.id).not.toBe(first?.id ?? "");
  });

  test("an end that nobody named is counted, and a late answer names it", () => {
    add(START);
    records(START + SECOND);
    records(START + 10 * SECOND);
    names.learn([["198.51.100.1", { kind: "pod", namespace: "shop", name: "web" }]]);
    expect(records(START + 15 * SECOND)).toMatchObject([{ source: { kind: "pod", name: "web" } }]);
    records(START + 30 * SECOND);
    expect(denied.takeNamesUnknown()).toBe(0);

    names = new EndNames({ most: 50, mostAskedPerSecond: 100 });
    begin();
    add(START);
    for (const second of [1, 10, 30]) records(START + second * SECOND);
    expect(denied.takeNamesUnknown()).toBe(1);
  });

  test("waits no longer for names at the end, or if the clock is set back", () => {
    add(START);
    expect(records(START + 100)).toEqual([]);
    expect(records(START - 3_600 * SECOND)).toMatchObject([{ source: { address: "198.51.100.1" } }]);

    begin();
    add(START);
    const last = () => denied.flushLast(START + 100).map(({ record }) => record);
    expect(last()).toMatchObject([{ source: { address: "198.51.100.1" }, sent: { packets: 1 } }]);
    expect(last()).toEqual([]);
  });

  test("the same packet at another point, or by another rule, is another record", () => {
    for (const prefix of [`wi ${RULE}`, `we ${RULE}`, "wi no profile allows it, ingress"]) add(START, { prefix });
    expect(records(START + SECOND)).toHaveLength(3);
  });

  test("what the collector's rules did not write is left out", () => {
    for (const prefix of ["", "wi", "xx rule", `wi-${RULE}`]) add(START, { prefix });
    expect(records(START + SECOND)).toEqual([]);
  });

  describe("with the connection of the packet", () => {
    const TO_SERVICE: Told = { from: "198.51.100.1:40000", to: "10.96.0.1:80", answers: "10.0.0.2:5432" };
    const learnNames = (...more: readonly Parameters<EndNames["learn"]>[0][number][]) =>
      names.learn([["198.51.100.1", { kind: "outside" }], ["10.96.0.1", { kind: "outside" }], ...more]);

    test("names whom it asked for, the backend, and the rules that accepted it at earlier points", () => {
      rules.learn([
        [1, "shop/web egress 0"],
        [2, "host ingress 0"],
      ]);
      const label = [["workload egress", 1] as const, ["host in", 2] as const];
      add(START, { connection: { ...TO_SERVICE, rules: label } });
      expect(names.takeQuestions()).toEqual(["198.51.100.1", "10.96.0.1", "10.96.0.1 6 80"]);
      learnNames(["10.96.0.1 6 80", { kind: "service", namespace: "shop", name: "db" }]);
      expect(records(START + 100)).toMatchObject([
        {
          source: { kind: "outside", address: "198.51.100.1", port: 40_000 },
          destination: { kind: "service", name: "db", address: "10.96.0.1", port: 80 },
          backend: { kind: "pod", name: "db", address: "10.0.0.2", port: 5432 },
          direction: "both",
          decisions: [
            { point: "host in", verdict: "allow", rule: "host ingress 0" },
            { point: "workload egress", verdict: "allow", rule: "shop/web egress 0" },
            { point: "workload ingress", verdict: "deny", rule: RULE },
          ],
        },
      ]);
    });

    test("names the host of a published port, and a masquerade", () => {
      add(START, { connection: { ...TO_SERVICE, to: "192.0.2.1:8080", seenAs: "192.0.2.1:61000" } });
      learnNames(["192.0.2.1", { kind: "host", name: "node-1", isLocal: true }]);
      names.learn([["192.0.2.1 6 8080", { kind: "outside" }]]);
      expect(records(START + 100)).toMatchObject([
        {
          destination: { kind: "host", name: "node-1", address: "192.0.2.1", port: 8080 },
          backend: { kind: "pod", name: "db", port: 5432 },
          seenAs: { address: "192.0.2.1", port: 61_000 },
        },
      ]);
    });

    test("a connection that is not translated has no backend; ICMP has no ports", () => {
      add(START, { connection: { from: "198.51.100.1:40000", to: "10.0.0.2:5432" } });
      add(START, { connection: { from: "198.51.100.1:7", to: "10.0.0.2:0", protocol: 1 } });
      learnNames();
      const [tcp, icmp] = records(START + 100);
      expect([tcp?.backend, tcp?.seenAs, tcp?.decisions.length]).toEqual([undefined, undefined, 1]);
      expect([icmp?.source.port, icmp?.destination.port, icmp?.backend]).toEqual([undefined, undefined, undefined]);
    });

    test("what rules of this point and later ones wrote for earlier packets is left out", () => {
      rules.learn([[1, "shop/web egress 0"]]);
      const label = [["workload egress", 1] as const, ["workload ingress", 1] as const, ["host out", 1] as const];
      add(START, { connection: { ...TO_SERVICE, rules: label } });
      expect(records(START + SECOND)[0]?.decisions.map(({ point, verdict }) => `${point} ${verdict}`)).toEqual([
        "workload egress allow",
        "workload ingress deny",
      ]);
    });

    test("a rule that the agent tells late is named in the same record, once", () => {
      add(START, { connection: { ...TO_SERVICE, rules: [["workload egress", 1]] } });
      learnNames(["10.96.0.1 6 80", { kind: "outside" }]);
      const [first] = records(START + 100);
      expect(first?.decisions[0]).toEqual({ point: "workload egress", verdict: "allow", unknown: "rule forgotten" });
      rules.learn([[1, "shop/web egress 0"]]);
      expect(records(START + 3 * SECOND)).toMatchObject([
        { id: first?.id ?? "", decisions: [{ rule: "shop/web egress 0" }, { rule: RULE }] },
      ]);
      rules.forget([1]);
      expect(records(START + 4 * SECOND)).toEqual([]);
    });

    test("the same ends asked for directly and through the Service are two records", () => {
      add(START, { connection: TO_SERVICE });
      add(START, { connection: { ...TO_SERVICE, to: "10.0.0.2:5432" } });
      add(START, { connection: TO_SERVICE });
      expect(records(START + SECOND).map(({ sent }) => sent.packets)).toEqual([2, 1]);
    });
  });

  describe("packets that were denied and not reported", () => {
    /** The agent tells so many, at a time by which all reports have arrived. */
    const suppressedAt = (now: number, packets: number, rule = RULE) => {
      denied.learnCounts([[rule, packets]], now);
      return denied.takeSuppressed(now + SECOND);
    };

    test("are counted once, in the latest record and in all", () => {
      add(START);
      expect(suppressedAt(START, 1)).toBe(0);
      add(START + SECOND, { from: 40_001 });
      denied.learnCounts([[RULE, 51]], START + SECOND);
      // Two of these are still to be reported.
      expect(denied.takeSuppressed(START + SECOND + 100)).toBe(0);
      add(START + SECOND + 100, { from: 40_001 });
      expect(denied.takeSuppressed(START + 2 * SECOND)).toBe(49);
      expect(records(START + 2 * SECOND).map(({ suppressed }) => suppressed)).toEqual([undefined, 49]);
      expect(denied.takeSuppressed(START + 3 * SECOND)).toBe(0);
    });

    test("a report that comes before the agent has counted it is not taken for another one", () => {
      for (let packet = 0; packet < 5; packet++) add(START);
      // It looked when three had come.
      expect(suppressedAt(START, 3)).toBe(0);
      expect(suppressedAt(START + 2 * SECOND, 2)).toBe(0);
      expect(suppressedAt(START + 4 * SECOND, 1)).toBe(1);
    });

    test("reports that were never counted do not hide later ones for long", () => {
      // The rule was written again before the agent looked.
      for (let packet = 0; packet < 9; packet++) add(START);
      const later = [1, 2, 3, 4].map((each) => suppressedAt(START + each * 2 * SECOND, 1));
      expect(later).toEqual([0, 0, 1, 1]);
    });

    test("rules from which nothing is heard are forgotten", () => {
      for (let rule = 0; rule < 100; rule++) suppressedAt(START, 5, `gone/${rule} ingress 0`);
      add(START + 100 * SECOND);
      expect(denied.rulesKnown).toBe(101);
      denied.takeSuppressed(START + 200 * SECOND);
      expect(denied.rulesKnown).toBe(1);
      expect(suppressedAt(START + 300 * SECOND, 7, "gone/1 ingress 0")).toBe(7);
    });
  });
});
