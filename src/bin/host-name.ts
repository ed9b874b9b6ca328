import { loadOnce } from "../load-once.ts";

const loadFiles = loadOnce(() => import("../linux/files.ts"));

/** What `os.hostname()` says, without the import of node:os, and without what VERSION need not load. */
export async function hostName(): Promise<string> {
  const { readText } = await loadFiles();
  return (readText("/proc/sys/kernel/hostname") ?? "").trim();
}
