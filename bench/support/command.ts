/** A contender that is a command: one process per operation, its CPU time and its peak memory told by the kernel. */
import { arch } from "node:process";
import type { Contender, Cost } from "./contest.ts";

export interface Command {
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

/** Commands that fail are no contenders: any exit code but 0 ends the benchmark. */
export function commandContender(
  name: string,
  command: Command,
  around: Pick<Contender, "before" | "after"> = {},
): Contender {
  return {
    name,
    ...around,
    run: () => runCommand(command),
    peakMemoryBytes: () => peakMemoryOf(command),
  };
}

/** The answer is read through a pipe, as a runtime does: who writes it to /dev/null has another way to write. */
export async function runCommand({ command, environment = {}, stdin }: Command): Promise<Cost> {
  const child = Bun.spawn([...command], {
    env: { ...environment },
    stdin: stdin === undefined ? "ignore" : new TextEncoder().encode(stdin),
    stdout: "pipe",
    stderr: "ignore",
  });
  const [code, answer] = await Promise.all([child.exited, new Response(child.stdout).text()]);
  if (code !== 0) throw new Error(`Cannot measure "${command.join(" ")}": it ended with exit code ${code}: ${answer}`);
  return { cpuMilliseconds: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1000 };
}

const GETRUSAGE: Readonly<Record<string, number>> = { x64: 98, arm64: 165 };
const RUNS = 5;

async function peakMemoryOf(command: Command): Promise<number | undefined> {
  const peaks: number[] = [];
  for (let run = 0; run < RUNS; run++) peaks.push((await peakMemoryOfOne(command)) ?? Number.NaN);
  const peak = Math.max(...peaks);
  return Number.isNaN(peak) ? undefined : peak;
}

/**
 * Runs the command once for its peak memory; undefined where that cannot be told.
 *
 * The kernel starts the peak of a new process at the size of the one that started it, so this program, which is
 * large, cannot ask for it itself: the small perl of every Debian starts the command and asks in its place.
 */
export async function peakMemoryOfOne({ command, environment = {}, stdin }: Command): Promise<number | undefined> {
  const perl = Bun.which("perl");
  const getrusage = GETRUSAGE[arch];
  if (perl === null || getrusage === undefined) return undefined;
  const script = `
    my $child = fork; if ($child == 0) { open STDERR, ">", "/dev/null"; exec { $ARGV[0] } @ARGV; exit 127 } waitpid $child, 0;
    my $usage = "\\0" x 144; syscall(${getrusage}, -1, $usage); print STDERR unpack("x32 q", $usage);`;
  const child = Bun.spawn([perl, "-e", script, ...command], {
    env: { ...environment },
    stdin: stdin === undefined ? "ignore" : new TextEncoder().encode(stdin),
    stdout: "ignore",
    stderr: "pipe",
  });
  const kilobytes = Number(await new Response(child.stderr).text());
  await child.exited;
  return kilobytes * 1024;
}
