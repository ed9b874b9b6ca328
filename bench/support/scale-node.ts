/** The measured node of the benchmark of scale: its links, its agent, and what both cost. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { nodeAddress, podInterface } from "../../sim/scale/cluster-records.ts";
import type { Memory, Spent } from "../../sim/scale/measured.ts";
import { identity } from "../../src/identity.ts";
import { NODE_ENVIRONMENT } from "../../src/release/host-files.ts";
import { processMemory } from "./process-memory.ts";
import { treeCpuMilliseconds } from "./process-tree.ts";
import type { ScaleEtcd } from "./scale-etcd.ts";
import type { IsThere } from "./scale-expectation.ts";

export const UPLINK = "vt-uplink";
/** The number of the measured node. */
export const OWN = 0;
const LOG = "/run/vt/agent.log";
const LONGEST_MILLISECONDS = 900_000;
const LONGEST_END_MILLISECONDS = 15_000;
const SETTLED_MILLISECONDS_PER_SECOND = 50;
const LONGEST_SETTLING_SECONDS = 120;

export interface RunningAgent {
  readonly pid: number;
  stop(): Promise<void>;
}

export async function makeLinks(pods: number): Promise<void> {
  const all = Array.from({ length: pods }, (_, pod) => pod);
  const lines = [
    `link add ${UPLINK} up type veth peer name vt-beyond`,
    "link set vt-beyond up",
    `address add ${nodeAddress(OWN)}/12 dev ${UPLINK}`,
    `route add default via ${nodeAddress(60_000)} dev ${UPLINK}`,
    ...all.map((pod) => `link add ${podInterface(pod)} up type veth peer name p${pod}`),
    ...all.map((pod) => `link set p${pod} up`),
  ];
  const child = Bun.spawn(["ip", "-batch", "-"], { stdin: new Blob([`${lines.join("\n")}\n`]), stderr: "pipe" });
  const [code, complaints] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  if (code !== 0) throw new Error(`Cannot make the links: ${complaints}`);
}

export function startAgent(folder: string): RunningAgent {
  const log = Bun.file(LOG);
  const child = Bun.spawn([join(folder, identity.nodeAgent)], {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...NODE_ENVIRONMENT },
    stdin: "ignore",
    stdout: log,
    stderr: log,
  });
  return {
    pid: child.pid,
    async stop() {
      child.kill("SIGTERM");
      // Under much load its end takes time, which is not what is measured.
      const kill = setTimeout(() => child.kill("SIGKILL"), LONGEST_END_MILLISECONDS);
      await child.exited;
      clearTimeout(kill);
    },
  };
}

/** `work` returns the agent, which it may start. */
export async function spend(
  etcd: ScaleEtcd,
  agent: RunningAgent | undefined,
  work: () => Promise<RunningAgent>,
): Promise<Spent> {
  const agentBefore = agent === undefined ? 0 : treeCpuMilliseconds(agent.pid);
  const counters = await etcd.counters();
  const etcdBefore = treeCpuMilliseconds(etcd.pid);
  const started = performance.now();
  const { pid } = await work();
  const wallMilliseconds = performance.now() - started;
  const agentMilliseconds = treeCpuMilliseconds(pid) - agentBefore;
  const etcdMilliseconds = treeCpuMilliseconds(etcd.pid) - etcdBefore;
  const { sentBytes, requests } = await etcd.counters();
  return {
    ...{ wallMilliseconds, agentMilliseconds, etcdMilliseconds },
    sentBytes: sentBytes - counters.sentBytes,
    requests: requests - counters.requests,
  };
}

export function memoryOf(pid: number): Memory {
  const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return { residentBytes: processMemory(pid).residentBytes, peakBytes: Number(peak) * 1024 };
}

/** Until it uses little CPU time for a second. */
export async function settle({ pid }: RunningAgent): Promise<void> {
  for (let seconds = 0; seconds < LONGEST_SETTLING_SECONDS; seconds++) {
    const before = treeCpuMilliseconds(pid);
    await Bun.sleep(1_000);
    if (treeCpuMilliseconds(pid) - before < SETTLED_MILLISECONDS_PER_SECOND) return;
  }
}

const SLEEPER = new Int32Array(new SharedArrayBuffer(4));

/** Sleeps in between, because the measured agent has the same cores. */
export async function until(isThere: IsThere, interval = 20): Promise<void> {
  const end = performance.now() + LONGEST_MILLISECONDS;
  while (!isThere()) {
    if (performance.now() > end) {
      throw new Error(`The node has not converged:\n${readFileSync(LOG, "utf8").slice(-2_000)}`);
    }
    // Timers of the event loop are not that fine.
    if (interval < 1) Atomics.wait(SLEEPER, 0, 0, interval);
    else await Bun.sleep(interval);
  }
}
