import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LogLevel } from "./line.ts";
import { type Log, type LogSettings, openLog } from "./log.ts";

let folder = "";
let stderr: string[] = [];
let now = Date.parse("2026-11-15T00:00:00.000Z");
const opened: Log[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "vt-log-"));
  stderr = [];
  now = Date.parse("2026-11-15T00:00:00.000Z");
});

afterEach(() => {
  for (const log of opened.splice(0)) log.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(changes: Partial<LogSettings> = {}): Log {
  const settings: LogSettings = { level: "INFO", maxSizeMegabytes: 100, maxAgeDays: 30, maxCount: 10, ...changes };
  const surroundings = {
    component: "test",
    pid: 1,
    clock: () => new Date(now),
    stderr: (text: string) => stderr.push(text),
  };
  const log = openLog(settings, surroundings);
  opened.push(log);
  return log;
}

function fileAt(name: string): string {
  writeFileSync(join(folder, name), "");
  return join(folder, name);
}

const linesOf = (path: string) => readFileSync(path, "utf8").trimEnd().split("\n");

describe("openLog()", () => {
  test.each<[LogLevel, number]>([
    ["ERROR", 1],
    ["WARNING", 2],
    ["INFO", 3],
    ["DEBUG", 4],
  ])("at level %s logs %d of the four levels", (level, count) => {
    const log = open({ level, filePath: join(folder, "a.log") });
    log.error("e");
    log.warning("w");
    log.info("i");
    log.debug("d");

    expect(stderr).toHaveLength(count);
    expect(linesOf(join(folder, "a.log"))).toHaveLength(count);
  });

  test("writes only to stderr if no file is configured", () => {
    open().info("hello");

    expect(stderr).toHaveLength(1);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("opens nothing before the first line", () => {
    open({ filePath: join(folder, "sub/a.log") }).debug("below the level");

    expect(existsSync(join(folder, "sub"))).toBe(false);
  });

  test("creates the directories of the file", () => {
    open({ filePath: join(folder, "x/y/a.log") }).info("hello");

    expect(readFileSync(join(folder, "x/y/a.log"), "utf8")).toBe(stderr.join(""));
  });

  test("rotates when a line does not fit, with the time of rotation in the name", () => {
    const path = join(folder, "cni.log");
    const log = open({ filePath: path, maxSizeMegabytes: 100 / 1048576 });
    for (const message of ["first", "second", "third"]) log.info(`${message} ${"x".repeat(40)}`);

    expect(readdirSync(folder).sort()).toEqual([
      "cni-2026-11-15T00-00-00.000.log",
      "cni-2026-11-15T00-00-00.001.log",
      "cni.log",
    ]);
    expect(readFileSync(join(folder, "cni-2026-11-15T00-00-00.000.log"), "utf8")).toContain("first");
    expect(readFileSync(path, "utf8")).toContain("third");
  });

  test("removes files by number after a rotation and by age when it opens", () => {
    const path = join(folder, "cni.log");
    const ancient = "cni-2026-10-01T00-00-00.000.log";
    writeFileSync(join(folder, ancient), "old\n");
    const log = open({ filePath: path, maxSizeMegabytes: 100 / 1048576, maxCount: 2 });
    log.info("first");
    expect(readdirSync(folder)).toEqual(["cni.log"]);

    for (let line = 0; line < 6; line++) log.info("x".repeat(80));
    expect(readdirSync(folder)).toHaveLength(3);
  });

  test("follows when another process renames the file", () => {
    const path = join(folder, "cni.log");
    const log = open({ filePath: path });
    log.info("before");
    renameSync(path, join(folder, "away"));
    log.info("after");

    expect(linesOf(path)).toEqual([expect.stringContaining("after")]);
    expect(linesOf(join(folder, "away"))).toEqual([expect.stringContaining("before")]);
  });

  test.each([
    ["a folder that cannot be made", () => join("/proc/nowhere", "a.log")],
    ["a file in the place of the folder", () => join(fileAt("f"), "a.log")],
    ["a folder in the place of the file", () => mkdirSync(join(folder, "d.log"), { recursive: true }) ?? ""],
    ["a full disk", () => "/dev/full"],
  ])("continues with one warning for %s", (_, prepare) => {
    const log = open({ filePath: prepare() });
    for (const message of ["one", "two", "three"]) log.info(message);

    expect(stderr.filter((line) => line.includes("[INFO]"))).toHaveLength(3);
    expect(stderr.filter((line) => line.includes("[WARNING]"))).toHaveLength(1);
  });

  test("uses the file again as soon as it can", () => {
    const blocked = join(folder, "sub");
    writeFileSync(blocked, "");
    const log = open({ filePath: join(blocked, "a.log") });
    log.info("lost to the file");
    rmSync(blocked);
    log.info("kept");

    expect(linesOf(join(blocked, "a.log"))).toEqual([expect.stringContaining("kept")]);
  });

  test("survives a closed stderr", () => {
    const closed = () => {
      throw new Error("EPIPE");
    };
    const settings: LogSettings = { level: "INFO", maxSizeMegabytes: 1, maxAgeDays: 1, maxCount: 1 };
    const log = openLog(settings, { component: "c", pid: 1, clock: () => new Date(), stderr: closed });

    expect(() => log.error("x")).not.toThrow();
  });
});
