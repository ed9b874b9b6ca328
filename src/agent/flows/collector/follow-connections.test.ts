import { beforeEach, describe, expect, test } from "bun:test";
import { type Ends, told } from "../../../../test/support/tracked-message.ts";
import type { EndName } from "../../../flows/collector-messages.ts";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { STATUS, type TrackedMessage } from "../../../linux/conntrack-message.ts";
import { AddressTexts, EndNames } from "./end-names.ts";
import { FlowIds } from "./flow-ids.ts";
import { ConnectionFollower, type FollowLimits } from "./follow-connections.ts";
import { RuleDecisions } from "./rule-decisions.ts";

const [TCP, UDP, ICMP] = [6, 17, 1];
const SECOND = 1_000;
const START = 1_800_000_000_000;
/** When names change no more. */
const SETTLED = 3 * SECOND;

const WEB: EndName = { kind: "pod", namespace: "shop", name: "web", isLocal: true };
const DB: EndName = { kind: "pod", namespace: "shop", name: "db", isLocal: true };
const RULES = [
  [1, "shop/web egress 0"],
  [2, "shop/db ingress 1"],
  [3, "shop/db ingress 2"],
  [4, "ssh ingress 0"],
] as const;
const TO_DB: Ends = { from: "10.0.0.1:40000", to: "10.0.0.2:5432" };
const BOTH = [
  ["workload egress", 1],
  ["workload ingress", 2],
] as const;
const LIMITS: FollowLimits = { mostConnections: 100, mostLeftOut: 50 };

let names: EndNames;
let rules: RuleDecisions;
let follower: ConnectionFollower;

function begin(limits = LIMITS, mostPerSecond = 1_000): ConnectionFollower {
  names = new EndNames({ most: 50, mostAskedPerSecond: 100 });
  rules = new RuleDecisions();
  rules.learn(RULES);
  names.learn([
    ["10.0.0.1", WEB],
    ["10.0.0.2", DB],
    ["fd00::1", WEB],
    ["192.0.2.1", { kind: "host", name: "node-1", isLocal: true }],
  ]);
  follower = new ConnectionFollower(
    { node: "node-1", vxlanPort: 4789, mostPerSecond },
    names,
    rules,
    new AddressTexts(100),
    new FlowIds(),
    limits,
  );
  follower.noteLabelsSince(START - 10 * SECOND);
  return follower;
}

const records = (now: number): readonly FlowRecord[] => follower.flush(now).records.map(({ record }) => record);
function flushLast(now: number) {
  const parts = [...follower.flushLast(now)];
  return {
    records: parts.flatMap((part) => part.records),
    overLimit: parts.flatMap((part) => part.overLimit),
    sums: parts.flatMap((part) => part.sums),
  };
}

/** Reads the whole table, with these connections in it. */
function look(now: number, ...entries: readonly TrackedMessage[]): readonly number[] {
  follower.beginLook(now);
  for (const entry of entries) follower.entry(entry, now);
  return follower.endLook(now);
}

beforeEach(() => void begin());

