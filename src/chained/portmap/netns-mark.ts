/**
 * Where an owner's container is, so that a later ADD can tell whether it still
 * lives. Kept as a comment in the kernel: `netns <device and inode> <path>`.
 */
import { placeOf } from "../../linux/files.ts";

const MARK = /^netns (\d+\/\d+) (\/.*)$/;
/** As much as a comment holds: a longer path was cut, and proves nothing. */
const LONGEST = 127;

export function markNetns(path: string): string {
  return `netns ${placeOf(path) ?? "none"} ${path}`;
}

/** True only if the namespace is surely gone: its path leads elsewhere or nowhere, and no process is in it. */
export function isNetnsGone(mark: string | undefined): boolean {
  const [, place, path] = MARK.exec(mark ?? "") ?? [];
  if (place === undefined || path === undefined || (mark?.length ?? 0) >= LONGEST) return false;
  return placeOf(path) !== place && !isInUse(place);
}

function isInUse(place: string): boolean {
  // Only a conflict comes here: the import is too slow for the usual way.
  const { readdirSync }: typeof import("node:fs") = require("node:fs");
  return readdirSync("/proc").some((entry) => /^\d+$/.test(entry) && placeOf(`/proc/${entry}/ns/net`) === place);
}
