/**
 * Moves a process into the namespaces of another process.
 *
 * A thread can join a mount namespace only if it shares its current folder with no
 * other thread, and the language runtime has several threads from the start. So the
 * calling thread joins alone and then replaces the whole process (`replaceProcess`):
 * the new program runs completely in the joined namespaces.
 */

import { quoted } from "../quote.ts";
import { errnoOf } from "./errno.ts";
import { closeFile, openToRead } from "./files.ts";
import { KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";

const CLONE_FS = 0x200;
/** The namespaces of paths, host name and network interfaces: file names, with the kernel's numbers. */
const NAMESPACES = { mnt: 0x20000, uts: 0x4000000, net: 0x40000000 } as const;

/** `folder` contains the namespaces of a process: `/proc/PID/ns`, wherever that file system is mounted. */
export function joinNamespaces(folder: string): void {
  // All are opened first: in the other mount namespace the folder may be elsewhere.
  const found = Object.entries(NAMESPACES).map(([name, kind]) => openNamespace(`${folder}/${name}`, kind));
  if (libc.unshare(CLONE_FS) !== 0) throw new KernelError("unshare the current folder", libc.lastErrno());
  for (const { path, kind, file } of found) {
    if (libc.setns(file, kind) !== 0) throw new KernelError(`join namespace ${quoted(path)}`, libc.lastErrno());
    closeFile(file);
  }
}

const PATH_ONLY = 0o10000000;
const DIRECTORY = 0o200000;

/**
 * Keeps the root directory of this process open for the programs that replace it (`replaceProcess`), and the mount
 * namespace, without which everything that is mounted below the root would be unmounted. Returns its path.
 */
export function keepRoot(): string {
  openForSuccessors("/proc/self/ns/mnt", 0);
  return `/proc/self/fd/${openForSuccessors("/", PATH_ONLY | DIRECTORY)}`;
}

/** Not closed by `execve`. */
function openForSuccessors(path: string, flags: number): number {
  const file = libc.open(path, flags, 0);
  if (file < 0) throw new KernelError(`open ${quoted(path)}`, libc.lastErrno());
  return file;
}

function openNamespace(path: string, kind: number) {
  const file = openToRead(path);
  if (file === undefined) throw new KernelError(`open namespace ${quoted(path)}`, errnoOf("ENOENT"));
  return { path, kind, file };
}
