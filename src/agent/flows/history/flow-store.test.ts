/** The history with real files, compared with a list of all records. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flowStream, seededRandom } from "../../../../test/support/random-flows.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../../../../test/support/temporary-directory.ts";
import type { FlowFilter, FlowRollup } from "../../../flows/flow-answer.ts";
import { type FlowQuery, matcherOf, type Sight } from "../../../flows/flow-query.ts";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { mayList, visibleFlow, visibleMatcher, visibleRollup } from "../../../flows/visible-flows.ts";
import { answerRollups } from "./answer-rollups.ts";
import { DamagedFile } from "./dictionary.ts";
import { FlowStore, historyPath, type StoreLimits, setAside } from "./flow-store.ts";
import type { Moment } from "./history-age.ts";
import { findRecords } from "./read-records.ts";
import { MINUTE, PendingSums, rollupKeyOf } from "./rollups.ts";
import { noteSwitchedOff } from "./switched-off.ts";

const START = Date.UTC(2026, 10, 1);
const DAY = 86_400_000;
const LIMITS: StoreLimits = { bytes: 8_000_000, milliseconds: DAY };
const NEVER = new AbortController().signal;

let directory: TemporaryDirectory;
let store: FlowStore;
let sums: PendingSums;
beforeEach(() => {
  sums = new PendingSums(LIMITS.bytes);
  directory = temporaryDirectory("flows");
  store = open();
});
afterEach(() => {
  store.abandon();
  directory.remove();
});

/** A moment of a machine whose clock was never set. */
function at(now: number): Moment {
  return { now, elapsed: now - START };
}

function open(limits = LIMITS, now = START): FlowStore {
  return FlowStore.open({ directory: join(directory.path, "flows"), node: "one", limits }, at(now));
}

function write(records: readonly FlowRecord[], now: number): void {
  store.write({ records: records.map((record) => ({ record })), resources: [], sums, moment: at(now) });
}

async function found(query: FlowQuery, sight?: Sight): Promise<readonly FlowRecord[]> {
  return await Array.fromAsync(findRecords(store, filterOf(query, sight), NEVER));
}

async function rollups(query: FlowQuery, sight?: Sight): Promise<readonly FlowRollup[]> {
  const asking = { node: "one", signal: NEVER };
  const answers = await Array.fromAsync(answerRollups(store, filterOf(query, sight), asking));
  return answers.flatMap((answer) => ("rollup" in answer ? answer.rollup : []));
}

function filterOf(query: FlowQuery, sight: Sight | undefined): FlowFilter {
  return sight === undefined ? { query } : { query, sight };
}

/** The latest form of each record, in the order of the changes. */
class Model {
  readonly records = new Map<string, FlowRecord>();
  readonly sums = new Map<string, { flows: number; packets: number; bytes: number }>();

  put(record: FlowRecord): void {
    const former = this.records.get(record.id);
    this.records.delete(record.id);
    this.records.set(record.id, record);
    const key = JSON.stringify([Math.floor(record.end / MINUTE), rollupKeyOf(record)]);
    const sum = this.sums.get(key) ?? { flows: 0, packets: 0, bytes: 0 };
    const total = (each: FlowRecord | undefined, field: "packets" | "bytes") =>
      each === undefined ? 0 : each.sent[field] + each.received[field];
    sum.flows += former === undefined ? 1 : 0;
    for (const field of ["packets", "bytes"] as const) sum[field] += total(record, field) - total(former, field);
    this.sums.set(key, sum);
  }

  find(query: FlowQuery, sight?: Sight): readonly FlowRecord[] {
    const all = [...this.records.values()].filter((record) => {
      const visible = sight === undefined ? record : visibleFlow(record, sight);
      return visible !== undefined && matcherOf(query)(visible);
    });
    return query.last === undefined ? all : all.slice(Math.max(0, all.length - query.last));
  }
}

