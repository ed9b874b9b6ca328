/** The effect of each log option of the network config. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { requireNetworkConfig } from "../../src/config/decode.ts";
import { openConfigLog } from "../../src/log/config-log.ts";
import { openLog } from "../../src/log/log.ts";
import { decode, type Json, MINIMAL } from "../support/network-config.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";

let directory: TemporaryDirectory;
beforeEach(() => {
  directory = temporaryDirectory("log");
});
afterEach(() => directory.remove());

const NOW = new Date("2026-11-15T12:00:00.000Z");
const MEGABYTE = 1024 * 1024;

/** Logs the lines with the config; returns the text on stderr and the files in the directory. */
function write(options: Json, lines: number, text = "x"): { stderr: readonly string[]; files: readonly string[] } {
  const stderr: string[] = [];
  const surroundings = {
    component: "test",
    pid: 1,
    clock: () => NOW,
    stderr: (line: string) => void stderr.push(line),
  };
  const log = openLog(decode(options).log, surroundings);
  for (let line = 0; line < lines; line++) {
    for (const level of ["error", "warning", "info", "debug"] as const) log[level](text);
  }
  log.close();
  return { stderr, files: readdirSync(directory.path).sort() };
}

const inFolder = (name: string) => join(directory.path, name);

describe("openConfigLog()", () => {
  const begin = (options: Json): string => {
    const stderr: string[] = [];
    const surroundings = {
      component: "test",
      pid: 1,
      clock: () => NOW,
      stderr: (line: string) => void stderr.push(line),
    };
    openConfigLog(requireNetworkConfig({ ...MINIMAL, ...options }), surroundings).close();
    return stderr.join("");
  };

  test("warns once about a deprecated field", () => {
    expect(begin({ etcd_authority: "a:1", etcd_scheme: "https" }).match(/\[WARNING\].*deprecated/g)).toHaveLength(1);
    expect(begin({})).toBe("");
  });

  test("reports an unknown key only at DEBUG, with the most similar known name", () => {
    expect(begin({ log_levle: "x", log_level: "DEBUG" })).toMatch(/\[DEBUG\].*log_levle.*log_level/);
    expect(begin({ log_levle: "x" })).toBe("");
  });
});

describe("the log options", () => {
  test.each([
    [undefined, 3],
    ["ERROR", 1],
    ["WARNING", 2],
    ["INFO", 3],
    ["DEBUG", 4],
  ])("log_level %p lets %d of four levels through, INFO being the default", (level, count) => {
    expect(write({ log_level: level }, 1).stderr).toHaveLength(count);
  });

  test("log_file_path sets the file; without it there is none", () => {
    const { stderr, files } = write({ log_file_path: inFolder("cni.log") }, 1);

    expect(files).toEqual(["cni.log"]);
    expect(readFileSync(inFolder("cni.log"), "utf8")).toBe(stderr.join(""));
    rmSync(inFolder("cni.log"));
    expect(write({}, 1).files).toEqual([]);
  });

  test("log_file_max_size is in megabytes", () => {
    const options = { log_file_path: inFolder("cni.log"), log_file_max_size: 1, log_level: "ERROR" };

    expect(write(options, 2, "x".repeat(MEGABYTE / 2 - 100)).files).toHaveLength(1);
    expect(write(options, 1).files).toHaveLength(1);
    expect(write(options, 1, "x".repeat(MEGABYTE / 2)).files).toEqual(["cni-2026-11-15T12-00-00.000.log", "cni.log"]);
  });

  test("log_file_max_size is 100 megabytes by default", () => {
    const options = { log_file_path: inFolder("cni.log"), log_level: "ERROR" };
    write(options, 1);
    truncateSync(inFolder("cni.log"), 99 * MEGABYTE);

    expect(write(options, 1).files).toHaveLength(1);
    truncateSync(inFolder("cni.log"), 100 * MEGABYTE);
    expect(write(options, 1).files).toHaveLength(2);
  });

  test("log_file_max_age is in days, 30 by default", () => {
    for (const day of ["10-14", "10-17", "11-12"]) writeFileSync(inFolder(`cni-2026-${day}T12-00-00.000.log`), "");

    expect(write({ log_file_path: inFolder("cni.log") }, 1).files).toEqual([
      "cni-2026-10-17T12-00-00.000.log",
      "cni-2026-11-12T12-00-00.000.log",
      "cni.log",
    ]);
    writeFileSync(inFolder("cni.log"), "");
    expect(write({ log_file_path: inFolder("cni.log"), log_file_max_age: 2 }, 1).files).toEqual(["cni.log"]);
  });

  test("log_file_max_count counts rotated files, 10 by default", () => {
    for (let hour = 10; hour < 22; hour++) writeFileSync(inFolder(`cni-2026-11-14T${hour}-00-00.000.log`), "");

    expect(write({ log_file_path: inFolder("cni.log") }, 1).files).toHaveLength(11);
    writeFileSync(inFolder("cni.log"), "");
    expect(write({ log_file_path: inFolder("cni.log"), log_file_max_count: 3 }, 1).files).toEqual([
      "cni-2026-11-14T19-00-00.000.log",
      "cni-2026-11-14T20-00-00.000.log",
      "cni-2026-11-14T21-00-00.000.log",
      "cni.log",
    ]);
  });
});
