/** When a private host was booted, as the kernel says; independent of the uptime of this machine. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "./host.ts";

/** Tells when the host was booted. */
export const BOOT_TIME = "/proc/stat";

/** The kernel has not started again: `btime` of /proc/stat says so all the same. */
export async function setBootTime(host: Host, booted: Date): Promise<void> {
  const status = readFileSync(host.view(BOOT_TIME), "utf8");
  const path = join(host.directory, "stat");
  host.writeFile(path, status.replace(/^btime .*$/m, `btime ${Math.floor(booted.getTime() / 1000)}`));
  await host.must(["mount", "--bind", path, BOOT_TIME]);
}

/** As if the host was booted a moment ago: after everything that was recorded so far, which the clock may round up. */
export async function bootNow(host: Host): Promise<void> {
  await setBootTime(host, new Date(Date.now() + 10_000));
}