const QUERIES: readonly FlowQuery[] = [
  {},
  { last: 20 },
  { last: 0 },
  { verdict: "denied" },
  { staged: "denied" },
  { staged: "allowed", verdict: "denied", last: 5 },
  { verdict: "denied", last: 7, namespace: "shop" },
  { verdict: "allowed", namespace: "data" },
  { verdict: "unknown" },
  { namespace: "nowhere" },
  { pod: "shop/app-1-*" },
  { pod: "app-*", last: 50 },
  { label: "app=app-3,tier=front" },
  { from: "outside" },
  { from: "192.0.2.1" },
  { to: "10.1.0.0/24", port: 443 },
  { to: "2001:db8::5" },
  { to: "10.1.1.7" },
  { to: "service/shop/front", protocol: "udp" },
  { from: "set/partners-1" },
  { to: "node/node-2" },
  { policy: "shop/web" },
  { policy: "db", verdict: "denied" },
  { node: "two" },
  { id: "one-1z" },
  { since: START + 20_000 },
  { since: START + 20_000, last: 30 },
  { since: START + 10_000, until: START + 20_000 },
  { until: START + 5_000, namespace: "shop" },
];

/** Of readers who may not see everything. */
const SIGHTS: readonly Sight[] = [
  { everyPod: false, nodes: false, podsOf: new Set(["shop"]) },
  { everyPod: false, nodes: true, podsOf: new Set(["data"]) },
  { everyPod: true, nodes: false, podsOf: new Set() },
  { everyPod: false, nodes: false, podsOf: new Set() },
];