describe("ConnectionFollower", () => {
  test("joins the label of the beginning with the counters of the end", () => {
    follower.begins(told({ ...TO_DB, rules: BOTH }), START);
    const [open] = records(START + 100);
    expect(open).toMatchObject({
      node: "node-1",
      family: 4,
      protocol: TCP,
      source: { kind: "pod", namespace: "shop", name: "web", address: "10.0.0.1", port: 40_000 },
      destination: { kind: "pod", namespace: "shop", name: "db", address: "10.0.0.2", port: 5432 },
      direction: "both",
      verdict: "allowed",
      decisions: [
        { point: "workload egress", verdict: "allow", rule: "shop/web egress 0" },
        { point: "workload ingress", verdict: "allow", rule: "shop/db ingress 1" },
      ],
      state: "open",
      start: START,
      sent: { packets: 0, bytes: 0 },
    });
    expect(records(START + 500)).toEqual([]);

    follower.ended(told({ ...TO_DB, counts: [5, 500, 4, 4000], start: START - 20, stop: START + 900 }), START + 950);
    const [ended, ...none] = records(START + 1000);
    expect(none).toEqual([]);
    expect(ended).toMatchObject({
      id: open?.id ?? "",
      decisions: open?.decisions ?? [],
      state: "ended",
      start: START - 20,
      end: START + 900,
      sent: { packets: 5, bytes: 500 },
      received: { packets: 4, bytes: 4000 },
    });
    expect(records(START + 1000 + SETTLED)).toEqual([]);
    expect(follower.size).toBe(0);
    expect(follower.losses).toEqual({
      kernelOverruns: 0,
      rulesUnknown: 0,
      overLimit: 0,
      overCapacity: 0,
      deniedSuppressed: 0,
      namesUnknown: 0,
    });
  });

  test("a short connection is one record", () => {
    follower.begins(told({ ...TO_DB, rules: BOTH }), START);
    follower.ended(told({ ...TO_DB, counts: [5, 500, 4, 4000] }), START + 10);
    expect(records(START + 100)).toMatchObject([{ state: "ended", sent: { packets: 5 } }]);
    expect(records(START + SETTLED)).toEqual([]);
    expect(follower.size).toBe(0);
  });

  test("connections with the same ID of the kernel are told apart by their tuples", () => {
    const other: Ends = { from: "10.0.0.1:40001", to: "10.0.0.2:5432" };
    follower.begins(told({ ...TO_DB, id: 7, rules: BOTH }), START);
    follower.begins(told({ ...other, id: 7, rules: BOTH }), START);
    follower.ended(told({ ...other, id: 7, counts: [1, 60, 0, 0] }), START + 10);
    const found = records(START + 100);
    expect(found.map(({ source, state }) => `${source.port} ${state}`).sort()).toEqual(["40000 open", "40001 ended"]);
    expect(new Set(found.map(({ id }) => id)).size).toBe(2);
  });

  test("a mix of rules is said, and a rule that is added later updates the record", () => {
    follower.begins(told({ ...TO_DB, protocol: UDP, rules: BOTH }), START);
    expect(records(START + 100)).toHaveLength(1);
    look(
      START + 60 * SECOND,
      told({ ...TO_DB, protocol: UDP, rules: [...BOTH, ["workload ingress", 3]], counts: [2, 100, 0, 0] }),
    );
    expect(records(START + 61 * SECOND)).toMatchObject([
      {
        state: "open",
        sent: { packets: 2, bytes: 100 },
        decisions: [
          { rule: "shop/web egress 0" },
          { point: "workload ingress", verdict: "allow", unknown: "several rules" },
        ],
      },
    ]);
  });

  test("a number that the agent does not know is not taken for a rule", () => {
    follower.begins(told({ ...TO_DB, rules: [["workload egress", 99]] }), START);
    expect(records(START + 100)).toMatchObject([
      { decisions: [{ point: "workload egress", unknown: "rule forgotten" }] },
    ]);
  });

  test("an end without a beginning is recorded, without its rule, and counted", () => {
    follower.noteOverrun(START);
    follower.ended(told({ ...TO_DB, counts: [5, 500, 4, 4000], start: START - 50, stop: START + 40 }), START + 50);
    expect(records(START + 100)).toMatchObject([
      {
        state: "ended",
        verdict: "allowed",
        decisions: [
          { point: "workload egress", verdict: "unknown", unknown: "event lost" },
          { point: "workload ingress", verdict: "unknown", unknown: "event lost" },
        ],
        sent: { bytes: 500 },
      },
    ]);
    expect(follower.losses).toMatchObject({ kernelOverruns: 1, rulesUnknown: 1 });
  });

  test("what is in the table already: older than the switch without a label, known with one", () => {
    const [older, known] = [TO_DB, { from: "10.0.0.1:40002", to: "10.0.0.2:5432" }];
    look(
      START,
      told({ ...older, id: 1, start: START - 60 * SECOND, counts: [9, 900, 9, 900] }),
      told({ ...known, id: 2, rules: BOTH, start: START - 5 * SECOND }),
    );
    expect(records(START + 100)).toMatchObject([
      {
        start: START - 60 * SECOND,
        sent: { bytes: 900 },
        decisions: [{ unknown: "older than the switch" }, { unknown: "older than the switch" }],
      },
      { start: START - 5 * SECOND, decisions: [{ rule: "shop/web egress 0" }, { rule: "shop/db ingress 1" }] },
    ]);
    expect(follower.losses.rulesUnknown).toBe(0);
  });

  test("after the switch, a connection without a label was not judged", () => {
    follower.begins(told(TO_DB), START);
    expect(records(START + 100)).toMatchObject([{ decisions: [{ unknown: "not judged" }, { unknown: "not judged" }] }]);
  });

  test("says that the sidecar decides about requests, at the workload that it is of", () => {
    rules.learnWithRequests([1, 2]);
    follower.begins(told({ ...TO_DB, rules: BOTH }), START);
    const decisions = () => records(START + 100)[0]?.decisions;
    expect(decisions()).toEqual([
      { point: "workload egress", verdict: "allow", rule: "shop/web egress 0" },
      { point: "workload ingress", verdict: "allow", rule: "shop/db ingress 1", requestsBySidecar: true },
    ]);
  });

  test("a restarted collector continues the records of its predecessor, and ends those that are gone", () => {
    follower.begins(told({ ...TO_DB, id: 5, rules: BOTH }), START);
    const gone: Ends = { from: "10.0.0.1:40003", to: "10.0.0.2:5432" };
    follower.begins(told({ ...gone, id: 6, rules: BOTH }), START);
    const former = records(START + 100);
    expect(former).toHaveLength(2);

    begin();
    // The pod is gone since.
    names.learn([["10.0.0.2", { kind: "outside" }]]);
    follower.adopt({ records: former, leftOut: 0 });
    look(START + 5 * SECOND, told({ ...TO_DB, id: 5, rules: BOTH, start: START - 10, counts: [3, 300, 3, 300] }));
    const later = records(START + 5 * SECOND + 100);
    expect(later.find(({ id }) => id === former[0]?.id)).toMatchObject({
      state: "open",
      sent: { bytes: 300 },
      destination: { name: "db" },
    });
    expect(later.find(({ id }) => id === former[1]?.id)).toMatchObject({ state: "ended" });
    expect(later).toHaveLength(2);
  });

  test("an end that comes before the look finds the record of the predecessor, with its rules", () => {
    follower.begins(told({ ...TO_DB, rules: BOTH }), START);
    const former = records(START + 100);
    begin();
    follower.adopt({ records: former, leftOut: 0 });
    follower.ended(
      told({ ...TO_DB, counts: [5, 500, 4, 4000], start: START - 10, stop: START + SECOND }),
      START + SECOND,
    );
    expect(records(START + 2 * SECOND)).toMatchObject([
      {
        id: former[0]?.id ?? "",
        state: "ended",
        sent: { bytes: 500 },
        decisions: [{ rule: "shop/web egress 0" }, { rule: "shop/db ingress 1" }],
      },
    ]);
    expect(follower.losses.rulesUnknown).toBe(0);
  });

  test("open records of the predecessor that are not continued are counted", () => {
    follower.adopt({ records: [], leftOut: 7 });
    expect(follower.losses.overCapacity).toBe(7);
  });

  test("beyond the capacity, connections are in the roll-ups only, and their ends are no lost events", () => {
    begin({ mostConnections: 2, mostLeftOut: 50 });
    const ends = (port: number): Ends => ({ from: `10.0.0.1:${port}`, to: "10.0.0.2:5432" });
    for (const port of [1, 2, 3]) follower.begins(told({ ...ends(port), id: port, rules: BOTH }), START);
    const { records: handedOn, overLimit } = follower.flush(START + 100);
    expect(handedOn).toHaveLength(2);
    expect(overLimit).toMatchObject([{ source: { port: 3 } }]);
    follower.ended(told({ ...ends(3), id: 3, start: START }), START + 200);
    expect(records(START + 300)).toEqual([]);
    expect(follower.losses).toMatchObject({ overCapacity: 1, rulesUnknown: 0 });
  });

  test("more connections in a second than the limit are in the roll-ups only, once each, when they end", () => {
    begin(LIMITS, 2);
    const ends = (port: number): Ends => ({ from: `10.0.0.1:${port}`, to: "10.0.0.2:5432" });
    for (const port of [1, 2, 3]) follower.begins(told({ ...ends(port), id: port, rules: BOTH }), START);
    follower.begins(told({ ...ends(4), id: 4, rules: BOTH }), START + SECOND);
    expect(follower.flush(START + SECOND)).toMatchObject({ records: { length: 3 }, overLimit: [] });
    for (const port of [1, 2, 3, 4])
      follower.ended(told({ ...ends(port), id: port, counts: [1, 60, 1, 40] }), START + 2 * SECOND);
    const { records: handedOn, overLimit } = follower.flush(START + 2 * SECOND);
    expect(handedOn.map(({ record }) => record.source.port)).toEqual([1, 2, 4]);
    expect(overLimit).toMatchObject([{ source: { port: 3 }, state: "ended", sent: { packets: 1, bytes: 60 } }]);
    expect(follower.losses.overLimit).toBe(1);
    follower.flush(START + 9 * SECOND);
    expect(follower.size).toBe(0);
  });
});

