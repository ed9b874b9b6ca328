/** The log that both processes of the node agent write to stderr. */
import { identity } from "../identity.ts";
import { formatLine, type LogLevel } from "../log/line.ts";

export function say(message: string, fields: Readonly<Record<string, string>> = {}, level: LogLevel = "INFO"): void {
  const entry = { time: new Date(), level, processId: process.pid, component: identity.nodeAgent } as const;
  process.stderr.write(formatLine({ ...entry, message, fields }));
}

/** Printed last if the agent cannot start. */
export function sayRefused(reason: string): void {
  console.error(`${identity.nodeAgent}: Cannot start: ${reason}`);
}
