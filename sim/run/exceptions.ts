/** What nobody catches while a script is played is a finding of that script, and not the end of all of them. */
import type { EventEmitter } from "node:events";
import ownProcess from "node:process";
import { ProcessKilled } from "../schedule/process.ts";

/** `found` gets what the work throws, and what is thrown or rejected meanwhile without anybody to catch it. */
export async function catchExceptions(
  work: () => Promise<void>,
  found: (failure: unknown) => void,
  events: EventEmitter = ownProcess,
): Promise<void> {
  const catchOne = (failure: unknown) => {
    // Nobody hears what the code of a dead process still says.
    if (!(failure instanceof ProcessKilled)) found(failure);
  };
  events.on("unhandledRejection", catchOne);
  events.on("uncaughtException", catchOne);
  try {
    await work();
  } catch (failure) {
    // Whatever ends the work half way: the rest was not judged.
    found(failure);
  } finally {
    events.off("unhandledRejection", catchOne);
    events.off("uncaughtException", catchOne);
  }
}

/** With the place in the code where it began. */
export function describeException(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure);
  const place = failure.stack?.split("\n").find((line) => line.trim().startsWith("at "));
  return `${failure.name}: ${failure.message}${place === undefined ? "" : ` ${place.trim()}`}`;
}
