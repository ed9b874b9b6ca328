/**
 * The collector of flows as a process of its own: what starts it, and the lines that go in and out.
 *
 *   node agent ── starts, stdin ──> collector ── stdout ──> node agent
 *
 * The kernel kills the collector when the agent dies: an agent that starts again finds none. What the collector does never
 * holds up policy or calls, and whatever it is told is taken by it in its own time: the agent waits for that without
 * doing anything.
 */
import { identity } from "../../identity.ts";
import { endWithParent, nameProcess, OWN_PROGRAM } from "../../linux/own-process.ts";
import type { AgentProcess } from "../agent-process.ts";

/**
 * The runtime collects garbage as if the machine had so much memory: in a flood the heap then stays near what is used,
 * instead of growing to several times of it.
 */
export const COLLECTOR_TUNING = { BUN_JSC_forceRAMSize: "201326592" } as const;

/** Command-line options of the collector. */
export interface CollectorOptions {
  /** The agent that started it. */
  readonly parent?: number | undefined;
}

/** A collector that runs. */
export interface CollectorProcess {
  /** Resolves when the collector's side has taken the text. Rejects if it has ended. */
  write(text: string): Promise<void>;
  /** What it says, as it arrives: any parts of lines. Ends with the collector. */
  readonly output: AsyncIterable<Uint8Array>;
  /** How it ended, for people. */
  readonly ended: Promise<string>;
  /** `hard`: it does not react. */
  stop(how: "gently" | "hard"): void;
}

/** `command`: the arguments that start it. */
export function startCollector(
  command: readonly string[],
  { environment }: Pick<AgentProcess, "environment">,
): CollectorProcess {
  const child = Bun.spawn([OWN_PROGRAM, ...command], {
    argv0: identity.nodeAgent,
    env: { ...environment, ...COLLECTOR_TUNING },
    stdio: ["pipe", "pipe", "inherit"],
  });
  return {
    async write(text) {
      child.stdin.write(text);
      await child.stdin.flush();
    },
    output: child.stdout,
    ended: child.exited.then((code) => (child.signalCode === null ? `exit code ${code}` : String(child.signalCode))),
    stop: (how) => child.kill(how === "hard" ? "SIGKILL" : "SIGTERM"),
  };
}

/** The first step of a collector. Returns `false` if its agent has ended. */
export function beginCollector({ parent }: CollectorOptions): boolean {
  nameProcess(identity.nodeAgent);
  return parent === undefined || endWithParent(parent);
}
