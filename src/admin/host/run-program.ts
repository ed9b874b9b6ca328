/** Programs of the host that commands of the admin tool run: Helm, or those whose output they collect. */

import { writeFile } from "node:fs/promises";
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import type { Program, ProgramOutput } from "../main/context.ts";

const LONGEST_MILLISECONDS = 30_000;
/** Directories that are not in the PATH of every user. */
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** With the paths of the system; `undefined` if there is no such program. */
export async function runProgram(command: readonly string[], signal: AbortSignal): Promise<ProgramOutput | undefined> {
  const program = Bun.which(command[0] ?? "", { PATH: SYSTEM_PATH });
  if (program === null) return undefined;
  const child = Bun.spawn([program, ...command.slice(1)], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: SYSTEM_PATH, LC_ALL: "C" },
    timeout: LONGEST_MILLISECONDS,
    signal,
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { exitCode, output: `${stdout}${stderr}` };
}

export async function writeNewFile(path: string, content: Uint8Array): Promise<void> {
  try {
    await writeFile(path, content, { mode: 0o600, flag: "wx" });
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    const reason = code === "EEXIST" ? "it exists already" : code;
    throw new PluginError("io-failure", `Cannot write ${quoted(path)}: ${reason}`, { cause });
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** `name`: a path, or a name to be found in PATH. */
export function findProgram(name: string, environment: Environment): Program | undefined {
  const path = Bun.which(name, { PATH: environment["PATH"] ?? "" });
  if (path === null) return undefined;
  return async (args, stdin = "") => {
    const running = Bun.spawn([path, ...args], {
      env: { ...environment },
      stdin: new Blob([stdin]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, code] = await Promise.all([
      new Response(running.stdout).text(),
      new Response(running.stderr).text(),
      running.exited,
    ]);
    return { code, stdout, stderr };
  };
}