describe("FlowStore", () => {
  test("finds what a filter over all records finds", async () => {
    const stream = flowStream("one", seededRandom(7));
    const model = new Model();
    for (let second = 0; second < 40; second++) {
      const now = START + second * 1_000;
      const records = Array.from({ length: 300 }, () => stream.next(now));
      for (const record of records) model.put(record);
      write(records, now);
      if (second === 25) {
        store.close(at(now));
        store = open();
      }
    }

    expect(model.records.size).toBeGreaterThan(4_000);
    const asked = QUERIES.flatMap((query, index) => [[query] as const, [query, SIGHTS[index % 4]] as const]);
    for (const [query, sight] of asked) {
      const expected = model.find(query, sight);
      const actual = await found(query, sight);
      // Open connections that were not changed since come first.
      const order = (records: readonly FlowRecord[]) =>
        query.since === undefined ? records : records.toSorted((left, right) => (left.id < right.id ? -1 : 1));
      expect({ query, sight, records: order(actual) }).toEqual({ query, sight, records: [...order(expected)] });
    }
    expect(QUERIES.filter((query) => model.find(query).length > 0).length).toBeGreaterThan(22);
  }, 30_000);

  test("sums what came, minute by minute, also when it condenses minutes into hours", async () => {
    const stream = flowStream("one", seededRandom(11));
    const model = new Model();
    for (let minute = 0; minute < 150; minute++) {
      const now = START + minute * MINUTE;
      const records = Array.from({ length: 40 }, () => stream.next(now));
      for (const record of records) model.put(record);
      write(records, now);
    }
    const total = (each: Iterable<{ flows: number; packets: number; bytes: number }>) =>
      [...each].reduce(
        (all, { flows, packets, bytes }) => ({
          ...{ flows: all.flows + flows, packets: all.packets + packets, bytes: all.bytes + bytes },
        }),
        { flows: 0, packets: 0, bytes: 0 },
      );
    const expectSums = async () => {
      const expected = new Map<string, { flows: number; packets: number; bytes: number }>();
      for (const [text, sum] of model.sums) {
        const key = JSON.stringify((JSON.parse(text) as unknown[])[1]);
        expected.set(key, total([sum, expected.get(key) ?? { flows: 0, packets: 0, bytes: 0 }]));
      }
      const actual = new Map(
        (await rollups({})).map(({ node, from, until, flows, packets, bytes, ...key }) => [
          JSON.stringify(key),
          { flows, packets, bytes },
        ]),
      );
      expect(actual).toEqual(expected);
    };
    await expectSums();
    const since = START + 30 * MINUTE;
    const expected = total(
      [...model.sums].filter(([text]) => JSON.parse(text)[0] * MINUTE >= since).map(([, sum]) => sum),
    );
    expect(total(await rollups({ since }))).toEqual(expected);

    // Two hours are older than a day now.
    for (let round = 0; round < 300 && store.tidy(at(START + DAY + 125 * MINUTE)); round++);
    store.sweep(at(START + DAY + 125 * MINUTE));
    await expectSums();
    expect(store.database.query("SELECT DISTINCT minute, span FROM rollup WHERE span = 60").all()).toHaveLength(2);
    expect(total(await rollups({ since: START + 60 * MINUTE })).flows).toBe(
      total(
        [...model.sums].filter(([text]) => JSON.parse(text)[0] * MINUTE >= START + 60 * MINUTE).map(([, sum]) => sum),
      ).flows,
    );
    const ofShop = await rollups({ namespace: "shop", verdict: "denied" });
    expect(ofShop.length).toBeGreaterThan(0);
    for (const { source, destination, verdict } of ofShop) {
      expect([source.namespace, destination.namespace]).toContain("shop");
      expect(verdict).toBe("denied");
    }
  });

  test("sums for a reader of one namespace only what is shown to this reader, by pods and labels too", async () => {
    const stream = flowStream("one", seededRandom(13));
    const records = Array.from({ length: 1_000 }, (): FlowRecord => ({ ...stream.next(START), state: "ended" }));
    const ended = [...new Map(records.map((record) => [record.id, record])).values()];
    write(ended, START);
    const sight: Sight = { everyPod: false, nodes: false, podsOf: new Set(["shop"]) };
    // A roll-up names who answers, not the Service that was asked for.
    const isSummed = (record: FlowRecord) =>
      mayList(record.source, sight) || mayList(record.backend ?? record.destination, sight);
    const sumOf = async (query: FlowQuery) =>
      (await rollups(query, sight)).reduce((sum, each) => sum + (visibleRollup(each, sight)?.flows ?? 0), 0);
    for (const query of [{}, { pod: "app-*" }, { pod: "data/*" }, { label: "app=app-3" }, { policy: "db" }]) {
      const shown = ended.filter((record) => isSummed(record) && visibleMatcher({ query, sight })(record));
      expect([query, await sumOf(query)]).toEqual([query, shown.length]);
    }
    expect(await sumOf({ pod: "app-*" })).toBeGreaterThan(10);
    const all = (await rollups({ pod: "app-*" })).reduce((sum, { flows }) => sum + flows, 0);
    expect(await sumOf({ pod: "app-*" })).toBeLessThan(all);
  });

  test("sums of single flows are complete if these are kept from the wanted time on", async () => {
    const stream = flowStream("one", seededRandom(7));
    write(
      Array.from({ length: 5 }, () => stream.next(START)),
      START,
    );
    const isComplete = async (query: FlowQuery) => {
      const answers = await Array.fromAsync(answerRollups(store, { query }, { node: "one", signal: NEVER }));
      return answers.every((answer) => !("problem" in answer));
    };
    // There were none before.
    expect(await isComplete({ pod: "app-*", since: START - MINUTE })).toBe(true);
    const late = START + DAY + 5_000;
    write([stream.next(late)], late);
    while (store.tidy(at(late)));
    expect(await isComplete({ pod: "app-*", since: START - MINUTE })).toBe(false);
    expect(await isComplete({ pod: "app-*" })).toBe(false);
    expect(await isComplete({ pod: "app-*", since: START + MINUTE })).toBe(true);
    expect(await isComplete({ since: START - MINUTE })).toBe(true);
  });

  test("a connection whose former row was removed is summed once", async () => {
    const record: FlowRecord = { ...flowStream("one", seededRandom(5)).next(START), state: "open" };
    const put = (added: { flows: number; packets: number; bytes: number }, now: number) =>
      store.write({
        records: [{ record: { ...record, end: now }, added: { isNew: added.flows > 0, ...added } }],
        ...{ resources: [], sums, moment: at(now) },
      });
    expect(put({ flows: 1, packets: 2, bytes: 100 }, START).begun).toHaveLength(1);
    while (store.tidy(at(START + 2 * DAY)));
    expect(await found({})).toEqual([]);

    expect(put({ flows: 0, packets: 1, bytes: 50 }, START + 2 * DAY).begun).toEqual([]);
    const [sum] = await rollups({});
    expect([sum?.flows, sum?.packets, sum?.bytes]).toEqual([1, 3, 150]);
  });

  test("beginning, end and denied packets are told once, however often a record is put", () => {
    const stream = flowStream("one", seededRandom(5));
    const put = (record: FlowRecord) =>
      store.write({ records: [{ record }], resources: [], sums, moment: at(record.end) });
    const told = (record: FlowRecord) => {
      const { begun, ended, deniedPackets } = put(record);
      return [begun.length, ended.length, deniedPackets];
    };
    const of = (state: FlowRecord["state"], packets: number): FlowRecord => ({
      ...{ ...stream.next(START), id: state === "denied" ? "one-d" : "one-c", state },
      ...{ sent: { packets, bytes: packets * 60 }, received: { packets: 0, bytes: 0 } },
    });
    expect(told(of("open", 1))).toEqual([1, 0, 0]);
    expect(told(of("ended", 4))).toEqual([0, 1, 0]);
    // Its names have changed.
    expect(told(of("ended", 4))).toEqual([0, 0, 0]);
    // The first packet of TCP is sent again.
    expect(told(of("denied", 1))).toEqual([1, 0, 1]);
    expect(told(of("denied", 2))).toEqual([0, 0, 1]);
    expect(told(of("denied", 5))).toEqual([0, 0, 3]);
  });

  test("what is open beyond those that are continued has ended", async () => {
    const stream = flowStream("one", seededRandom(6));
    const records = Array.from({ length: 5 }, (_, index) => ({
      ...stream.next(START),
      id: `${index}`,
      state: "open" as const,
    }));
    write(records, START);
    store.close(at(START));
    store = open(LIMITS, START + 1_000);
    const { records: continued, leftOut } = store.openRecords(2);
    expect([continued.map(({ id }) => id), leftOut]).toEqual([["4", "3"], 3]);
    expect((await found({})).filter(({ state }) => state === "open")).toHaveLength(2);
    expect(store.formerAlive).toBe(START);
  });

  test("never has more bytes than its limit, and keeps the newest records", async () => {
    const stream = flowStream("one", seededRandom(3));
    const model = new Model();
    let most = 0;
    for (let second = 0; second < 160; second++) {
      const now = START + second * 1_000;
      const records = Array.from({ length: 1_000 }, () => stream.next(now));
      for (const record of records) model.put(record);
      write(records, now);
      if (second % 10 === 0) store.sweep(at(now));
      most = Math.max(most, store.bytes);
    }

    expect(most).toBeLessThan(LIMITS.bytes);
    const kept = await found({});
    expect(kept.length).toBeGreaterThan(15_000);
    expect(kept.length).toBeLessThan(model.records.size);
    expect(kept).toEqual([...model.records.values()].slice(-kept.length));
    expect(store.database.query("PRAGMA quick_check").get()).toEqual({ quick_check: "ok" });

    // A lower limit makes it smaller.
    store.setLimits({ ...LIMITS, bytes: 4_000_000 });
    for (let round = 0; round < 200 && store.tidy(at(START + 160_000)); round++);
    write([stream.next(START + 161_000)], START + 161_000);
    expect(store.bytes).toBeLessThan(4_000_000);
  }, 60_000);

  test("removes what is older than its age, names included", async () => {
    const stream = flowStream("one", seededRandom(5));
    write(
      Array.from({ length: 500 }, () => stream.next(START)),
      START,
    );
    const late = START + DAY + 5_000;
    write([stream.next(late)], late);
    while (store.tidy(at(late)));
    store.sweep(at(late));

    expect(await found({})).toHaveLength(1);
    const later = late + 8 * DAY;
    while (store.tidy(at(later)));
    store.sweep(at(later));
    expect(await found({})).toEqual([]);
    expect(await rollups({})).toEqual([]);
    expect(store.withoutCollector()).toBe(0);
  });

  test("knows how long nobody has written", () => {
    write([], START + 60_000);
    store.close(at(START + 60_000));
    store = open(LIMITS, START + 100_000);
    store.close(at(START + 110_000));
    store = open(LIMITS, START + 120_000);

    expect(store.withoutCollector()).toBe(0);
    const [record] = [flowStream("one", seededRandom(1)).next(START)];
    store.close(at(START + 120_000));
    directory.remove();
    directory = temporaryDirectory("flows");
    store = open();
    write(record === undefined ? [] : [record], START + 60_000);
    store.close(at(START + 60_000));
    store = open(LIMITS, START + 100_000);
    expect(store.withoutCollector()).toBe(40_000);
  });

  test("knows what earlier collectors have lost, until their records are gone", () => {
    const lost = { ...store.formerLosses(), overLimit: 7 };
    const [record] = [flowStream("one", seededRandom(1)).next(START)];
    store.setLosses(lost);
    write(record === undefined ? [] : [record], START);
    expect(store.formerLosses().overLimit).toBe(0);
    store.abandon();
    store = open(LIMITS, START + 60_000);
    expect(store.formerLosses()).toEqual(lost);
    const later = START + 8 * DAY;
    while (store.tidy(at(later)));
    store.sweep(at(later));
    expect(store.formerLosses().overLimit).toBe(0);
  });

  test("keeps resources as they were", () => {
    const put = (value: string | undefined, since: number, key = "a") => {
      const resource = { kind: "tiers", key, ...(value === undefined ? {} : { value }) };
      store.write({ records: [], resources: [{ resources: [resource], since }], sums, moment: at(since) });
    };
    const known = (time: number) => store.resources.at(time)?.map(({ key, value }) => `${key}=${value}`);
    const long = "x".repeat(5_000);
    put(long, START);
    put("b", START + 10, "b");
    put("2", START + 20);
    put("2", START + 25);
    put(undefined, START + 30);

    expect(known(START - 1)).toBeUndefined();
    expect(known(START + 19)).toEqual([`a=${long}`, "b=b"]);
    expect(known(START + 20)).toEqual(["a=2", "b=b"]);
    expect(known(START + 30)).toEqual(["b=b"]);
    expect(store.database.query("SELECT count(*) AS n FROM resource").get()).toEqual({ n: 4 });

    // What is not told again after a restart is gone since.
    store.close(at(START + 40));
    store = open(LIMITS, START + 50);
    put("3", START + 55, "c");
    store.removeUnconfirmedResources();
    expect(known(START + 45)).toEqual(["b=b"]);
    expect(known(START + 60)).toEqual(["c=3"]);

    store.sweep(at(START + 60));
    expect(known(START + 60)).toEqual(["c=3"]);
    expect(store.database.query("SELECT count(*) AS n FROM resource").get()).toEqual({ n: 1 });
    expect(store.database.query("SELECT count(*) AS n FROM content").get()).toEqual({ n: 1 });
  });

  test("keeps the endpoints of a flow once", () => {
    const stream = flowStream("one", seededRandom(2));
    const records = Array.from({ length: 50 }, () => stream.next(START));
    const seen = records.map((record) => ({ record, source: '{"a":1}', destination: '{"b":2}' }));
    store.write({ records: seen, resources: [], sums, moment: at(START) });

    const id = records.at(-1)?.id ?? "";
    expect(store.rows.endpointsOf(id)).toEqual(['{"a":1}', '{"b":2}']);
    write([{ ...(records.at(-1) as FlowRecord), state: "ended" }], START + 1);
    expect(store.rows.endpointsOf(id)).toEqual(['{"a":1}', '{"b":2}']);
    expect(store.database.query("SELECT count(*) AS n FROM content").get()).toEqual({ n: 2 });
  });

  test("refuses a damaged file and one of another version, and puts it aside once", () => {
    const path = historyPath(join(directory.path, "flows"));
    for (const content of ["no database at all".repeat(500), "SQLite format 3\0 and no more".repeat(500)]) {
      store.abandon();
      writeFileSync(path, content);
      for (const end of ["-wal", "-shm"]) expect(existsSync(path + end)).toBe(false);
      expect(() => open()).toThrow(DamagedFile);
      setAside(join(directory.path, "flows"));
      store = open();
      expect(readdirSync(join(directory.path, "flows")).toSorted()).toEqual([
        "history.db",
        "history.db-wal",
        "history.db.damaged",
      ]);
    }
    store.database.run("PRAGMA user_version = 99");
    store.abandon();
    expect(() => open()).toThrow(DamagedFile);
  });

  test("only its owner may read it", () => {
    const folder = join(directory.path, "flows");
    write([flowStream("one", seededRandom(1)).next(START)], START);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const file of readdirSync(folder)) expect(statSync(join(folder, file)).mode & 0o077).toBe(0);
  });

  test("a scan cannot make it larger: ports are left out, then counted", () => {
    const [record] = [flowStream("one", seededRandom(1)).next(START)];
    sums = new PendingSums(100_000_000);
    const to = (port: number, name: string): FlowRecord => ({
      ...(record as FlowRecord),
      destination: { kind: "pod", address: "10.0.0.1", namespace: "shop", name, port },
    });
    for (let port = 1; port <= 30_000; port++) sums.add(to(port, "web"), { flows: 1, packets: 1, bytes: 40 });
    expect(sums.leftOut).toBe(0);
    for (let pod = 0; pod < 5_000; pod++) sums.add(to(80, `pod-${pod}`), { flows: 1, packets: 1, bytes: 40 });

    expect(sums.leftOut).toBe(5_000 - 1_999);
    expect(sums.flows + sums.leftOut).toBe(35_000);
    const taken = sums.take();
    expect(taken.length).toBe(12_000);
    expect(taken.filter(({ key }) => key.port === undefined).length).toBe(2_000);
  });
});

