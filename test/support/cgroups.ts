/**
 * The cgroups of private hosts: the only thing that the kernel does not remove
 * with a PID namespace. Their names are `vt-<process>in<PID namespace>-<n>`, as a
 * bare machine (scripts/bare) has its own processes and the cgroups of this machine.
 */
import { existsSync, mkdirSync, readdirSync, readlinkSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pidNamespace } from "./temporary-directory.ts";

const ROOT = "/sys/fs/cgroup";

/** Removes what killed tests left behind. */
export function sweepCgroups(): void {
  for (const name of leftCgroups()) removeCgroups(name);
}

/** Of a host of this process. */
export function cgroupName(process: number, host: number): string {
  return `vt-${process}in${pidNamespace}-${host}`;
}

/** The names of those whose owner has ended, as far as this PID namespace sees it. */
export function leftCgroups(): readonly string[] {
  return [...new Set(hierarchies().flatMap(hostNames))].filter(isLeftOver);
}

function isLeftOver(name: string): boolean {
  const [, owner, namespace] = /^vt-(\d+)in(\d+)-\d+$/.exec(name) ?? [];
  if (owner === undefined) return false;
  if (namespace === pidNamespace) return !existsSync(`/proc/${owner}`);
  return pidNamespace === FIRST_PID_NAMESPACE && !pidNamespaces().has(namespace ?? "");
}

/** The kernel's number of the one that sees all processes. */
const FIRST_PID_NAMESPACE = "4026531836";

function pidNamespaces(): ReadonlySet<string> {
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return new Set(processes.map((process) => /\d+/.exec(linkOf(`/proc/${process}/ns/pid`))?.[0] ?? ""));
}

/** Empty if the process has ended meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

/** Creates the cgroup in every hierarchy, for programs that expect it to be there. */
export function makeCgroups(name: string): void {
  const [first = ROOT, ...others] = hierarchies();
  const isVersion2 = existsSync(join(first, "cgroup.procs"));
  const roots = isVersion2 ? [first] : others.filter((each) => existsSync(join(each, "cgroup.procs")));
  for (const root of roots) mkdirSync(join(root, name), { recursive: true });
}

/** On a busy machine its containers get most of the time together: the programs outside would otherwise count one by one. */
export function preferCgroups(name: string): void {
  for (const hierarchy of hierarchies()) {
    for (const [file, weight] of Object.entries(PREFERRED)) {
      const path = join(hierarchy, name, file);
      if (existsSync(path)) writeFileSync(path, weight);
    }
  }
}

/** With cgroup v1 and v2; the usual weights are 1024 and 100. */
const PREFERRED = { "cpu.shares": "20480", "cpu.weight": "2000" };

export function removeCgroups(name: string): void {
  for (const hierarchy of hierarchies()) removeTree(join(hierarchy, name));
}

/** One directory per controller with cgroup v1, the root itself with v2. */
function hierarchies(): readonly string[] {
  if (!existsSync(ROOT)) return [];
  return [
    ROOT,
    ...readdirSync(ROOT, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [join(ROOT, entry.name)] : [],
    ),
  ];
}

function hostNames(hierarchy: string): readonly string[] {
  return readdirSync(hierarchy).filter((name) => name.startsWith("vt-"));
}

function removeTree(directory: string): void {
  if (!existsSync(directory)) return;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(directory, entry.name));
  }
  try {
    rmdirSync(directory);
  } catch {
    // A process that is still exiting uses it: the next sweep removes it.
  }
}
