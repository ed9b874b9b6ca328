/** The program `bird` and its files on this host. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { BirdFiles } from "../../routing/bird/bird-files.ts";
import { type BirdControl, connectBird } from "./control.ts";

export interface BirdProgram {
  isInstalled(): boolean;
  /** Whether BIRD was killed: the kernel may have routes of it. */
  wasKilled(): boolean;
  /** The configuration in use; `undefined` if there is none. */
  configuration(): string | undefined;
  /** Returns why BIRD cannot use this configuration; `undefined` if it can: it then replaces the file in use. */
  install(text: string): Promise<string | undefined>;
  /** Starts it as a daemon, which outlives this process. Rejects with what it prints if it cannot start. */
  start(how: "fresh" | "recovering"): Promise<void>;
  /** Rejects if it does not run. */
  connect(): Promise<BirdControl>;
  writeState(text: string): void;
}

const LIMIT_MILLISECONDS = 20_000;

interface ProgramMeans {
  readonly logFile: string;
  /** The program with its first arguments; `undefined` if it is not installed. */
  readonly command: () => readonly string[] | undefined;
}

export function birdProgram(files: BirdFiles, { logFile, command }: ProgramMeans): BirdProgram {
  const runBird = (...args: readonly string[]) => run([...(command() ?? ["bird"]), ...args]);
  return {
    isInstalled: () => command() !== undefined,
    wasKilled: () => existsSync(files.pid),
    configuration: () => readIfThere(files.configuration),
    async install(text) {
      makeDirectory(files.directory, 0o700);
      makeDirectory(dirname(logFile), 0o755);
      rmSync(files.candidate, { force: true });
      writeFileSync(files.candidate, text, { mode: 0o600 });
      const refusal = await runBird("-p", "-c", files.candidate);
      if (refusal === undefined) renameSync(files.candidate, files.configuration);
      return refusal;
    },
    async start(how) {
      const recover = how === "recovering" ? ["-R"] : [];
      const { configuration, control, pid } = files;
      const refusal = await runBird(...recover, "-c", configuration, "-s", control, "-P", pid);
      if (refusal !== undefined) throw new Error(refusal);
    },
    connect: () => connectBird(files.control),
    writeState(text) {
      makeDirectory(files.directory, 0o700);
      writeFileSync(`${files.state}.new`, text, { mode: 0o600 });
      renameSync(`${files.state}.new`, files.state);
    },
  };
}

/** Returns what it prints if it fails. */
async function run(command: readonly string[]): Promise<string | undefined> {
  const child = Bun.spawn([...command], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {},
    // Not the directory of the agent, which may be on a file system that is unmounted one day.
    cwd: "/",
    timeout: LIMIT_MILLISECONDS,
  });
  const [code, printed] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  return code === 0 ? undefined : printed.trim() || `exit code ${code}`;
}

function makeDirectory(path: string, mode: number): void {
  mkdirSync(path, { recursive: true, mode });
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