describe("ConnectionFollower, at its end", () => {
  const to = (address: string): Ends => ({ from: "10.0.0.1:40000", to: `${address}:443` });

  test("hands on what waits for names, also if it has ended", () => {
    follower.begins(told({ ...to("203.0.113.1"), id: 1, rules: [["workload egress", 1]] }), START);
    follower.ended(told({ ...to("203.0.113.1"), id: 1, counts: [2, 100, 1, 50] }), START + 10);
    follower.begins(told({ ...to("203.0.113.2"), id: 2, rules: [["workload egress", 1]] }), START);
    expect(records(START + 100)).toEqual([]);
    const { records: last, sums } = flushLast(START + 200);
    expect(last).toMatchObject([
      { record: { state: "ended", destination: { address: "203.0.113.1" }, sent: { packets: 2 } } },
      { record: { state: "open", destination: { address: "203.0.113.2" } } },
    ]);
    expect(sums.map(({ added }) => added)).toEqual([
      { flows: 1, packets: 3, bytes: 150 },
      { flows: 1, packets: 0, bytes: 0 },
    ]);
  });

  test("what is only in the roll-ups is summed once, also if it is still open", () => {
    begin(LIMITS, 1);
    for (const id of [1, 2, 3]) follower.begins(told({ ...TO_DB, from: `10.0.0.1:${id}`, id, rules: BOTH }), START);
    follower.ended(told({ ...TO_DB, from: "10.0.0.1:2", id: 2, counts: [1, 60, 1, 40] }), START + 10);
    const { records: last, overLimit } = flushLast(START + 20);
    expect(last.map(({ record }) => record.source.port)).toEqual([1]);
    expect(overLimit).toMatchObject([
      { source: { port: 2 }, state: "ended" },
      { source: { port: 3 }, state: "open" },
    ]);
  });

  test("what waits in the table for its share of the limit is summed, and left to the next collector", () => {
    begin(LIMITS, 2);
    const entry = (id: number) => told({ ...TO_DB, from: `10.0.0.1:${id}`, id, rules: BOTH, start: START - SECOND });
    look(START, entry(1), entry(2), entry(3));
    follower.ended(told({ ...TO_DB, from: "10.0.0.1:3", id: 3, start: START - SECOND }), START + 10);
    expect(records(START + 20).map(({ source }) => source.port)).toEqual([1]);
    const { records: last, overLimit } = flushLast(START + 30);
    expect(last.map(({ record }) => record.source.port)).toEqual([3]);
    expect(overLimit.map(({ source }) => source.port)).toEqual([2]);
  });
});

