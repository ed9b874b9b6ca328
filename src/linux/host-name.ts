import { loadOnce } from "../load-once.ts";

const loadFiles = loadOnce(() => import("./files.ts"));

/** As `os.hostname()`, without importing node:os, and loading files.ts only when needed. */
export async function hostName(): Promise<string> {
  const { readText } = await loadFiles();
  return (readText("/proc/sys/kernel/hostname") ?? "").trim();
}
