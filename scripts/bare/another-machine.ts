/**
 * Makes a command run as on another machine: with a host name of its own, and booted a few minutes ago. Its clock of
 * the day is this machine's. What it is called and when it was booted differs each time, and nothing may depend on it.
 *
 *   /proc/sys/kernel/hostname                                      UTS namespace
 *   /proc/uptime, btime of /proc/stat, monotonic and boot clock    time namespace
 */
import { randomInt } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";

const LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";
const LONGEST_NAME = 20;
const UPTIME_SECONDS = { least: 60, most: 600 };

/** Prefix of the command, without its own process namespace: `more` are other options of `unshare`. */
export function asAnotherMachine(more: readonly string[] = []): readonly string[] {
  const setName = 'echo "$0" >/proc/sys/kernel/hostname; exec "$@"';
  return ["unshare", "--uts", ...bootedLately(), "--fork", ...more, "--", "sh", "-ec", setName, randomHostName()];
}

/** Empty if the kernel has no time namespaces: then it is as old as this machine. */
function bootedLately(): readonly string[] {
  if (!existsSync("/proc/self/ns/time")) return [];
  const uptime = Math.floor(Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]));
  const offset = String(randomInt(UPTIME_SECONDS.least, UPTIME_SECONDS.most) - uptime);
  return ["--time", "--monotonic", offset, "--boottime", offset];
}

/** Of any length, some with capitals and a domain, as people name machines. */
function randomHostName(): string {
  const word = Array.from({ length: randomInt(1, LONGEST_NAME) }, () => LETTERS[randomInt(LETTERS.length)]).join("");
  return randomInt(2) === 0 ? word : `${word.toUpperCase()}.example.org`;
}
