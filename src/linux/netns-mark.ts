/**
 * Identifies a namespace, of a container or of a host, so that a later call can find out whether it still exists, or is
 * the same.
 * Stored as a comment in the kernel, or in a file: `netns <device and inode> <cookie> <path>`.
 *
 * Device and inode identify a namespace quickly, but the kernel reuses them; the
 * cookie is never reused. Older kernels have none: `-`.
 */
import { placeOf } from "./files.ts";
import { netnsCookie, OWN_NETNS } from "./netns.ts";
import { isFirstProcessOfMachine } from "./pid-namespace.ts";

const MARK = /^netns (\d+\/\d+) (\d+|-) (\/.*)$/;
/** The length of a comment: a longer path was truncated and proves nothing. */
const LONGEST = 127;
const NO_COOKIE = "-";

export function markNetns(path: string): string {
  return `netns ${placeOf(path) ?? "none"} ${cookieAt(path)} ${path}`;
}

/** Of the current namespace of this thread. */
export function markOwnNetns(): string {
  return markNetns(OWN_NETNS);
}

/** True only if they are certainly marks of two namespaces, by whichever paths. */
export function areOfDifferentNetns(left: string | undefined, right: string | undefined): boolean {
  const [, place, cookie] = MARK.exec(left ?? "") ?? [];
  const [, otherPlace, otherCookie] = MARK.exec(right ?? "") ?? [];
  if (place === undefined || otherPlace === undefined) return false;
  return place !== otherPlace || areDifferentCookies(cookie, otherCookie);
}

/** True only if the namespace is certainly gone: its path is another namespace or does not exist, and no process is in it. */
export function isNetnsGone(mark: string | undefined): boolean {
  const [, place, cookie, path] = MARK.exec(mark ?? "") ?? [];
  if (place === undefined || path === undefined || (mark?.length ?? 0) >= LONGEST) return false;
  const isThere = (each: string) => placeOf(each) === place && !areDifferentCookies(cookieAt(each), cookie);
  return !isThere(path) && !processFolders().some((folder) => isThere(`${folder}/ns/net`));
}

/**
 * Whether this process would see the namespace at its path if it were still there. In a mount namespace of its own, the
 * folder may be missing, or the path be an empty file on which nothing is mounted; in a PID namespace of its own, a
 * process of the host is missing, or its number is that of another.
 */
export function isNetnsPathVisible(mark: string): boolean {
  const [, , , path] = MARK.exec(mark) ?? [];
  if (path === undefined || (isOfProcess(path) && !isFirstProcessOfMachine())) return false;
  const place = placeOf(path);
  if (place !== undefined) return deviceOf(place) === deviceOf(placeOf(OWN_NETNS));
  // The folder of a process ends with the process.
  return isOfProcess(path) || placeOf(path.slice(0, path.lastIndexOf("/")) || "/") !== undefined;
}

/**
 * True only if the namespace of a host is certainly gone, which its mark knows by a path of the process that made it: no
 * process is in it, and it is mounted nowhere.
 */
export function isHostNetnsGone(mark: string): boolean {
  const [, place] = MARK.exec(mark) ?? [];
  return isNetnsGone(mark) && isNetnsPathVisible(mark) && !isMounted(`net:[${place?.split("/")[1]}]`);
}

/** In the mount namespace of any process. */
function isMounted(namespace: string): boolean {
  const { readFileSync }: typeof import("node:fs") = require("node:fs");
  const seen = new Set<string | undefined>();
  return processFolders().some((folder) => {
    const mounts = placeOf(`${folder}/ns/mnt`);
    if (seen.has(mounts)) return false;
    seen.add(mounts);
    try {
      return readFileSync(`${folder}/mountinfo`, "utf8").includes(` ${namespace} `);
    } catch {
      // The process has ended.
      seen.delete(mounts);
      return false;
    }
  });
}

function isOfProcess(path: string): boolean {
  return path.startsWith("/proc/");
}

/** The same for all namespaces. */
function deviceOf(place: string | undefined): string | undefined {
  return place?.split("/")[0];
}

function areDifferentCookies(left: string | undefined, right: string | undefined): boolean {
  return left !== right && left !== NO_COOKIE && right !== NO_COOKIE;
}

function processFolders(): readonly string[] {
  // Only for conflicts: the import is too slow for every ADD.
  const { readdirSync }: typeof import("node:fs") = require("node:fs");
  return readdirSync("/proc").flatMap((entry) => (/^\d+$/.test(entry) ? [`/proc/${entry}`] : []));
}

/** A namespace that cannot be entered counts as one without a cookie. */
function cookieAt(path: string): string {
  try {
    return String(netnsCookie(path) ?? NO_COOKIE);
  } catch {
    return NO_COOKIE;
  }
}
