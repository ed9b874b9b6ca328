/** The history of flows on a full disk, killed while it writes, and damaged while it is in use. */
import { afterEach, beforeEach, describe, expect } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FlowHistory } from "../../src/agent/flows/history/flow-history.ts";
import type { FlowAnswer, FlowQuestion } from "../../src/flows/flow-answer.ts";
import type { FlowQuery } from "../../src/flows/flow-query.ts";
import type { FlowRecord } from "../../src/flows/flow-record.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { flowStream, seededRandom } from "../support/random-flows.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";

const test = testNeeding(root, program("unshare"));
const WRITER = join(import.meta.dir, "history.process.ts");
const ALL: FlowQuestion = { kind: "flows", query: {}, follow: false };
const DAY = 86_400_000;
const NEVER = new AbortController().signal;

let directory: TemporaryDirectory;
let warnings: string[] = [];
/** Milliseconds by which the clock of the history is ahead. */
let later = 0;
beforeEach(() => {
  later = 0;
  directory = temporaryDirectory("history");
  warnings = [];
});
afterEach(() => directory.remove());

function open(logFile?: string): FlowHistory {
  return new FlowHistory({
    ...{ directory: join(directory.path, "flows"), node: "one", now: () => Date.now() + later },
    elapsed: () => performance.now(),
    warn: (message) => warnings.push(message),
    settings: {
      limits: { bytes: 50_000_000, milliseconds: DAY },
      ...(logFile === undefined ? {} : { logFile }),
    },
  });
}

async function ask(history: FlowHistory, question: FlowQuestion = ALL): Promise<readonly FlowAnswer[]> {
  return await Array.fromAsync(history.answer(question, NEVER));
}

function flowsOf(answers: readonly FlowAnswer[]): readonly FlowRecord[] {
  return answers.flatMap((answer) => ("flow" in answer ? answer.flow : []));
}

function put(history: FlowHistory, count: number, seed = 1): readonly FlowRecord[] {
  const stream = flowStream("one", seededRandom(seed));
  const records = Array.from({ length: count }, () => stream.next(Date.now()));
  history.put(
    records.map((record) => ({ record })),
    [],
  );
  return records;
}

