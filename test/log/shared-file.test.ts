/** The shared log file with real processes: no line is lost or incomplete. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { program, root, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";

const PROCESSES = 50;
const LINES = 200;
const WHOLE_LINE = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[INFO\]\[\d+\] writer: line (\d+-\d+) end filling="x*"$/;

let directory: TemporaryDirectory;
let folder = "";
beforeEach(() => {
  directory = temporaryDirectory("log");
  folder = directory.path;
});
afterEach(() => directory.remove());

interface Limits {
  readonly maxBytes: number;
  readonly maxCount: number;
}

function writerCommand(name: number, { maxBytes, maxCount }: Limits): string[] {
  const program = join(import.meta.dir, "writer.process.ts");
  return [process.execPath, program, join(folder, "cni.log"), name, LINES, maxBytes, maxCount].map(String);
}

function start(command: string[]) {
  return Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
}

/** The warnings of the writers, once all have ended. */
async function warningsOf(writers: readonly ReturnType<typeof start>[]): Promise<string> {
  const texts = await Promise.all(writers.map((writer) => new Response(writer.stdout).text()));
  const codes = await Promise.all(writers.map((writer) => writer.exited));
  expect(codes).toEqual(writers.map(() => 0));
  return texts.join("");
}

/** All lines of all files; an incomplete line is returned as it is. */
function linesKept(): readonly string[] {
  return readdirSync(folder).flatMap((file) => {
    const text = readFileSync(join(folder, file), "utf8");
    expect(text).toEndWith("\n");
    const lines = text.slice(0, -1).split("\n");
    return lines.map((line) => WHOLE_LINE.exec(line)?.[1] ?? `torn: ${line}`);
  });
}

const names = Array.from({ length: PROCESSES }, (_, index) => index);
const linesOf = (writers: readonly number[]) =>
  writers.flatMap((name) => Array.from({ length: LINES }, (_, line) => `${name}-${line}`));

describe("the log file under 50 processes that write and rotate at once", () => {
  test("keeps every line once and complete", async () => {
    const limits = { maxBytes: 4096, maxCount: 100_000 };
    const warnings = await warningsOf(names.map((name) => start(writerCommand(name, limits))));

    expect(warnings).toBe("");
    expect(readdirSync(folder).length).toBeGreaterThan(5);
    expect([...linesKept()].sort()).toEqual([...linesOf(names)].sort());
  });

  test("keeps no more files than configured, all complete", async () => {
    const limits = { maxBytes: 4096, maxCount: 3 };
    const warnings = await warningsOf(names.map((name) => start(writerCommand(name, limits))));

    const kept = linesKept();
    expect(warnings).toBe("");
    expect(readdirSync(folder).length).toBeLessThanOrEqual(4);
    expect(kept.filter((line) => line.startsWith("torn"))).toEqual([]);
    expect(new Set(kept).size).toBe(kept.length);
  });

  test("continues when writers are killed", async () => {
    const limits = { maxBytes: 2048, maxCount: 100_000 };
    const doomed = names.slice(0, 15).map((name) => start(writerCommand(name, limits)));
    const survivors = names.slice(15).map((name) => start(writerCommand(name, limits)));
    await pollUntil(() => readdirSync(folder).length > 5, "the first rotations", 20_000);
    for (const writer of doomed) writer.kill("SIGKILL");
    const warnings = await warningsOf(survivors);
    await Promise.all(doomed.map((writer) => writer.exited));

    const kept = linesKept();
    const missing = new Set(linesOf(names.slice(15)));
    for (const line of kept) missing.delete(line);
    expect(warnings).toBe("");
    expect([...missing]).toEqual([]);
    expect(kept.filter((line) => line.startsWith("torn"))).toEqual([]);
    expect(new Set(kept).size).toBe(kept.length);
  });
});

describe("the log file on a disk without room", () => {
  testNeeding(root, program("unshare"))("warns once and goes on", async () => {
    // The mount lives in a namespace of its own and ends with the writer.
    const mount = `mount -t tmpfs -o size=8k small ${folder} && exec "$@"`;
    const command = ["unshare", "--mount", "sh", "-c", mount, "sh"];
    const writer = start([...command, ...writerCommand(0, { maxBytes: 1_000_000, maxCount: 3 })]);

    const warnings = await warningsOf([writer]);
    expect(warnings.trimEnd().split("\n")).toEqual([expect.stringContaining("Cannot write the log file")]);
  });
});
