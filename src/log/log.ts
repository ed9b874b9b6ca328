/**
 * The log of one process: always stderr, and the log file if one is configured.
 *
 * Nothing is opened before the first line. A log file that cannot be written (no
 * directory, no space, no permission) never fails a command: it causes one
 * warning on stderr, and every later line tries again.
 */
import { formatLine, type LogFields, type LogLevel } from "./line.ts";
import { type LogFile, openLogFile } from "./log-file.ts";

export interface LogSettings {
  readonly level: LogLevel;
  /** Absent: no log file. */
  readonly filePath?: string | undefined;
  readonly maxSizeMegabytes: number;
  readonly maxAgeDays: number;
  readonly maxCount: number;
}

export interface LogSurroundings {
  /** The part of the product that logs. */
  readonly component: string;
  readonly pid: number;
  readonly clock: () => Date;
  readonly stderr: (text: string) => void;
}

export interface Log {
  error(message: string, fields?: LogFields): void;
  warning(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  /** Closes the file; a later line would open it again. */
  close(): void;
}

const SEVERITY: Readonly<Record<LogLevel, number>> = { ERROR: 0, WARNING: 1, INFO: 2, DEBUG: 3 };
const BYTES_PER_MEGABYTE = 1024 * 1024;

export function openLog(settings: LogSettings, surroundings: LogSurroundings): Log {
  const { component, pid, clock } = surroundings;
  const file = fileOf(settings, clock);
  let warned = false;

  function log(level: LogLevel, message: string, fields: LogFields = {}): void {
    if (SEVERITY[level] > SEVERITY[settings.level]) return;
    const line = formatLine({ time: clock(), level, processId: pid, component, message, fields });
    toStderr(line, surroundings);
    if (file !== undefined) toFile(file, line);
  }

  function toFile(target: LogFile, line: string): void {
    try {
      target.append(line);
      warned = false;
    } catch (cause) {
      if (warned) return;
      warned = true;
      const message = "Cannot write the log file: lines go to stderr only";
      const fields = { file: settings.filePath, reason: cause instanceof Error ? cause.message : String(cause) };
      toStderr(
        formatLine({ time: clock(), level: "WARNING", processId: pid, component, message, fields }),
        surroundings,
      );
    }
  }

  return {
    error: (message, fields) => log("ERROR", message, fields),
    warning: (message, fields) => log("WARNING", message, fields),
    info: (message, fields) => log("INFO", message, fields),
    debug: (message, fields) => log("DEBUG", message, fields),
    close: () => file?.close(),
  };
}

function fileOf(settings: LogSettings, clock: () => Date): LogFile | undefined {
  if (settings.filePath === undefined) return undefined;
  const { filePath, maxSizeMegabytes, maxAgeDays, maxCount } = settings;
  const maxSizeBytes = maxSizeMegabytes * BYTES_PER_MEGABYTE;
  return openLogFile({ path: filePath, maxSizeBytes, maxAgeDays, maxCount }, clock);
}

/** A closed stderr must not fail a command. */
function toStderr(line: string, { stderr }: LogSurroundings): void {
  try {
    stderr(line);
  } catch {
    // There is nowhere left to report it.
  }
}
