/**
 * Kernel settings under /proc/sys. Those below `net/` belong to the namespace of
 * the thread that opens the file: call inside `runInNetns` for another one's.
 *
 * Names are paths (`net/ipv4/conf/eth0/forwarding`), since a link's name may hold a dot.
 */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { PluginError } from "../errors.ts";

const ROOT = "/proc/sys";

/** Answers `undefined` where this kernel has no such setting. */
export function readSysctl(name: string): string | undefined {
  const path = pathOf(name);
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw new PluginError("kernel-refused", `Cannot read sysctl "${name}"`, { cause: error });
  }
}

/** Answers `absent` where this kernel has no such setting: IPv6 may be switched off altogether. */
export function writeSysctl(name: string, value: string): "written" | "absent" {
  const path = pathOf(name);
  try {
    // Not writeFileSync: it would ask to create and truncate.
    const fd = openSync(path, "r+");
    try {
      writeSync(fd, value);
    } finally {
      closeSync(fd);
    }
    return "written";
  } catch (error) {
    if (isMissing(error)) return "absent";
    const reason = error instanceof Error ? error.message : String(error);
    throw new PluginError("kernel-refused", `Cannot set sysctl "${name}" to "${value}": ${reason}`, { cause: error });
  }
}

function pathOf(name: string): string {
  if (name.startsWith("/") || name.split("/").some((part) => part === ".." || part === "")) {
    throw new PluginError("internal", `Cannot use "${name}" as the name of a sysctl`);
  }
  return `${ROOT}/${name}`;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
