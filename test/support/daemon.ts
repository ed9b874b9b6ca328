/**
 * A server program that a test starts, kills and starts again. It ends with the
 * test run, also if that is killed: the kernel sends it a signal, and where it
 * cannot, `sweepDaemons` of the next run ends it.
 */
import { readdirSync, readFileSync } from "node:fs";
import { DYING_WITH_PARENT } from "./etcd.ts";

export interface Daemon {
  readonly pid: number;
  signal(name: NodeJS.Signals): void;
  /** Ends it at once, and waits until it has ended. */
  kill(): Promise<void>;
  /** Kills it if it still runs, starts it again, perhaps with another command, and waits until it is ready. */
  restart(command?: readonly string[]): Promise<void>;
  /** The end of what it has logged. */
  log(): string;
}

interface DaemonPlan {
  readonly command: readonly string[];
  readonly logFile: string;
  /** Throws while it is not ready. */
  readonly ready: () => Promise<unknown>;
}

const READY_LIMIT_MILLISECONDS = 60_000;
const LOG_END_CHARACTERS = 3_000;

/** Starts it; `ready` waits until it can be used. */
export function startDaemon(plan: DaemonPlan): Daemon & { ready(): Promise<void> } {
  let { command } = plan;
  const start = () => {
    const log = Bun.file(plan.logFile);
    return Bun.spawn([...DYING_WITH_PARENT, ...command], { stdin: "ignore", stdout: log, stderr: log });
  };
  let child = start();
  const onExit = () => child.kill("SIGKILL");
  process.on("exit", onExit);
  const log = () => readText(plan.logFile).slice(-LOG_END_CHARACTERS);
  const kill = async () => {
    child.kill("SIGKILL");
    await child.exited;
    process.off("exit", onExit);
  };
  const ready = async () => {
    const end = performance.now() + READY_LIMIT_MILLISECONDS;
    for (;;) {
      const trouble = await plan.ready().then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      if (trouble === undefined) return;
      if (child.exitCode !== null) throw new Error(`${command.join(" ")} has ended:\n${log()}`);
      if (performance.now() > end) throw new Error(`not ready: ${trouble.error}\n${log()}`);
      await Bun.sleep(50);
    }
  };
  return {
    get pid() {
      return child.pid;
    },
    signal: (name) => child.kill(name),
    kill,
    ready,
    async restart(other = command) {
      command = other;
      await kill();
      child = start();
      process.on("exit", onExit);
      await ready();
    },
    log,
  };
}

/** Ends daemons that use a temporary directory of this area (see temporary-directory.ts) whose owner has ended. */
export function sweepDaemons(area: string): void {
  const ofArea = new RegExp(`/vt-${area}-(\\d+)in\\d+-`);
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const owner = ofArea.exec(readText(`/proc/${pid}/cmdline`))?.[1];
    const parent = /^PPid:\s+(\d+)$/m.exec(readText(`/proc/${pid}/status`))?.[1];
    if (owner !== undefined && parent === "1" && readText(`/proc/${owner}/comm`) === "") kill(Number(pid));
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
