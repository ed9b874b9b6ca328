/** A problem of a config: its message contains the field, the value, what is allowed and the fix. */
import { counted } from "../counted.ts";
import { quoted, shortName } from "../quote.ts";
import { redactValue } from "./redact.ts";

export type ConfigPath = readonly (string | number)[];

export interface ConfigProblem {
  readonly path: ConfigPath;
  readonly message: string;
}

/** `["ipam", "ipv4_pools", 0]` -> `ipam.ipv4_pools[0]`. */
export function pathText(path: ConfigPath): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    return text === "" ? shortName(step) : `${text}.${shortName(step)}`;
  }, "");
}

/** A value as a message may show it: short, and without secrets. */
export function shownValue(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value !== "string") return String(value);
  const shown = value.length > 4096 ? "" : redactValue(value);
  if (shown === "" && value !== "") return `a text of ${counted(value.length, "character")}`;
  return quoted(shown);
}

export interface Finding {
  readonly value: unknown;
  readonly allowed: string;
  readonly fix: string;
}

export function problem(path: ConfigPath, { value, allowed, fix }: Finding): ConfigProblem {
  const state = value === undefined ? "is missing" : `is ${shownValue(value)}`;
  return { path, message: `"${pathText(path)}" ${state}: expected ${allowed}; ${fix}` };
}
