/**
 * The peak memory of one process of a command, measured in two ways:
 *
 *   resident   all pages that it mapped, including those of its file, which all processes share
 *   own        what the kernel charged to the memory cgroup of the process alone: what limits and the OOM killer use
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { arch } from "node:process";
import { removeCgroups } from "../../test/support/cgroups.ts";
import type { Command } from "./command-line.ts";

export interface PeakMemory {
  readonly residentBytes: number;
  /** Absent if there are no memory cgroups. */
  readonly ownBytes: number | undefined;
}

const GETRUSAGE: Readonly<Record<string, number>> = { x64: 98, arm64: 165 };
const RUNS = 5;

/** The maximum of several runs. */
export async function peakMemoryOf(command: Command): Promise<PeakMemory | undefined> {
  const peaks: PeakMemory[] = [];
  for (let run = 0; run < RUNS; run++) {
    const peak = await peakMemoryOfOne(command);
    if (peak === undefined) return undefined;
    peaks.push(peak);
  }
  const own = peaks.flatMap(({ ownBytes }) => ownBytes ?? []);
  return {
    residentBytes: Math.max(...peaks.map(({ residentBytes }) => residentBytes)),
    ownBytes: own.length === 0 ? undefined : Math.max(...own),
  };
}

/**
 * Runs the command once; `undefined` if its memory cannot be measured.
 *
 * The kernel initializes the resident peak of a new process with the size of its parent, and this program is large:
 * therefore a small perl process starts the command and measures it.
 */
export async function peakMemoryOfOne({ command, environment = {}, stdin }: Command): Promise<PeakMemory | undefined> {
  const perl = Bun.which("perl");
  const getrusage = GETRUSAGE[arch];
  if (perl === null || getrusage === undefined) return undefined;
  using group = openMemoryGroup();
  const join = group === undefined ? "" : `open G, ">", "${group.processes}"; print G 0; close G;`;
  const script = `
    my $child = fork;
    if ($child == 0) { ${join} open STDERR, ">", "/dev/null"; exec { $ARGV[0] } @ARGV; exit 127 } waitpid $child, 0;
    my $usage = "\\0" x 144; syscall(${getrusage}, -1, $usage); print STDERR unpack("x32 q", $usage);`;
  const child = Bun.spawn([perl, "-e", script, ...command], {
    env: { ...environment },
    stdin: stdin === undefined ? "ignore" : new TextEncoder().encode(stdin),
    stdout: "ignore",
    stderr: "pipe",
  });
  const kilobytes = Number(await new Response(child.stderr).text());
  await child.exited;
  return { residentBytes: kilobytes * 1024, ownBytes: group?.peakBytes() };
}

interface MemoryGroup extends Disposable {
  /** A process that writes 0 to this file joins the group. */
  readonly processes: string;
  peakBytes(): number;
}

/** The two versions of cgroups, and the file of each with the peak. */
const LAYOUTS = [
  { root: "/sys/fs/cgroup/memory", peak: "memory.max_usage_in_bytes" },
  { root: "/sys/fs/cgroup", peak: "memory.peak" },
];

let opened = 0;

function openMemoryGroup(): MemoryGroup | undefined {
  for (const { root, peak } of LAYOUTS) {
    opened += 1;
    const name = `vt-${process.pid}-memory-${opened}`;
    const folder = join(root, name);
    if (!makeFolder(folder)) continue;
    const group = {
      processes: join(folder, "cgroup.procs"),
      peakBytes: () => Number(readFileSync(join(folder, peak), "utf8")),
      [Symbol.dispose]: () => removeCgroups(name),
    };
    if (existsSync(join(folder, peak))) return group;
    removeCgroups(name);
  }
  return undefined;
}

function makeFolder(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch {
    return false;
  }
}
