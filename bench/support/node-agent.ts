/**
 * The product's node agent, for contenders that leave their calls to it.
 *
 * Its run directory is its own: whoever is not told of it does its work in its
 * own process, on the same host. What a call costs is what its process used and
 * what the agent used for it: the agent's processor time counts with the turn in
 * which it was used, to the end of what it does after its last answer.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { NODE_ENVIRONMENT } from "../../scripts/docs/node-service.ts";
import { callSocketPath } from "../../src/bin/agent-socket.ts";
import { identity } from "../../src/identity.ts";
import { pollUntil } from "../../test/support/poll.ts";
import type { Contender } from "./contest.ts";
import { processorMilliseconds } from "./processor-clock.ts";

const RUN_DIRECTORY = "/run/vt-agent";
const LOG = `${RUN_DIRECTORY}/log`;
/** An agent that uses less than a hundredth of such a moment rests. */
const MOMENT_MILLISECONDS = 10;
const MOST_MOMENTS = 300;
/** A link that is gone keeps a thread of the agent waiting in the kernel, which has a little left to do afterwards. */
const MOMENTS_OF_WAITING = 6;

export interface NodeAgent extends AsyncDisposable {
  /** What tells a plugin of it. */
  readonly environment: Readonly<Record<string, string>>;
  readonly meter: NonNullable<Contender["meter"]>;
}

/** Who may leave its calls to one. */
export interface Served {
  readonly agent?: NodeAgent;
}

/** On the host that this process is on, from the folder of the built programs. In the end it tells what it cost in all. */
export async function startNodeAgent(folder: string): Promise<NodeAgent> {
  const environment = { [`${identity.environmentPrefix}RUN_DIRECTORY`]: RUN_DIRECTORY };
  mkdirSync(RUN_DIRECTORY, { recursive: true });
  // A node keeps its log too: to write it is a part of the cost.
  const child = Bun.spawn([join(folder, identity.nodeAgent)], {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...NODE_ENVIRONMENT, ...environment },
    stdin: "ignore",
    stdout: "ignore",
    stderr: Bun.file(LOG),
  });
  await pollUntil(() => existsSync(callSocketPath(environment)), "the node agent");
  const pids = [child.pid, ...childrenOf(child.pid)];
  return {
    environment,
    async meter() {
      const [spentBefore, servedBefore] = [await spentAtRest(pids, 1), servedCalls()];
      return async () => {
        const cpuMilliseconds = (await spentAtRest(pids, MOMENTS_OF_WAITING)) - spentBefore;
        // Whoever is not served does its work itself, and would be measured in the agent's name.
        if (servedCalls() === servedBefore) throw new Error("Cannot measure the node agent: it served no call");
        return { cpuMilliseconds };
      };
    },
    async [Symbol.asyncDispose]() {
      console.log(child.exitCode === null && child.signalCode === null ? accountOf(pids) : lastWordsOf(child));
      child.kill("SIGTERM");
      await child.exited;
    },
  };
}

/** Its processor time, told once it has rested for so many moments: work may be left after an answer. */
async function spentAtRest(pids: readonly number[], moments: number): Promise<number> {
  let spent = spentBy(pids);
  let rested = 0;
  for (let all = 0; all < MOST_MOMENTS; all++) {
    await Bun.sleep(MOMENT_MILLISECONDS);
    const now = spentBy(pids);
    rested = now - spent < MOMENT_MILLISECONDS / 100 ? rested + 1 : 0;
    spent = now;
    if (rested === moments) return spent;
  }
  throw new Error("Cannot measure the node agent: it does not come to rest");
}

/** The agent starts a process of its own for the calls. */
function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
}

function spentBy(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + processorMilliseconds(pid), 0);
}

function lastWordsOf({ exitCode, signalCode }: Bun.Subprocess): string {
  const lines = readFileSync(LOG, "utf8").trimEnd().split("\n");
  return `node agent: gone (${signalCode ?? `exit code ${exitCode}`})\n${lines.slice(-20).join("\n")}`;
}

function servedCalls(): number {
  return readFileSync(LOG, "utf8").split(": exit code ").length - 1;
}

/** All that it used, so that nothing is lost between the turns, and the most memory that it held. */
function accountOf(pids: readonly number[]): string {
  const calls = servedCalls();
  const each = spentBy(pids) / calls;
  const peakKilobytes = pids.map((pid) =>
    Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]),
  );
  const memory = peakKilobytes.map((kilobytes) => ((kilobytes * 1024) / 1_000_000).toFixed(1)).join(" and ");
  return `node agent: ${calls} calls, ${each.toFixed(2)} ms of CPU time for each, start and rest included; ${memory} MB resident at most`;
}
