/**
 * How a message quotes a value from outside: a config, an environment variable, an argument, a file.
 *
 * The value may be of any type and size. Its quotation is JSON, without secrets, and never longer than 200 characters:
 * the beginning and the end of a longer value.
 */
import { redact } from "./redaction.ts";

const LONGEST_QUOTATION = 200;
const LONGEST_NAME = 100;
/** The end of a long path or name says more than its middle. */
const SHOWN_END = 60;

export function quoted(value: unknown): string {
  const text = jsonOf(value);
  if (text.length <= LONGEST_QUOTATION) return text;
  // Secrets are removed before the text is cut: half of a secret is not recognized as one.
  return shortValue(redact(text));
}

/** Text without secrets: at most 200 characters of it. */
export function shortValue(text: string): string {
  if (text.length <= LONGEST_QUOTATION) return text;
  return `${text.slice(0, LONGEST_QUOTATION - SHOWN_END - 1)}…${text.slice(-SHOWN_END)}`;
}

/** A name from outside, such as a key of an object, as part of a path: at most 100 characters of it. */
export function shortName(name: string): string {
  return name.length <= LONGEST_NAME ? name : `${name.slice(0, LONGEST_NAME - 1)}…`;
}

function jsonOf(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return "a value that cannot be shown";
  }
}
