/** The file in which the call server counts the calls that it has served. It is on a file system in memory. */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import type { Environment } from "../../cni/environment.ts";
import { agentDirectory } from "../../config/run-directory.ts";
import { readText } from "../../linux/files.ts";
import { type ServedCall, ServedCallCounter, type ServedCalls } from "./served-calls.ts";

/** A burst of calls is written once. */
const WRITE_MILLISECONDS = 250;

function fileOf(environment: Environment): string {
  return `${agentDirectory(environment)}/served-calls.json`;
}

/** Begins at zero. Returns the function that counts a call; it never throws. */
export function countServedCalls(environment: Environment): (call: ServedCall) => void {
  const file = fileOf(environment);
  const counter = new ServedCallCounter();
  let isPlanned = false;
  const write = () => {
    isPlanned = false;
    try {
      writeFileSync(`${file}.new`, JSON.stringify(counter.rows), { mode: 0o600 });
      renameSync(`${file}.new`, file);
    } catch {
      // Metrics lag behind until the next call.
    }
  };
  rmSync(file, { force: true });
  return (call) => {
    counter.add(call);
    if (isPlanned) return;
    isPlanned = true;
    setTimeout(write, WRITE_MILLISECONDS).unref();
  };
}

/** None if no call has been served since the start. */
export function readServedCalls(environment: Environment): readonly ServedCalls[] {
  return JSON.parse(readText(fileOf(environment)) ?? "[]");
}
