/**
 * Moves a process into the namespaces that another process lives in.
 *
 * A mount namespace belongs to a thread as long as the thread shares its
 * current folder with no other, and the language runtime has threads from the
 * start. So the calling thread joins alone, and then replaces the whole process
 * (`replaceProcess`): what runs from then on has never been anywhere else.
 */

import { errnoOf } from "./errno.ts";
import { closeFile, openToRead } from "./files.ts";
import { KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";

const CLONE_FS = 0x200;
/** What decides what a path, an interface and the host's name mean: by the names of their files, with the kernel's numbers. */
const NAMESPACES = { mnt: 0x20000, uts: 0x4000000, net: 0x40000000 } as const;

/** `folder` holds the namespaces of a process: `/proc/PID/ns`, wherever that file system is mounted. */
export function joinNamespaces(folder: string): void {
  // All are opened first: in the other mount namespace the folder may be elsewhere.
  const found = Object.entries(NAMESPACES).map(([name, kind]) => openNamespace(`${folder}/${name}`, kind));
  if (libc.unshare(CLONE_FS) !== 0) throw new KernelError("leave the shared current folder", libc.lastErrno());
  for (const { path, kind, file } of found) {
    if (libc.setns(file, kind) !== 0) throw new KernelError(`join namespace "${path}"`, libc.lastErrno());
    closeFile(file);
  }
}

function openNamespace(path: string, kind: number) {
  const file = openToRead(path);
  if (file === undefined) throw new KernelError(`open namespace "${path}"`, errnoOf("ENOENT"));
  return { path, kind, file };
}
