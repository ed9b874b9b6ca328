/**
 * Whether the agent resolves the paths of a call as its caller does. The caller does not hand over a call whose paths
 * depend on the process; it does not follow symbolic links, which may lead to such a path.
 */
import { realpathSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Environment } from "../../cni/environment.ts";
import { dependsOnProcess } from "../../cni/process-path.ts";
import { putLinkTarget } from "../../linux/link-target.ts";

/** As the kernel: more links than this are a loop. */
const MOST_LINKS = 40;
const LONGEST_PATH = 4096;
/** Directories without symbolic links of users. */
const PLAIN_DIRECTORY = /^(?:(?:\/var)?\/run\/netns|\/proc\/\d+\/ns)$/;

/** `pid`: of the agent. */
export function isResolvedAlike({ CNI_NETNS = "" }: Environment, pid: number): boolean {
  let path = CNI_NETNS;
  for (let links = 0; links < MOST_LINKS; links++) {
    if (dependsOnProcess(path)) return false;
    const directory = realDirectory(path);
    // It does not exist, which the call itself reports.
    if (directory === undefined) return true;
    if (isDirectoryOf(pid, directory)) return false;
    const target = linkTarget(path);
    // A namespace of a process is a link to a name that is not a path: "net:[4026531840]".
    if (target === "" || /^\w+:\[\d+\]$/.test(target)) return true;
    path = resolve(directory, target);
  }
  return true;
}

function realDirectory(path: string): string | undefined {
  const directory = dirname(path);
  if (PLAIN_DIRECTORY.test(directory)) return directory;
  try {
    return realpathSync.native(directory);
  } catch {
    return undefined;
  }
}

/** Whether /proc/self or a path below it led to the directory. */
function isDirectoryOf(pid: number, directory: string): boolean {
  return `${directory}/`.startsWith(`/proc/${pid}/`);
}

function linkTarget(path: string): string {
  const bytes = new Uint8Array(LONGEST_PATH);
  return new TextDecoder().decode(bytes.subarray(0, putLinkTarget(bytes, 0, path)));
}
