/**
 * The product's node agent, for candidates that hand their calls to it.
 *
 * It has its own run directory: plugins that do not know it work in their own
 * process, on the same host. The cost of a call is that of its process plus that
 * of the agent: the agent's CPU time counts for the turn in which it was used,
 * including what it does after its last reply.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SERVE_CALLS } from "../../src/bin/node-arguments.ts";
import { callSocketPath } from "../../src/config/run-directory.ts";
import { identity } from "../../src/identity.ts";
import { NODE_ENVIRONMENT } from "../../src/release/host-files.ts";
import { pollUntil } from "../../test/support/poll.ts";
import type { Candidate } from "./comparison.ts";
import { processorMilliseconds } from "./processor-clock.ts";

/** An agent is idle if it uses less than a hundredth of such an interval. */
const INTERVAL_MILLISECONDS = 10;
const MAXIMUM_INTERVALS = 300;
/** After a link is removed, a thread of the agent still waits in the kernel and has some work left. */
const IDLE_INTERVALS = 6;

export interface NodeAgent extends AsyncDisposable {
  /** The variables that make a plugin use it. */
  readonly environment: Readonly<Record<string, string>>;
  readonly meter: NonNullable<Candidate["meter"]>;
}

/** A candidate that may hand its calls to an agent. */
export interface Served {
  readonly agent?: NodeAgent;
}

/**
 * Starts it on the host of this process, from the directory of the built programs. Prints its total cost when disposed.
 * `title`: of one of several agents.
 */
export async function startNodeAgent(folder: string, title = "agent"): Promise<NodeAgent> {
  const runDirectory = `/run/vt-${title}`;
  const log = `${runDirectory}/log`;
  const servedCalls = () => readFileSync(log, "utf8").split(": exit code ").length - 1;
  const environment = { [`${identity.environmentPrefix}RUN_DIRECTORY`]: runDirectory };
  mkdirSync(runDirectory, { recursive: true });
  // A node writes its log too: that is part of the cost.
  const child = Bun.spawn([join(folder, identity.nodeAgent)], {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...NODE_ENVIRONMENT, ...environment },
    stdin: "ignore",
    stdout: "ignore",
    stderr: Bun.file(log),
  });
  await pollUntil(() => existsSync(callSocketPath(environment)), "the node agent");
  const pids = [child.pid, ...callServersOf(child.pid)];
  return {
    environment,
    async meter() {
      const [spentBefore, servedBefore] = [await cpuTimeWhenIdle(pids, 1), servedCalls()];
      return async () => {
        const cpuMilliseconds = (await cpuTimeWhenIdle(pids, IDLE_INTERVALS)) - spentBefore;
        // A plugin that is not served does its work itself, and would be measured as if the agent had done it.
        if (servedCalls() === servedBefore) throw new Error("Cannot measure the node agent: it served no call");
        return { cpuMilliseconds };
      };
    },
    async [Symbol.asyncDispose]() {
      const isRunning = child.exitCode === null && child.signalCode === null;
      console.log(`node ${title}: ${isRunning ? totalCostOf(pids, servedCalls()) : failureOf(child, log)}`);
      child.kill("SIGTERM");
      await child.exited;
    },
  };
}

/** Its CPU time once it has been idle for so many intervals: work may be left after a reply. */
async function cpuTimeWhenIdle(pids: readonly number[], intervals: number): Promise<number> {
  let spent = spentBy(pids);
  let idle = 0;
  for (let all = 0; all < MAXIMUM_INTERVALS; all++) {
    await Bun.sleep(INTERVAL_MILLISECONDS);
    const now = spentBy(pids);
    idle = now - spent < INTERVAL_MILLISECONDS / 100 ? idle + 1 : 0;
    spent = now;
    if (idle === intervals) return spent;
  }
  throw new Error("Cannot measure the node agent: it does not become idle");
}

/** The agent starts a separate process for the calls, and others that soon end. */
function callServersOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
  return children.filter((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes(SERVE_CALLS));
}

function spentBy(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + processorMilliseconds(pid), 0);
}

function failureOf({ exitCode, signalCode }: Bun.Subprocess, log: string): string {
  const lines = readFileSync(log, "utf8").trimEnd().split("\n");
  return `ended (${signalCode ?? `exit code ${exitCode}`})\n${lines.slice(-20).join("\n")}`;
}

/** Its total CPU time, including the time between turns, and its peak memory. */
function totalCostOf(pids: readonly number[], calls: number): string {
  const each = spentBy(pids) / calls;
  const peakKilobytes = pids.map((pid) =>
    Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]),
  );
  const memory = peakKilobytes.map((kilobytes) => ((kilobytes * 1024) / 1_000_000).toFixed(1)).join(" and ");
  return `${calls} calls, ${each.toFixed(2)} ms of CPU time per call, including start and idle time; peak memory ${memory} MB resident`;
}
