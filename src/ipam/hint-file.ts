/**
 * Hints in a small file under the run directory, one per node and datastore.
 *
 * Written in place and by whoever has the host's turn. A file that is torn all
 * the same is no hint, and written anew by the next process. Errors are
 * swallowed: a host where the directory cannot be written loses speed, not
 * addresses. Without `node:fs`, which would cost more than the round trip that a
 * hint saves (docs/decisions/0006-what-imports-cost.md).
 */
import * as v from "valibot";
import { parsePrefix } from "../ip/prefix.ts";
import { readText } from "../linux/files.ts";
import { type HintStore, type HostHints, NO_HINTS } from "./hints.ts";

const cidr = v.pipe(
  v.string(),
  v.check((text) => parsePrefix(text) !== undefined),
);
const HINTS = v.object({
  blocks: v.array(
    v.object({
      cidr,
      full: v.boolean(),
      pool: v.exactOptional(v.string()),
      leftUntil: v.exactOptional(v.number()),
    }),
  ),
  warnedUnregistered: v.boolean(),
});

export type DecodeHints = (text: string) => HostHints;

export function openHintFile(path: string, decode: DecodeHints = decodeHints): HintStore {
  return {
    load: () => loadHints(path, decode),
    save: (hints) => saveHints(path, hints),
  };
}

/** Hints for as long as the process lives. */
export function openHintMemory(): HintStore {
  let kept = NO_HINTS;
  return {
    load: async () => kept,
    save: async (hints) => {
      kept = hints;
    },
  };
}

async function loadHints(path: string, decode: DecodeHints): Promise<HostHints> {
  try {
    return decode(readText(path) ?? "");
  } catch {
    return NO_HINTS;
  }
}

/** Throws if the text is not JSON. */
export function decodeHints(text: string): HostHints {
  const read = v.safeParse(HINTS, JSON.parse(text));
  return read.success ? read.output : NO_HINTS;
}

async function saveHints(path: string, hints: HostHints): Promise<void> {
  try {
    await Bun.write(path, JSON.stringify(hints));
  } catch {
    // A hint not kept costs the next process one round trip.
  }
}
