import { beforeEach, describe, expect, test } from "bun:test";
import { type PacketHead, readWholeHead } from "../../../linux/packet-head.ts";
import { DeniedPackets } from "./denied-packets.ts";
import { EndNames } from "./end-names.ts";
import { FlowIds } from "./follow-connections.ts";

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
let denied: DeniedPackets;
const records = (now: number) => denied.flush(now).map(({ record }) => record);

function add(now: number, { from = 40_000 } = {}): void {
  denied.add(head(from), `wi ${RULE}`, { now });
}

beforeEach(() => {
  names = new EndNames({ most: 50, mostAskedPerSecond: 100 });
  names.learn([["10.0.0.2", { kind: "pod", namespace: "shop", name: "db", isLocal: true }]]);
  denied = new DeniedPackets("node-1", names, new FlowIds());
});

describe("DeniedPackets", () => {
  test("a packet that is sent again belongs to the same record", () => {
    denied.add(head(40_000), `wi ${RULE}`, { now: START });
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
    denied.add(head(40_000), `wi ${RULE}`, { now: START + SECOND, time: START + SECOND - 5 });
    denied.add(head(40_001), `wi ${RULE}`, { now: START + SECOND });
    expect(records(START + SECOND)).toMatchObject([
      { id: first?.id ?? "", start: START, end: START + SECOND - 5, sent: { packets: 2, bytes: 120 } },
      { source: { port: 40_001 }, sent: { packets: 1 } },
    ]);
    // Long after it, somebody tries again.
    records(START + 60 * SECOND);
    denied.add(head(40_000), `wi ${RULE}`, { now: START + 61 * SECOND });
    const [again] = records(START + 61 * SECOND);
    expect(again?.id).not.toBe(first?.id ?? "");
  });

  test("an end that nobody named is counted, and a late answer names it", () => {
    denied.add(head(40_000), `wi ${RULE}`, { now: START });
    records(START + SECOND);
    records(START + 10 * SECOND);
    names.learn([["198.51.100.1", { kind: "pod", namespace: "shop", name: "web" }]]);
    expect(records(START + 15 * SECOND)).toMatchObject([{ source: { kind: "pod", name: "web" } }]);
    records(START + 30 * SECOND);
    expect(denied.takeNamesUnknown()).toBe(0);

    names = new EndNames({ most: 50, mostAskedPerSecond: 100 });
    denied = new DeniedPackets("node-1", names, new FlowIds());
    denied.add(head(40_000), `wi ${RULE}`, { now: START });
    for (const second of [1, 10, 30]) records(START + second * SECOND);
    expect(denied.takeNamesUnknown()).toBe(1);
  });

  test("the same packet at another point, or by another rule, is another record", () => {
    for (const prefix of [`wi ${RULE}`, `we ${RULE}`, "wi no profile allows it, ingress"])
      denied.add(head(40_000), prefix, { now: START });
    expect(records(START + SECOND)).toHaveLength(3);
  });

  test("what the collector's rules did not write is left out", () => {
    for (const prefix of ["", "wi", "xx rule", `wi-${RULE}`]) denied.add(head(1), prefix, { now: START });
    expect(records(START + SECOND)).toEqual([]);
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