describe("ConnectionFollower, names", () => {
  test("a full table, when flows are switched on, leaves half of the limit to new connections", () => {
    begin(LIMITS, 10);
    const former = Array.from({ length: 30 }, (_, index) =>
      told({ ...TO_DB, from: `10.0.0.1:${41_000 + index}`, id: 10 + index, start: START - 60 * SECOND }),
    );
    look(START, ...former);
    expect(records(START + SECOND)).toHaveLength(5);
    for (let index = 0; index < 5; index++)
      follower.begins(told({ ...TO_DB, from: `10.0.0.1:${42_000 + index}`, id: 50 + index }), START + SECOND + 10);
    expect(records(START + SECOND + 100)).toHaveLength(5);
    expect(follower.losses.overLimit).toBe(0);
    for (let second = 2; second < 7; second++) records(START + second * SECOND);
    expect(records(START + 7 * SECOND)).toEqual([]);
  });

  test("waits a moment for the names of others, and updates the record when a pod becomes known", () => {
    const out: Ends = { from: "10.0.0.1:40000", to: "203.0.113.5:443" };
    follower.begins(told({ ...out, rules: [["workload egress", 1]] }), START);
    expect(names.takeQuestions()).toEqual(["203.0.113.5"]);
    expect(records(START + 300)).toEqual([]);
    expect(records(START + 800)).toMatchObject([
      { destination: { kind: "outside", address: "203.0.113.5" }, direction: "egress" },
    ]);

    names.learn([["203.0.113.5", { kind: "pod", namespace: "new", name: "pod", endpoint: "{}" }]]);
    const [renamed] = follower.flush(START + SETTLED).records;
    expect(renamed).toMatchObject({ destination: "{}", record: { destination: { kind: "pod", name: "pod" } } });

    // Names are those of the moment.
    names.learn([["203.0.113.5", { kind: "outside" }]]);
    follower.ended(told(out), START + 9 * SECOND);
    expect(records(START + 9 * SECOND)).toMatchObject([{ state: "ended", destination: { name: "pod" } }]);
  });

  test("waits no longer if the clock is set back", () => {
    const out: Ends = { from: "10.0.0.1:40000", to: "203.0.113.5:443" };
    follower.begins(told({ ...out, rules: [["workload egress", 1]] }), START);
    const { records: handedOn } = follower.flush(START - 3_600 * SECOND);
    expect(handedOn).toMatchObject([{ record: { destination: { kind: "outside" } }, added: { isNew: true } }]);
  });

  test("a late answer still names the end", () => {
    const out: Ends = { from: "10.0.0.1:40000", to: "10.0.3.5:443" };
    follower.begins(told({ ...out, rules: [["workload egress", 1]] }), START);
    follower.ended(told(out), START + 10);
    expect(records(START + SECOND)).toMatchObject([{ destination: { kind: "outside" } }]);
    expect(records(START + SETTLED)).toEqual([]);
    names.learn([["10.0.3.5", { kind: "pod", namespace: "new", name: "pod" }]]);
    const later = [0, 1, 2, 3].flatMap((flush) => records(START + 20 * SECOND + flush));
    expect(later).toMatchObject([{ state: "ended", destination: { kind: "pod", name: "pod" } }]);
    expect([follower.size, follower.losses.namesUnknown]).toEqual([0, 0]);
  });

  test("an end that nobody named is counted, also of a connection that is only summed", () => {
    begin(LIMITS, 1);
    for (const port of [1, 2]) {
      const out: Ends = { from: `10.0.0.1:${port}`, to: "203.0.113.5:443" };
      follower.begins(told({ ...out, id: port, rules: [["workload egress", 1]] }), START);
      follower.ended(told({ ...out, id: port }), START + 10);
    }
    expect(records(START + SECOND)).toHaveLength(1);
    expect(follower.losses).toMatchObject({ overLimit: 1, namesUnknown: 1 });
    records(START + 31 * SECOND);
    expect([follower.size, follower.losses.namesUnknown]).toEqual([0, 2]);
  });

  test("a flow is summed once, under the names that are sure", () => {
    const out: Ends = { from: "10.0.0.1:40000", to: "10.0.3.5:443" };
    follower.begins(told({ ...out, rules: [["workload egress", 1]] }), START);
    follower.ended(told({ ...out, counts: [2, 100, 1, 50] }), START + 10);
    const early = follower.flush(START + SECOND);
    expect(early.records).toMatchObject([{ added: { isNew: true, flows: 0, packets: 0, bytes: 0 } }]);
    names.learn([["10.0.3.5", { kind: "pod", namespace: "new", name: "pod" }]]);
    const late = follower.flush(START + SETTLED);
    expect(late.records).toMatchObject([
      { record: { destination: { kind: "pod" } }, added: { isNew: false, flows: 1, packets: 3, bytes: 150 } },
    ]);

    follower.begins(told({ ...out, to: "203.0.113.9:1", rules: [["workload egress", 1]] }), START);
    names.learn([["203.0.113.9", { kind: "outside" }]]);
    follower.flush(START + SECOND);
    const { records: none, sums } = flushLast(START + SECOND);
    expect([none, sums]).toMatchObject([[], [{ record: { destination: { kind: "outside" } }, added: { flows: 1 } }]]);
  });

  test("counters of a long connection are summed as they grow", () => {
    follower.begins(told({ ...TO_DB, rules: BOTH }), START);
    follower.flush(START + SETTLED);
    look(START + 60 * SECOND, told({ ...TO_DB, rules: BOTH, counts: [5, 500, 0, 0] }));
    const { records: grown } = follower.flush(START + 61 * SECOND);
    expect(grown).toMatchObject([{ added: { isNew: false, flows: 0, packets: 5, bytes: 500 } }]);
    follower.ended(told({ ...TO_DB, counts: [7, 700, 0, 0] }), START + 90 * SECOND);
    const { records: ended } = follower.flush(START + 91 * SECOND);
    expect(ended).toMatchObject([{ added: { isNew: false, flows: 0, packets: 2, bytes: 200 } }]);
  });

  test("a rule that the agent tells late is in the record, also if the connection has ended", () => {
    follower.begins(told({ ...TO_DB, rules: [["workload ingress", 9]] }), START);
    follower.ended(told(TO_DB), START + 10);
    expect(records(START + SECOND)).toMatchObject([{ decisions: [{ unknown: "rule forgotten" }] }]);
    expect(records(START + SETTLED)).toEqual([]);
    rules.learn([[9, "shop/db ingress 9"]]);
    follower.noteRules();
    expect(records(START + 4 * SECOND)).toMatchObject([{ decisions: [{ rule: "shop/db ingress 9" }] }]);
    records(START + 5 * SECOND);
    expect(follower.size).toBe(0);
  });

  test("what an earlier collector has summed is not summed again, and two records with one tuple both end", () => {
    const echo: Ends = { from: "10.0.0.1:0", to: "10.0.0.2:0", protocol: ICMP };
    follower.begins(told({ ...echo, id: 1, icmp: [8, 0], rules: BOTH }), START);
    follower.begins(told({ ...echo, id: 2, icmp: [8, 1], rules: BOTH }), START);
    const former = records(START + SECOND);
    expect(former).toHaveLength(2);
    begin();
    follower.adopt({ records: former, leftOut: 0 }, START + 5 * SECOND);
    look(START + 60 * SECOND, told({ ...TO_DB, id: 3, rules: BOTH, start: START, counts: [5, 500, 0, 0] }));
    const { records: handedOn } = follower.flush(START + 61 * SECOND);
    const ended = handedOn.filter(({ record }) => record.state === "ended");
    expect(ended.map(({ record }) => record.id).sort()).toEqual(former.map(({ id }) => id).sort());
    const found = handedOn.filter(({ record }) => record.state === "open");
    expect(found).toMatchObject([{ added: { isNew: true, flows: 0, packets: 0, bytes: 0 } }]);
  });

  test("names the Service and its backend, and the address that the backend sees", () => {
    names.learn([["10.0.0.9", { kind: "pod", namespace: "shop", name: "api", node: "node-2" }]]);
    const ends = { from: "10.0.0.1:40000", to: "10.96.0.7:80", answers: "10.0.0.9:8080", seenAs: "192.0.2.1:61000" };
    follower.begins(told({ ...ends, rules: [["workload egress", 1]] }), START);
    expect([...names.takeQuestions()].sort()).toEqual(["10.0.0.9", "10.96.0.7", "10.96.0.7 6 80"]);
    names.learn([
      ["10.0.0.9", { kind: "pod", namespace: "shop", name: "api", node: "node-2" }],
      ["10.96.0.7", { kind: "outside" }],
      ["10.96.0.7 6 80", { kind: "service", namespace: "shop", name: "api" }],
    ]);
    expect(records(START + 100)).toMatchObject([
      {
        destination: { kind: "service", namespace: "shop", name: "api", address: "10.96.0.7", port: 80 },
        backend: { kind: "pod", name: "api", address: "10.0.0.9", port: 8080, node: "node-2" },
        seenAs: { address: "192.0.2.1", port: 61_000 },
        direction: "egress",
      },
    ]);
  });

  test("names are bounded: the oldest are forgotten, and the agent is told", () => {
    for (let index = 1; index <= 60; index++) names.find(`198.51.100.${index}`, START + 100 * index);
    names.takeQuestions();
    for (let index = 61; index <= 70; index++) names.find(`198.51.100.${index}`, START + 100 * index);
    const forgotten = names.takeForgotten();
    expect(forgotten).toContain("198.51.100.20");
    expect(forgotten).not.toContain("198.51.100.60");
  });

  test("a flood of addresses asks for few of them", () => {
    for (let index = 0; index < 5_000; index++) names.find(`key ${index}`, START);
    expect(names.takeQuestions().length).toBeLessThanOrEqual(100);
  });

  test("a flood of strange addresses leaves questions for addresses near known ones", () => {
    for (let index = 0; index < 500; index++) names.find(`198.51.${index % 250}.${index}`, START);
    names.find("10.0.7.7", START);
    expect(names.takeQuestions()).toContain("10.0.7.7");
  });
});

