/**
 * The log options of a config that its plugin does not decode as a whole: a
 * chained plugin's, host-local's, or one that is invalid elsewhere. A value that
 * cannot be used is reported and its default used: a log option never fails a
 * command. Pure.
 */
import type { JsonObject } from "../cni/json.ts";
import { quoted } from "../quote.ts";
import type { LogLevel } from "./line.ts";
import type { LogSettings } from "./log.ts";

export interface LenientSettings {
  readonly settings: LogSettings;
  /** To be logged at WARNING. */
  readonly problems: readonly LogOptionProblem[];
}

export interface LogOptionProblem {
  readonly field: string;
  readonly message: string;
}

const LEVELS: readonly LogLevel[] = ["ERROR", "WARNING", "INFO", "DEBUG"];

export function readLogSettings(config: JsonObject): LenientSettings {
  const problems: LogOptionProblem[] = [];
  const read = <Value>(name: string, absent: Value, { allowed, decode }: Option<Value>): Value => {
    const given = givenValue(config, name);
    if (given === undefined || given === null) return absent;
    const value = decode(given);
    if (value !== undefined) return value;
    const used = absent === undefined ? "no log file is written" : `${absent} is used`;
    problems.push({ field: name, message: `"${name}" is ${quoted(given)}: expected ${allowed}; ${used}` });
    return absent;
  };
  const settings = {
    level: read("log_level", "INFO", LEVEL),
    filePath: read("log_file_path", undefined, PATH),
    maxSizeMegabytes: read("log_file_max_size", 100, COUNT),
    maxAgeDays: read("log_file_max_age", 30, COUNT),
    maxCount: read("log_file_max_count", 10, COUNT),
  };
  return { settings, problems };
}

interface Option<Value> {
  readonly allowed: string;
  readonly decode: (given: unknown) => Value | undefined;
}

const LEVEL: Option<LogLevel> = {
  allowed: '"ERROR", "WARNING", "INFO" or "DEBUG"',
  decode: (given) => LEVELS.find((level) => level === String(given).toUpperCase()),
};

const PATH: Option<string | undefined> = {
  allowed: "a file path",
  decode: (given) => (typeof given === "string" && given !== "" ? given : undefined),
};

const COUNT: Option<number> = {
  allowed: "a whole number, 1 or more",
  decode: (given) => (typeof given === "number" && Number.isSafeInteger(given) && given > 0 ? given : undefined),
};

/** Keys match in any case, as everywhere in a network config. */
function givenValue(config: JsonObject, name: string): unknown {
  if (config[name] !== undefined) return config[name];
  for (const key in config) if (key.toLowerCase() === name) return config[key];
  return undefined;
}
