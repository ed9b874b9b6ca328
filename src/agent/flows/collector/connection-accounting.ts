/**
 * Makes the kernel count the packets and note the times of connections, and tell of them: switched on while flows are, with the
 * former values in a file of the run directory, and put back when flows are switched off. Not when a process ends: connections
 * that begin before its successor starts would have no counters.
 */
import { rmSync } from "node:fs";
import * as v from "valibot";
import { readText } from "../../../linux/files.ts";
import { replaceFile } from "../../../linux/replace-file.ts";
import { readSysctl, writeSysctl } from "../../../linux/sysctl.ts";
import { parseJson } from "../../../parse-json.ts";

/**
 * Of the network namespace. With another value of `nf_conntrack_events` (2) than 1, the kernel never tells the end of a connection
 * that began while nobody listened: before the first collector, or between two.
 */
const SETTINGS = ["nf_conntrack_acct", "nf_conntrack_timestamp", "nf_conntrack_events"].map(
  (name) => `net/netfilter/${name}`,
);
const ON = "1";

const formerSchema = v.record(v.string(), v.string());

export function accountingPath(runDirectory: string): string {
  return `${runDirectory}/flows/connection-accounting.json`;
}

/** In the current network namespace of the thread. May be repeated: a setting that another program has switched off is on again. */
export function enableConnectionAccounting(path: string): void {
  const former = formerValues(path);
  const changed = SETTINGS.flatMap((name) => {
    const value = readSysctl(name);
    return value === undefined || value === ON ? [] : [[name, value] as const];
  });
  const added = changed.filter(([name]) => former[name] === undefined);
  if (added.length > 0) replaceFile(path, `${JSON.stringify({ ...former, ...Object.fromEntries(added) })}\n`, "owner");
  for (const [name] of changed) writeSysctl(name, ON);
}

/** Puts back what `enableConnectionAccounting` has changed, if nobody has changed it since; does nothing if it never ran. */
export function restoreConnectionAccounting(path: string): void {
  for (const [name, value] of Object.entries(formerValues(path)))
    if (SETTINGS.includes(name) && readSysctl(name) === ON) writeSysctl(name, value);
  rmSync(path, { force: true });
}

/** A damaged file says nothing. */
function formerValues(path: string): Readonly<Record<string, string>> {
  try {
    const text = readText(path);
    return text === undefined ? {} : v.parse(formerSchema, parseJson(text));
  } catch {
    return {};
  }
}
