/**
 * The cgroups of private hosts: the only thing that the kernel does not remove
 * with a PID namespace. Their names are `vt-<pid of the test>-<n>`.
 */
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = "/sys/fs/cgroup";

/** Removes what killed tests left behind. */
export function sweepCgroups(): void {
  for (const name of leftCgroups()) removeCgroups(name);
}

/** The names of those whose owner has ended. */
export function leftCgroups(): readonly string[] {
  return [...new Set(hierarchies().flatMap(hostNames))].filter((name) => {
    const owner = /^vt-(\d+)-/.exec(name)?.[1];
    return owner !== undefined && !existsSync(`/proc/${owner}`);
  });
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
