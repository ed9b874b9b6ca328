/** Programs of the host, for the commands of the admin tool that collect their output. Loaded only by these. */
import { writeFile } from "node:fs/promises";
import type { ProgramOutput } from "../admin/command.ts";
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";

const LONGEST_MILLISECONDS = 30_000;
/** Directories that are not in the PATH of every user. */
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

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
