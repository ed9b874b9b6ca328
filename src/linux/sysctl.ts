/**
 * Kernel settings under /proc/sys. Those below `net/` belong to the namespace of
 * the thread that opens the file: use `runInNetns` for another namespace.
 *
 * Names are paths (`net/ipv4/conf/eth0/forwarding`), since a link's name may contain a dot.
 */
import { PluginError } from "../errors.ts";
import { overwrite, readText } from "./files.ts";

const ROOT = "/proc/sys";

/** Returns `undefined` if this kernel has no such setting. */
export function readSysctl(name: string): string | undefined {
  const path = pathOf(name);
  try {
    return readText(path)?.trim();
  } catch (error) {
    throw new PluginError("kernel-refused", `Cannot read sysctl "${name}"`, { cause: error });
  }
}

/** Returns `absent` if this kernel has no such setting: IPv6 may be disabled. */
export function writeSysctl(name: string, value: string): "written" | "absent" {
  const path = pathOf(name);
  try {
    return overwrite(path, value) ? "written" : "absent";
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new PluginError("kernel-refused", `Cannot set sysctl "${name}" to "${value}": ${reason}`, { cause: error });
  }
}

function pathOf(name: string): string {
  if (name.startsWith("/") || name.split("/").some((part) => part === ".." || part === "")) {
    throw new PluginError("internal", `Cannot use sysctl "${name}": it is not a valid name`);
  }
  return `${ROOT}/${name}`;
}
