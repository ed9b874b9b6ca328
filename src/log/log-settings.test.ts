import { describe, expect, test } from "bun:test";
import { readLogSettings } from "./log-settings.ts";

const DEFAULTS = { level: "INFO", filePath: undefined, maxSizeMegabytes: 100, maxAgeDays: 30, maxCount: 10 };

describe("readLogSettings()", () => {
  test("has the defaults of a network config", () => {
    expect(readLogSettings({ type: "portmap" })).toEqual({ settings: { ...DEFAULTS, level: "INFO" }, problems: [] });
  });

  test("reads every option, with keys and levels in any case", () => {
    const config = {
      LOG_LEVEL: "debug",
      log_file_path: "/var/log/a.log",
      log_file_max_size: 1,
      log_file_max_age: 2,
      log_file_max_count: 3,
    };
    const settings = {
      level: "DEBUG",
      filePath: "/var/log/a.log",
      maxSizeMegabytes: 1,
      maxAgeDays: 2,
      maxCount: 3,
    } as const;

    expect(readLogSettings(config)).toEqual({ settings, problems: [] });
  });

  test.each([
    ["log_level", "verbose"],
    ["log_file_path", 7],
    ["log_file_path", ""],
    ["log_file_max_size", 0],
    ["log_file_max_age", "30"],
    ["log_file_max_count", 1.5],
  ])("uses the default instead of %s %p, and reports it", (field, value) => {
    const { settings, problems } = readLogSettings({ [field]: value });

    expect(settings).toEqual({ ...DEFAULTS, level: "INFO" });
    expect(problems).toMatchObject([{ field, message: expect.stringContaining(JSON.stringify(value)) }]);
  });
});
