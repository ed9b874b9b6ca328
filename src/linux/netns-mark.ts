/**
 * Identifies the namespace of a container, so that a later call can find out whether it still exists, or is the same.
 * Stored as a comment in the kernel, or in a file: `netns <device and inode> <cookie> <path>`.
 *
 * Device and inode identify a namespace quickly, but the kernel reuses them; the
 * cookie is never reused. Older kernels have none: `-`.
 */
import { placeOf } from "./files.ts";
import { netnsCookie } from "./netns.ts";

const MARK = /^netns (\d+\/\d+) (\d+|-) (\/.*)$/;
/** The length of a comment: a longer path was truncated and proves nothing. */
const LONGEST = 127;
const NO_COOKIE = "-";

export function markNetns(path: string): string {
  return `netns ${placeOf(path) ?? "none"} ${cookieAt(path)} ${path}`;
}

/** True only if the namespace is certainly gone: its path is another namespace or does not exist, and no process is in it. */
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
  // Only for conflicts: the import is too slow for every ADD.
  const { readdirSync }: typeof import("node:fs") = require("node:fs");
  return readdirSync("/proc").flatMap((entry) => (/^\d+$/.test(entry) ? [`/proc/${entry}/ns/net`] : []));
}

/** A namespace that cannot be entered counts as one without a cookie. */
function cookieAt(path: string): string {
  try {
    return String(netnsCookie(path) ?? NO_COOKIE);
  } catch {
    return NO_COOKIE;
  }
}