describe("ConnectionFollower, what is recorded", () => {
  test.each([
    [
      "a connection of a host that a rule accepted",
      { from: "198.51.100.1:5000", to: "192.0.2.1:22", rules: [["host in", 4]] },
      "ingress",
    ],
    ["a workload's without a rule", { from: "198.51.100.1:5000", to: "10.0.0.2:5432" }, "ingress"],
    [
      "a workload's over IPv6",
      { from: "[fd00::1]:5000", to: "[2001:db8::1]:443", rules: [["workload egress", 1]] },
      "egress",
    ],
    [
      "a workload behind a host port",
      { from: "198.51.100.1:5000", to: "192.0.2.1:80", answers: "10.0.0.2:8080" },
      "ingress",
    ],
    ["a workload's to the port of VXLAN", { from: "10.0.0.1:5000", to: "198.51.100.1:4789", protocol: UDP }, "egress"],
  ] as const)("%s", (_title, ends, direction) => {
    follower.begins(told(ends), START);
    expect(records(START + 800)).toMatchObject([{ direction }]);
  });

  test.each([
    ["a host's own without a rule", { from: "192.0.2.1:5000", to: "198.51.100.1:443" }],
    ["loopback", { from: "127.0.0.1:5000", to: "127.0.0.1:80", rules: [["host out", 4]] }],
    ["loopback of IPv6", { from: "[::1]:5000", to: "[::1]:80", rules: [["host out", 4]] }],
    ["packets of tunnels", { from: "192.0.2.1:5000", to: "192.0.2.2:4789", protocol: UDP, rules: [["host out", 4]] }],
    ["packets of IPIP", { from: "192.0.2.1:0", to: "192.0.2.2:0", protocol: 4, rules: [["host out", 4]] }],
  ] as const)("not %s", (_title, ends) => {
    follower.begins(told(ends), START);
    follower.ended(told(ends), START + 10);
    expect(records(START + 800)).toEqual([]);
    expect(follower.losses.rulesUnknown).toBe(0);
  });

  test("ICMP has a type and a code in place of ports", () => {
    follower.begins(told({ from: "10.0.0.1:77", to: "10.0.0.2:0", protocol: ICMP, icmp: [8, 0], rules: BOTH }), START);
    const [record] = records(START + 100);
    expect(record).toMatchObject({ icmp: { type: 8, code: 0 }, source: { address: "10.0.0.1" } });
    expect(record?.source).not.toHaveProperty("port");
    expect(record).not.toHaveProperty("backend");
  });

  test("a related connection names the record of its parent, or its tuple", () => {
    follower.begins(told({ ...TO_DB, id: 1, rules: BOTH }), START);
    follower.begins(told({ from: "10.0.0.2:20", to: "10.0.0.1:50000", id: 2, parent: TO_DB }), START);
    const unknown = { from: "10.0.0.1:9", to: "10.0.0.9:21" };
    follower.begins(told({ from: "10.0.0.2:20", to: "10.0.0.1:50001", id: 3, parent: unknown }), START);
    const [parent, child, orphan] = records(START + 100);
    expect(child?.relatedTo).toBe(parent?.id ?? "");
    expect(orphan?.relatedTo).toBe("protocol 6 10.0.0.1:9 -> 10.0.0.9:21");

    begin();
    follower.adopt({ records: [parent, child].flatMap((record) => record ?? []), leftOut: 0 });
    const related = told({ from: "10.0.0.2:20", to: "10.0.0.1:50000", id: 2, parent: TO_DB, counts: [1, 60, 0, 0] });
    look(START + SECOND, related);
    const [continued] = records(START + 2 * SECOND).filter(({ state }) => state === "open");
    expect(continued).toMatchObject({ id: child?.id ?? "", relatedTo: parent?.id ?? "" });
  });
});