describe("the history of flows", () => {
  test("counts what a full disk does not take, and goes on when there is space again", async () => {
    const { path } = directory;
    const script = `mount -t tmpfs -o size=3m none ${path} && exec ${process.execPath} ${WRITER} ${path} full-disk`;
    const child = Bun.spawn(["unshare", "-m", "sh", "-c", script], { stdout: "pipe", stderr: "inherit" });
    const said = JSON.parse(await new Response(child.stdout).text());

    expect(said.before).toEqual({ found: 10, problems: [] });
    // What was stored before is still found.
    expect(said.full.found).toBe(10);
    expect(said.full.notStored).toBeGreaterThan(10_000);
    expect(said.full.notLogged).toBeGreaterThan(10_000);
    expect(said.after.found).toBe(5);
    expect(said.more).toEqual([0, 0]);
    expect(said.warnings.length).toBeGreaterThanOrEqual(2);
    expect(said.warnings.length).toBeLessThan(30);
  });

  test("a loss is said as long as the history goes back, also after restarts", async () => {
    const losses = async (history: FlowHistory) =>
      (await ask(history)).flatMap((answer) => ("losses" in answer ? answer.losses : []))[0];
    const none = { kernelOverruns: 0, rulesUnknown: 0, overLimit: 0, overCapacity: 0, deniedSuppressed: 0 };
    const first = open();
    put(first, 10);
    first.noteLosses({ ...none, namesUnknown: 1, kernelOverruns: 2 });
    await first.close();
    const second = open();
    expect(await losses(second)).toMatchObject({ kernelOverruns: 2, namesUnknown: 1, overLimit: 0 });
    expect(second.losses.kernelOverruns).toBe(0);
    second.noteLosses({ ...none, namesUnknown: 0, kernelOverruns: 3 });
    expect(await losses(second)).toMatchObject({ kernelOverruns: 5 });
    await second.close();
    const third = open();
    expect(await losses(third)).toMatchObject({ kernelOverruns: 5, namesUnknown: 1 });
    await third.close();
  });

  test("killed while it writes, it is whole and its sums are those of its records", async () => {
    for (let round = 0; round < 3; round++) {
      const writer = Bun.spawn([process.execPath, WRITER, directory.path, "endless"], { stdout: "pipe" });
      const reader = writer.stdout.getReader();
      for (let count = 0; count <= 5 * round; count++) await reader.read();
      writer.kill("SIGKILL");
      await writer.exited;
    }
    const history = open();
    const flows = flowsOf(await ask(history));
    const sums = (await ask(history, { kind: "rollups", query: {} })).flatMap((answer) =>
      "rollup" in answer ? answer.rollup : [],
    );
    await history.close();

    expect(warnings).toEqual([]);
    expect(existsSync(join(directory.path, "flows/history.db.damaged"))).toBe(false);
    expect(flows.length).toBeGreaterThan(1_000);
    const bytes = flows.reduce((sum, { sent, received }) => sum + sent.bytes + received.bytes, 0);
    expect(sums.reduce((sum, rollup) => sum + rollup.bytes, 0)).toBe(bytes);
    expect(sums.reduce((sum, rollup) => sum + rollup.flows, 0)).toBe(flows.length);
  });

  test("damaged while it is not in use, it begins again and says so", async () => {
    const path = join(directory.path, "flows/history.db");
    const first = open();
    put(first, 3_000);
    await first.close();
    const bytes = readFileSync(path);
    bytes.fill(0x5a, 8_192, bytes.length - 4_096);
    writeFileSync(path, bytes);

    const history = open();
    put(history, 10);
    const answers = await ask(history);
    expect(flowsOf(answers).length).toBeGreaterThan(0);
    expect(answers.flatMap((answer) => ("problem" in answer ? answer.problem.message : []))).toEqual([
      expect.stringContaining("it was damaged"),
    ]);
    const problems = async (query: FlowQuery) =>
      (await ask(history, { ...ALL, query })).filter((answer) => "problem" in answer).length;
    expect(await problems({ since: Date.now() + 1 })).toBe(0);
    expect(await problems({})).toBe(1);
    later = DAY;
    expect(await problems({})).toBe(0);
    expect(warnings).toEqual([expect.stringContaining("history.db.damaged")]);
    expect(statSync(`${path}.damaged`).size).toBe(bytes.length);
    await history.close();
  });

  test("tells followers what comes, and how much they missed", async () => {
    const history = open();
    const stopping = new AbortController();
    const question: FlowQuestion = { kind: "flows", query: { last: 0, verdict: "denied" }, follow: true };
    const answers = history.answer(question, stopping.signal)[Symbol.asyncIterator]();
    expect((await answers.next()).value).toHaveProperty("losses");
    const next = answers.next();
    const denied = put(history, 300).filter(({ verdict }) => verdict === "denied");
    expect((await next).value).toEqual({ flow: denied[0] });
    for (const flow of denied.slice(1)) expect((await answers.next()).value).toEqual({ flow });

    const all = put(history, 60_000, 2).filter(({ verdict }) => verdict === "denied").length;
    let [read, missed] = [0, 0];
    while (missed === 0) {
      const { value } = await answers.next();
      if ("flow" in value) read += 1;
      if ("problem" in value) missed = Number(/^\d+/.exec(value.problem.message)?.[0]);
    }
    expect(read + missed).toBe(all);
    expect(read).toBe(2_000);
    const over = answers.next();
    stopping.abort();
    await over;
    expect((await answers.next()).done).toBe(true);
    // More than may wait to be stored.
    expect(history.losses.notStored).toBe(10_300);
    await history.close();
  });

  test("no name breaks a line of the log", async () => {
    const path = join(directory.path, "log/flows.json");
    const history = open(path);
    const [record] = put(history, 1);
    const name = 'a"}\n{"forged":1}\r\u2028\u2029\u0085\u001b[31m';
    const labels = { app: name, __proto__: "x" };
    history.put(
      [{ record: { ...(record as FlowRecord), id: name, source: { kind: "pod", address: "::1", name, labels } } }],
      [],
    );
    await pollUntil(() => readFileSync(path, "utf8").endsWith("\n"), "the line");

    const text = readFileSync(path, "utf8");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(text.replaceAll("\n", "")).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    const lines = text.trimEnd().split("\n");
    expect(lines).toHaveLength(2);
    expect(JSON.parse(lines[1] ?? "").source.name).toBe(name);
    expect(statSync(path).mode & 0o077).toBe(0);
    await history.close();
  });

  test("metrics count each end and each denied packet once, however often the record is put", async () => {
    const history = open();
    const stream = flowStream("one", seededRandom(1));
    const former = { ...stream.next(Date.now()), direction: "both" as const };
    const count = (packets: number) => ({
      sent: { packets, bytes: packets },
      received: { packets: 0, bytes: 0 },
    });
    for (const packets of [1, 2, 3]) {
      const records: FlowRecord[] = [
        { ...former, ...count(packets), id: "one-a", state: "denied", verdict: "denied" },
        { ...former, ...count(packets), id: "one-b", state: packets === 1 ? "open" : "ended", verdict: "allowed" },
      ];
      history.put(
        records.map((record) => ({ record })),
        [],
      );
      await ask(history);
    }
    const overLimit: FlowRecord = { ...former, ...count(1), state: "ended", verdict: "allowed" };
    history.put([], [overLimit]);
    const values = history
      .metrics({ open: 0 })
      .split("\n")
      .filter((line) => /flows_(begun|ended|denied)[^#]* \d+$/.test(line))
      .map((line) => line.replace(/^\w*?flows_/, ""));
    expect(values).toEqual([
      'begun_total{verdict="allowed",direction="both"} 2',
      'ended_total{verdict="allowed",direction="both"} 2',
      "denied_packets_total 3",
    ]);
    await history.close();
  });

  test("explains a flow with the resources as they were", async () => {
    const history = new FlowHistory({
      ...{
        directory: join(directory.path, "flows"),
        node: "one",
        now: Date.now,
        elapsed: () => performance.now(),
        warn: () => {},
      },
      settings: { limits: { bytes: 50_000_000, milliseconds: 86_400_000 } },
      explain: ({ record, resources, endpoints }) => ({
        flow: record,
        missing: [...(resources ?? []).map(({ kind, key, value }) => `${kind} ${key} ${value}`), ...endpoints],
      }),
    });
    const [record] = [flowStream("one", seededRandom(1)).next(Date.now())];
    history.putResources([{ kind: "tiers", key: "a", value: "former" }], record.start - 10);
    history.putResources([{ kind: "tiers", key: "a", value: "later" }], record.start + 10);
    history.put([{ record, source: "{}" }], []);
    const answers = await ask(history, { kind: "explanation", id: record.id });

    expect(answers[0]).toEqual({ explanation: { flow: record, missing: ["tiers a former", "{}"] } });
    expect(await ask(history, { kind: "explanation", id: "one-none" })).toContainEqual({
      problem: { node: "one", message: 'there is no flow "one-none" in the history' },
    });
    expect(history.metrics({ open: 3 })).toContain("flows_open_connections 3");
    await history.close();
  });
});
