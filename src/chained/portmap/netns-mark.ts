/**
 * Where an owner's container is, so that a later ADD can tell whether it still
 * lives. Kept as a comment in the kernel: `netns <inode> <path>`.
 */
import { readdirSync, statSync } from "node:fs";

const MARK = /^netns (\d+) (\/.*)$/;
/** As much as a comment holds: a longer path was cut, and proves nothing. */
const LONGEST = 127;

export function markNetns(path: string): string {
  return `netns ${inodeOf(path) ?? 0} ${path}`;
}

/** True only if the namespace is surely gone: its path leads elsewhere or nowhere, and no process is in it. */
export function isNetnsGone(mark: string | undefined): boolean {
  const [, inode, path] = MARK.exec(mark ?? "") ?? [];
  if (inode === undefined || path === undefined || (mark?.length ?? 0) >= LONGEST) return false;
  if (String(inodeOf(path)) === inode) return false;
  return !isInUse(inode);
}

function isInUse(inode: string): boolean {
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    if (String(inodeOf(`/proc/${entry}/ns/net`)) === inode) return true;
  }
  return false;
}

/** Namespaces are files of one file system: the inode alone tells them apart. */
function inodeOf(path: string): number | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino;
  } catch {
    return undefined;
  }
}
