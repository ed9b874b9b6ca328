/**
 * Where an owner's container is, so that a later ADD can tell whether it still
 * lives. Kept as a comment in the kernel: `netns <device and inode> <cookie> <path>`.
 *
 * Device and inode find a namespace quickly, but the kernel gives them to the next
 * one; the cookie is never given again. Older kernels know none: `-`.
 */
import { placeOf } from "../../linux/files.ts";
import { netnsCookie } from "../../linux/netns.ts";

const MARK = /^netns (\d+\/\d+) (\d+|-) (\/.*)$/;
/** As much as a comment holds: a longer path was cut, and proves nothing. */
const LONGEST = 127;
const NO_COOKIE = "-";

export function markNetns(path: string): string {
  return `netns ${placeOf(path) ?? "none"} ${cookieAt(path)} ${path}`;
}

/** True only if the namespace is surely gone: its path leads elsewhere or nowhere, and no process is in it. */
export function isNetnsGone(mark: string | undefined): boolean {
  const [, place, cookie, path] = MARK.exec(mark ?? "") ?? [];
  if (place === undefined || path === undefined || (mark?.length ?? 0) >= LONGEST) return false;
  const isThere = (each: string) => placeOf(each) === place && !hasOtherCookie(each, cookie);
  return !isThere(path) && !processNamespaces().some(isThere);
}

function hasOtherCookie(path: string, cookie: string | undefined): boolean {
  const found = cookieAt(path);
  return found !== cookie && found !== NO_COOKIE && cookie !== NO_COOKIE;
}

function processNamespaces(): readonly string[] {
  // Only a conflict comes here: the import is too slow for the usual way.
  const { readdirSync }: typeof import("node:fs") = require("node:fs");
  return readdirSync("/proc").flatMap((entry) => (/^\d+$/.test(entry) ? [`/proc/${entry}/ns/net`] : []));
}

/** What cannot be entered is told as what has no cookie. */
function cookieAt(path: string): string {
  try {
    return String(netnsCookie(path) ?? NO_COOKIE);
  } catch {
    return NO_COOKIE;
  }
}
