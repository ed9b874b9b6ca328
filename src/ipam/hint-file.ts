/**
 * Hints in a small file under the run directory, one per node and datastore.
 *
 * Written whole and renamed into place, so that a reader meets the old or the
 * new content. Two processes that write at once lose one of the two writes,
 * which is only a hint less. Errors are swallowed: a host where the directory
 * cannot be written loses speed, not addresses.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import * as v from "valibot";
import { parsePrefix } from "../ip/prefix.ts";
import { type HintStore, type HostHints, NO_HINTS } from "./hints.ts";

const cidr = v.pipe(
  v.string(),
  v.check((text) => parsePrefix(text) !== undefined),
);
const HINTS = v.object({
  blocks: v.array(v.object({ cidr, full: v.boolean() })),
  warnedUnregistered: v.boolean(),
});

/** `unique` makes the name of the temporary file this process's own. */
export function openHintFile(path: string, unique: string): HintStore {
  return {
    load: () => loadHints(path),
    save: (hints) => saveHints(path, `${path}.${unique}`, hints),
  };
}

/** Hints for as long as the process lives. */
export function openHintMemory(): HintStore {
  let kept = NO_HINTS;
  return {
    load: () => kept,
    save: (hints) => {
      kept = hints;
    },
  };
}

function loadHints(path: string): HostHints {
  try {
    const read = v.safeParse(HINTS, JSON.parse(readFileSync(path, "utf8")));
    return read.success ? read.output : NO_HINTS;
  } catch {
    return NO_HINTS;
  }
}

function saveHints(path: string, temporary: string, hints: HostHints): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    writeFileSync(temporary, JSON.stringify(hints), { mode: 0o600 });
    renameSync(temporary, path);
  } catch {
    // A hint not kept costs the next process one round trip.
  }
}
