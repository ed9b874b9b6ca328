/**
 * One log line: time (UTC), level, process id, component, message, then the
 * fields sorted by name.
 *
 *   2026-11-15 03:22:14.123 [INFO][4711] vendor: ADD done addresses="10.0.0.1" container="c1" node="one"
 *
 * Pure. For any input the result is exactly one line without secrets.
 */
import { shortValue } from "../quote.ts";
import { redact, redactField } from "../redaction.ts";

export type LogLevel = "ERROR" | "WARNING" | "INFO" | "DEBUG";

export type LogFields = Readonly<Record<string, LogValue>>;

/** An absent value leaves its field out. */
type LogValue = string | number | bigint | boolean | readonly string[] | undefined;

export interface LogEntry {
  readonly time: Date;
  readonly level: LogLevel;
  readonly processId: number;
  readonly component: string;
  readonly message: string;
  readonly fields: LogFields;
}

export function formatLine(entry: LogEntry): string {
  const time = entry.time.toISOString().replace("T", " ").replace("Z", "");
  const message = escapeControls(redact(entry.message));
  const head = `${time} [${entry.level}][${entry.processId}] ${escapeControls(entry.component)}: ${message}`;
  return `${[head, ...formatFields(entry.fields)].join(" ")}\n`;
}

function formatFields(fields: LogFields): readonly string[] {
  return Object.keys(fields)
    .sort()
    .flatMap((name) => {
      const value = fields[name];
      if (value === undefined) return [];
      const text = redactField(name, typeof value === "object" ? value.join(",") : String(value));
      const shown = SENTENCES.has(name) ? text : shortValue(text);
      return [`${escapeControls(name)}="${escapeControls(shown.replace(/["\\]/g, "\\$&"))}"`];
    });
}

/** Fields that explain a failure; all others have a value. */
const SENTENCES: ReadonlySet<string> = new Set(["details", "reason", "remedy"]);

/** All line breaks of Unicode, and control characters of terminals. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

const SHORT_ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escapeControls(text: string): string {
  return text.replace(
    CONTROLS,
    (control) => SHORT_ESCAPES[control] ?? `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