describe("ConnectionFollower, looks at the table", () => {
  test("returns the numbers in use, also those of connections that begin meanwhile", () => {
    follower.beginLook(START);
    follower.entry(told({ ...TO_DB, id: 1, rules: BOTH }), START);
    follower.begins(told({ from: "198.51.100.1:5000", to: "192.0.2.1:22", id: 2, rules: [["host in", 4]] }), START);
    expect([...follower.endLook(START + 10)].sort()).toEqual([1, 2, 4]);
  });

  test("a number is in use until the last record of its connections is written", () => {
    follower.begins(told({ ...TO_DB, rules: BOTH }), START);
    records(START + SETTLED);

    // The event of its end is lost: it is not in the table any more.
    expect(look(START + 60_000).toSorted()).toEqual([1, 2]);
    expect(look(START + 120_000).toSorted()).toEqual([1, 2]);
    expect(records(START + 120_100)).toMatchObject([{ state: "ended", decisions: [{}, {}] }]);
    expect(look(START + 180_000)).toEqual([]);
  });

  test("a long connection is updated by each look, and only if something has changed", () => {
    follower.begins(told({ ...TO_DB, rules: BOTH }), START);
    records(START + SETTLED);
    look(START + 60 * SECOND, told({ ...TO_DB, rules: BOTH, counts: [1, 60, 1, 40] }));
    expect(records(START + 60 * SECOND)).toMatchObject([
      { state: "open", sent: { bytes: 60 }, end: START + 60 * SECOND },
    ]);
    look(START + 120 * SECOND, told({ ...TO_DB, rules: BOTH, counts: [1, 60, 1, 40] }));
    expect(records(START + 120 * SECOND)).toEqual([]);
  });

  test("an entry that was read before the connection ended does not come back", () => {
    follower.begins(told({ ...TO_DB, rules: BOTH }), START);
    follower.beginLook(START + SECOND);
    follower.ended(told({ ...TO_DB, counts: [1, 60, 1, 40] }), START + SECOND);
    follower.entry(told({ ...TO_DB, rules: BOTH }), START + SECOND);
    follower.endLook(START + SECOND);
    expect(records(START + 2 * SECOND)).toMatchObject([{ state: "ended" }]);
    records(START + 9 * SECOND);
    expect(follower.size).toBe(0);
  });

  test("an entry that leaves the table after its end was told is no record", () => {
    const dying = told({ ...TO_DB, rules: BOTH });
    dying.status = STATUS.dying;
    look(START, dying);
    expect(follower.size).toBe(0);
  });

  test("an entry that is read before the event of the beginning is one record", () => {
    look(START, told({ ...TO_DB, rules: BOTH, start: START - 5 }));
    follower.begins(told({ ...TO_DB, rules: BOTH }), START + 10);
    expect(records(START + 100)).toHaveLength(1);
  });

  test("what two looks miss has ended, and its event was lost", () => {
    follower.begins(told({ ...TO_DB, rules: BOTH }), START);
    records(START + SETTLED);
    look(START + 60 * SECOND);
    expect(records(START + 60 * SECOND)).toEqual([]);
    look(START + 120 * SECOND);
    expect(records(START + 120 * SECOND)).toMatchObject([{ state: "ended" }]);
    expect(follower.size).toBe(0);
  });
});

describe("FlowIds", () => {
  test("tell neither the number of a flow nor that two are of one node", () => {
    const ids = new FlowIds();
    const texts = Array.from({ length: 1_000 }, () => ids.text(ids.next()));

    expect(new Set(texts).size).toBe(1_000);
    for (const text of texts) expect(text).toMatch(/^[0-9a-f]{20}$/);
    expect(new Set(texts.map((text) => text.slice(0, 4))).size).toBeGreaterThan(950);
    expect(new Set(texts.map((text) => text.slice(-4))).size).toBeGreaterThan(950);
    // The same each time, another one in another collector.
    expect(ids.text(1)).toBe(texts[0] ?? "");
    expect(new FlowIds().text(1)).not.toBe(texts[0] ?? "");
  });
});
