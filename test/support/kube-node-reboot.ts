/** What a machine loses when it loses power, taken from a private host: processes, mounts, links, rules, /run. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setBootTime } from "./boot-time.ts";
import type { Host } from "./host.ts";
import { pollUntil } from "./poll.ts";

/** The mounts of the host, in the order in which they were mounted. */
export function mountPoints(host: Host): readonly string[] {
  return readFileSync(host.view("/proc/1/mounts"), "utf8")
    .split("\n")
    .flatMap((line) => line.split(" ")[1] ?? []);
}

/** `mountsOfBoot`: those that a machine has again after it has started. */
export async function clearVolatile(host: Host, mountsOfBoot: readonly string[]): Promise<void> {
  await pollUntil(() => killAll(host), "the end of all processes");
  await removeMounts(host, mountsOfBoot);
  await removeLinks(host);
  await host.must(["nft", "flush", "ruleset"]);
  clearRun(host);
  await setBootTime(host, new Date());
}

/** Kills every process but PID 1 and the `cat` that it waits for; true if there was none. */
async function killAll(host: Host): Promise<boolean> {
  const pids = readdirSync(host.view("/proc")).filter((name) => /^\d+$/.test(name) && isVolatile(host, name));
  if (pids.length > 0) await host.run(["kill", "-9", ...pids]);
  return pids.length === 0;
}

function isVolatile(host: Host, pid: string): boolean {
  const [, name, state, parent] = /^\d+ \((.*)\) (\S) (\d+)/.exec(statOf(host, pid)) ?? [];
  if (state === undefined || state === "Z") return false;
  return pid !== "1" && !(name === "cat" && parent === "1");
}

/** Empty if it has ended meanwhile. */
function statOf(host: Host, pid: string): string {
  try {
    return readFileSync(host.view(`/proc/${pid}/stat`), "utf8");
  } catch {
    return "";
  }
}

/** Network namespaces end with their mounts, and their links with them. */
async function removeMounts(host: Host, mountsOfBoot: readonly string[]): Promise<void> {
  const kept = new Set(mountsOfBoot);
  const lost = mountPoints(host).filter((target) => !kept.has(target));
  for (const target of lost.toReversed()) await host.run(["umount", "--lazy", target]);
}

async function removeLinks(host: Host): Promise<void> {
  const links = [...(await host.must(["ip", "-o", "link"])).matchAll(/^\d+: ([^:@]+)/gm)].map(([, link = ""]) => link);
  for (const link of links) {
    // One end of a pair may have vanished with the other.
    if (link !== "lo" && link !== "eth0") await host.run(["ip", "link", "delete", link]);
  }
}

/** The directory of the host stands for a disk, except containerd's state; /run/etc holds the changes of /etc. */
function clearRun(host: Host): void {
  const remove = (path: string) => rmSync(host.view(path), { recursive: true, force: true });
  remove(join(host.directory, "containerd-state"));
  for (const name of readdirSync(host.view("/run"))) {
    const path = join("/run", name);
    if (path !== host.directory && path !== "/run/etc") remove(path);
  }
}
