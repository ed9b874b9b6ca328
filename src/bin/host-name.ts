/** What `os.hostname()` says, without the import of node:os, and without what VERSION need not load. */
export async function hostName(): Promise<string> {
  const { readText } = await import("../linux/files.ts");
  return (readText("/proc/sys/kernel/hostname") ?? "").trim();
}
