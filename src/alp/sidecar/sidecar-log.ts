/** What the sidecar logs. */
import type { LogFields, LogLevel } from "../../log/line.ts";

/** At most one line in this time about requests that cannot be decided: whoever can send them must not fill a disk. */
const SELDOM_MILLISECONDS = 10_000;

export type WriteLine = (level: LogLevel, message: string, fields: LogFields) => void;

const LEVELS = ["ERROR", "WARNING", "INFO", "DEBUG"] as const;

export class SidecarLog {
  private readonly quietUntil = new Map<string, number>();

  /** `least`: the minimum severity of the lines that are written; `elapsed`: in milliseconds, by a monotonic clock. */
  constructor(
    private readonly least: LogLevel,
    private readonly write: WriteLine,
    private readonly elapsed: () => number,
  ) {}

  get isDebug(): boolean {
    return this.least === "DEBUG";
  }

  debug(message: string, fields: LogFields = {}): void {
    this.line("DEBUG", message, fields);
  }

  info(message: string, fields: LogFields = {}): void {
    this.line("INFO", message, fields);
  }

  warn(message: string, fields: LogFields = {}): void {
    this.line("WARNING", message, fields);
  }

  /** As `warn()`, but the same message at most every ten seconds. */
  warnSeldom(message: string, fields: LogFields = {}): void {
    const now = this.elapsed();
    if (now < (this.quietUntil.get(message) ?? 0)) return;
    this.quietUntil.set(message, now + SELDOM_MILLISECONDS);
    this.warn(message, fields);
  }

  private line(level: LogLevel, message: string, fields: LogFields): void {
    if (LEVELS.indexOf(level) <= LEVELS.indexOf(this.least)) this.write(level, message, fields);
  }
}