describe("ages of the history", () => {
  const HOUR = 3_600_000;
  /** A clock that shows another time than it would if nobody had set it. */
  const wrong = (now: number, by: number): Moment => ({ ...at(now), now: now + by });
  const stream = flowStream("one", seededRandom(8));
  let written = 0;
  const writeAt = (moment: Moment) => {
    written += 1;
    const record: FlowRecord = { ...stream.next(moment.now), id: `${written}`, state: "ended", end: moment.now };
    store.write({ records: [{ record }], resources: [], sums, moment });
    while (store.tidy(moment));
    store.sweep(moment);
  };
  const kept = async () => [(await found({})).length, (await rollups({})).length > 0];

  test.each([
    ["forward by ten years", 3_650 * DAY],
    ["back by ten years", -3_650 * DAY],
  ])("a clock that is set %s removes nothing, and keeps nothing for ever", async (_, by) => {
    writeAt(at(START));
    writeAt(wrong(START + HOUR, by));
    expect(await kept()).toEqual([2, true]);
    // It is set right again.
    writeAt(at(START + 2 * HOUR));
    expect(await kept()).toEqual([3, true]);

    writeAt(at(START + DAY + 90 * MINUTE));
    expect((await found({})).map(({ end }) => end)).toEqual([START + 2 * HOUR, START + DAY + 90 * MINUTE]);
    const later = START + 10 * DAY;
    while (store.tidy(at(later)));
    store.sweep(at(later));
    expect(await kept()).toEqual([0, false]);
  });

  test.each([10 * 365 * DAY, -10 * 365 * DAY])(
    "a clock that is wrong at boot by %d ms, and set later, removes nothing and invents no gap",
    async (by) => {
      writeAt(at(START + HOUR));
      store.close(at(START + HOUR));
      // The machine was off for a minute, and runs for five seconds.
      const booted = START + HOUR + MINUTE;
      const boot = (now: number, wrongBy = 0): Moment => ({ now: now + wrongBy, elapsed: now - booted + 5_000 });
      store = FlowStore.open(
        { directory: join(directory.path, "flows"), node: "one", limits: LIMITS },
        boot(booted, by),
      );
      writeAt(boot(booted + 1_000, by));
      expect((await found({})).length).toBe(2);
      store.noteAlive(boot(booted + 20_000));

      expect(store.withoutCollector()).toBe(MINUTE);
      expect((await found({})).length).toBe(2);
    },
  );

  test("the time in which the machine ran without a collector counts, and that in which it was off does not", async () => {
    writeAt(at(START));
    store.close(at(START));
    store = open(LIMITS, START + 2 * DAY);
    while (store.tidy(at(START + 2 * DAY)));
    expect(await found({})).toEqual([]);

    writeAt(at(START + 2 * DAY));
    store.close(at(START + 2 * DAY));
    store = FlowStore.open(
      { directory: join(directory.path, "flows"), node: "one", limits: LIMITS },
      { now: START + 9 * DAY, elapsed: MINUTE },
    );
    while (store.tidy({ now: START + 9 * DAY, elapsed: MINUTE }));
    expect((await found({})).length).toBe(1);
  });

  test("rows after all former ones were removed are as new as they are", async () => {
    writeAt(at(START));
    while (store.tidy(at(START + 2 * DAY)));
    store.close(at(START + 2 * DAY));
    store = open(LIMITS, START + 2 * DAY + 1);
    writeAt(at(START + 2 * DAY + 2));
    expect((await found({})).length).toBe(1);
  });

  test("a time with flows switched off is no time without a collector", () => {
    const folder = join(directory.path, "flows");
    writeAt(at(START));
    noteSwitchedOff(folder, START + 1_000);
    store.close(at(START + 1_010));
    // The agent starts again meanwhile.
    noteSwitchedOff(folder, START + HOUR);
    store = open(LIMITS, START + 2 * HOUR);
    expect(store.withoutCollector()).toBe(0);

    // It died before they were switched off.
    writeAt(at(START + 3 * HOUR));
    store.abandon();
    noteSwitchedOff(folder, START + 3 * HOUR + 5_000);
    store = open(LIMITS, START + 4 * HOUR);
    expect(store.withoutCollector()).toBe(5_000);

    store.close(at(START + 5 * HOUR));
    store = open(LIMITS, START + 5 * HOUR + 7_000);
    expect(store.withoutCollector()).toBe(12_000);
  });
});
