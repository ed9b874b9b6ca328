import { afterEach, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { flowStream, seededRandom } from "../../../../test/support/random-flows.ts";
import { temporaryDirectory } from "../../../../test/support/temporary-directory.ts";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { FlowLog } from "./flow-log.ts";

const START = Date.parse("2026-01-02T03:04:05Z");
const directory = temporaryDirectory("flow-log");
const path = join(directory.path, "flows.jsonl");
const stream = flowStream("one", seededRandom(3));
const records = Array.from({ length: 40 }, () => stream.next(START));

afterEach(() => directory.remove());

/** By the names of the files, the oldest first. */
function idsIn(names: readonly string[]): readonly string[] {
  return names
    .flatMap((name) => readFileSync(join(directory.path, name), "utf8").trimEnd().split("\n"))
    .map((line): FlowRecord => JSON.parse(line))
    .map(({ id }) => id);
}

test("rotates the file at its size, keeps so many, and loses no line of those; only root may read them", () => {
  let now = START;
  const rotation = { maxSizeBytes: 5_000, maxAgeDays: 30, maxCount: 2 };
  const log = new FlowLog(path, () => new Date(now), expect.unreachable, rotation);
  for (const record of records) {
    now += 1_000;
    log.append(record);
  }
  log.close();

  const [current = "", ...others] = readdirSync(directory.path).toSorted().toReversed();
  const names = [...others.toReversed(), current];
  expect([current, others.length]).toEqual(["flows.jsonl", 2]);
  for (const name of names) {
    const { size, mode } = statSync(join(directory.path, name));
    expect([size <= 5_000, mode & 0o777]).toEqual([true, 0o600]);
  }
  const kept = idsIn(names);
  expect(kept).toEqual(records.slice(-kept.length).map(({ id }) => id));
  expect(log.notLogged).toBe(0);
});

test("counts what it cannot write, says so once, and goes on when it can", () => {
  mkdirSync(path, { recursive: true });
  const warnings: string[] = [];
  const log = new FlowLog(
    path,
    () => new Date(START),
    (message) => warnings.push(message),
  );
  for (const record of records.slice(0, 3)) log.append(record);
  expect([log.notLogged, warnings.length]).toEqual([3, 1]);
  expect(warnings[0]).toContain(path);

  rmdirSync(path);
  for (const record of records.slice(3, 5)) log.append(record);
  log.close();
  expect(idsIn(["flows.jsonl"])).toEqual(records.slice(3, 5).map(({ id }) => id));
  expect(log.notLogged).toBe(3);
});
