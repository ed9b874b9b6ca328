/** What the programs of a cluster print and log. */
import { formatLine, type LogLevel } from "../log/line.ts";

/** Of an option that only asks: returns the exit code. */
export function print(text: string): number {
  console.log(text);
  return 0;
}

export interface ProgramLog {
  readonly log: (message: string, level: LogLevel) => void;
  readonly warn: (message: string) => void;
}

/** To stderr. */
export function logOf(component: string): ProgramLog {
  const log = (message: string, level: LogLevel) => {
    const entry = { time: new Date(), level, processId: process.pid, component, fields: {} };
    process.stderr.write(formatLine({ ...entry, message }));
  };
  return { log, warn: (message) => log(message, "WARNING") };
}
