/**
 * Mounts a directory a second time, for others to read only, and unmounts it. For rare work: imports node:fs.
 *
 * Who can rename a part of a path must not be able to lead a mount elsewhere: the directory is opened without following
 * a link, and the mount is made on what was opened.
 */
import { closeSync, constants, openSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { effect } from "../effect.ts";
import { quoted } from "../quote.ts";
import { addressOf, lastErrno, pathBytes, systemCall } from "../system-call.ts";
import { errnoOf } from "./errno.ts";
import { KernelError } from "./kernel-error.ts";

const [READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS] = [0x1, 0x2, 0x4, 0x8];
const [REMOUNT, BIND] = [0x20, 0x1000];
const RESTRICTED = READ_ONLY | NO_SETUID | NO_DEVICES | NO_PROGRAMS;
const RESTRICTED_OPTIONS = ["ro", "nosuid", "nodev", "noexec"];

/** Also if a process still uses it: it is gone for all others. */
const [DETACH, NO_FOLLOW_UNMOUNT] = [0x2, 0x8];

/** Nobody mounts this often on one directory. */
const MOST_MOUNTS = 1_000;

/**
 * Mounts `directory` on the directory `target`, a path without symbolic links: read-only, without devices, programs that
 * can be run and changes of the user. Not at once: after a crash it may be writable, which `isMountedReadOnly` sees.
 */
export function mountReadOnly(directory: string, target: string): void {
  effect(`mount on "${target}"`, () => mountOn(target, { source: directory, flags: BIND }));
  effect(`restrict the mount on "${target}"`, () =>
    mountOn(target, { source: "none", flags: REMOUNT | BIND | RESTRICTED }),
  );
}

/** Whether `directory` is mounted on `target`, once and as `mountReadOnly` does it. */
export function isMountedReadOnly(directory: string, target: string): boolean {
  const mounts = mountsOn(target, readFileSync("/proc/self/mountinfo", "utf8"));
  const [mount] = mounts;
  if (mount === undefined || mounts.length > 1) return false;
  return RESTRICTED_OPTIONS.every((option) => mount.options.includes(option)) && isSame(directory, target);
}

/** Unmounts everything that is mounted on it. A path that does not exist has no mounts. */
export function unmountAll(target: string): void {
  for (let count = 0; count < MOST_MOUNTS; count += 1) {
    const errno = effect(`unmount "${target}"`, () => unmount(target));
    if (errno === undefined) continue;
    if (errno === errnoOf("EINVAL") || errno === errnoOf("ENOENT")) return;
    throw new KernelError(`unmount ${quoted(target)}`, errno);
  }
}

export interface Mount {
  readonly point: string;
  readonly options: readonly string[];
}

/** Of the text of /proc/PID/mountinfo, oldest first. */
export function mountsOn(target: string, text: string): readonly Mount[] {
  return text.split("\n").flatMap((line) => {
    const [, , , , point = "", options = ""] = line.split(" ");
    return unescaped(point) === target ? [{ point: target, options: options.split(",") }] : [];
  });
}

/** Blanks, tabs, line ends and backslashes are octal numbers. */
function unescaped(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

function isSame(directory: string, other: string): boolean {
  const [one, two] = [directory, other].map((path) => statSync(path, { throwIfNoEntry: false }));
  return one !== undefined && one.ino === two?.ino && one.dev === two.dev;
}

function mountOn(target: string, { source, flags }: { readonly source: string; readonly flags: number }): void {
  const file = openSync(target, constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const link = `/proc/self/fd/${file}`;
    // A part of the path has become a link.
    if (readlinkSync(link) !== target) throw new KernelError(`open ${quoted(target)}`, errnoOf("ELOOP"));
    const [from, on] = [pathBytes(source), pathBytes(link)];
    if (systemCall("mount", addressOf(from), on, 0, flags, 0) === 0) return;
    throw new KernelError(`mount ${quoted(source)} on ${quoted(target)}`, lastErrno());
  } finally {
    closeSync(file);
  }
}

/** The error number, if it failed. */
function unmount(target: string): number | undefined {
  const path = pathBytes(target);
  return systemCall("umount2", addressOf(path), DETACH | NO_FOLLOW_UNMOUNT) === 0 ? undefined : lastErrno();
}
