/** The node agent on a private host, as a service manager would start it. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { dirname } from "node:path";
import { identity } from "../../src/identity.ts";
import { NODE_ENVIRONMENT } from "../../src/release/host-files.ts";
import type { Host } from "../support/host.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";

/** Without the link `/var/run`, which would lead to the real host if followed from outside. */
const RUN_DIRECTORY = identity.runDirectory.replace(/^\/var\/run\//, "/run/");
export const SOCKET = `${RUN_DIRECTORY}/agent/calls.sock`;
/** For CNI_PATH. */
export const BIN = dirname(builtProgram());

export interface Agent extends AgentProcess {
  /** The process that serves the calls, started by the agent. */
  readonly server: AgentProcess;
  /** The calls it has served, in order: `plugin ADD: exit code 0`. */
  served(): readonly string[];
  /** The same, once that many are logged: it logs a call after its reply. */
  hasServed(count: number): Promise<readonly string[]>;
  log(): string;
  /** Its exit code, once it has ended. */
  readonly ended: Promise<number>;
}

export interface AgentProcess {
  /** In the host's PID namespace. */
  readonly pid: number;
  signal(name: "TERM" | "KILL" | "STOP" | "CONT"): Promise<void>;
  isFrozen(): boolean;
  holds(): Held;
}

/** Open resources of an agent's process; TCP connections stay open for a while and are counted separately. */
export interface Held {
  readonly descriptors: number;
  readonly connections: number;
  /** Without the garbage collector's. */
  readonly threads: number;
}

export interface AgentOptions {
  readonly program?: string;
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Prefix of the command: a program that enters or makes namespaces. */
  readonly under?: readonly string[];
}

const SERVES = /\[INFO\]\[(\d+)\] \S+: serves the plugins' calls/g;

/** For `args`: only the call server, without the agent that restarts it. */
export const SERVER_ALONE = ["serve-calls"];

let started = 0;

/** Starts it, and waits until it listens. */
export async function startAgent(host: Host, options: AgentOptions = {}): Promise<Agent> {
  const agent = launchAgent(host, options);
  await pollUntil(() => agent.log().includes("serves the plugins' calls"), "the agent to serve");
  return agent;
}

/** Starts an agent that may end by itself. */
export function launchAgent(host: Host, options: AgentOptions = {}): Agent {
  started += 1;
  const log = `agent-${started}.log`;
  const pidFile = `${host.directory}/agent-${started}.pid`;
  const variables = Object.entries({ ...NODE_ENVIRONMENT, ...options.environment }).map(
    ([name, value]) => `${name}=${value}`,
  );
  const program = options.program ?? builtProgram(identity.nodeAgent);
  const script = `echo $$ > ${pidFile}; exec "$@"`;
  const command = [...(options.under ?? []), "env", ...variables, program, ...(options.args ?? [])];
  const child = host.start(["sh", "-c", script, "sh", ...command], log);
  const readLog = () => {
    const file = host.view(`${host.directory}/${log}`);
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  };
  const served = () => [...readLog().matchAll(/(\w+ \w+: exit code \d+)/g)].map(([, call = ""]) => call);
  const processOf = (pidOf: () => number): AgentProcess => {
    const own = (path: string) => host.view(`/proc/${pidOf()}/${path}`);
    return {
      get pid() {
        return pidOf();
      },
      async signal(name) {
        await host.must(["kill", `-${name}`, String(pidOf())]);
        // `nsenter` is stopped together with its child.
        if (name !== "STOP") child.kill("SIGCONT");
      },
      isFrozen: () => /^State:\tT/m.test(readFileSync(own("status"), "utf8")),
      holds: () => heldBy(own),
    };
  };
  const agent = processOf(() => Number(readFileSync(host.view(pidFile), "utf8")));
  return {
    get pid() {
      return agent.pid;
    },
    signal: agent.signal,
    isFrozen: agent.isFrozen,
    holds: agent.holds,
    // The call server logs it when it starts; the last one counts.
    server: processOf(() => Number([...readLog().matchAll(SERVES)].at(-1)?.[1])),
    served,
    async hasServed(count) {
      await pollUntil(() => served().length >= count, `the agent to log ${count} calls`);
      return served();
    },
    log: readLog,
    ended: child.exited,
  };
}

/** The garbage collector's threads start and end at any time; the engine keeps the end of their long names. */
const COLLECTOR = "ollector Thread";

/** Empty if the thread has ended meanwhile. */
function nameOf(thread: string): string {
  const file = `${thread}/comm`;
  return existsSync(file) ? readFileSync(file, "utf8").trim() : "";
}

function heldBy(own: (path: string) => string): Held {
  const tables = ["net/tcp", "net/tcp6"].map((path) => readFileSync(own(path), "utf8")).join("");
  const targets = readdirSync(own("fd")).map((descriptor) => targetOf(own(`fd/${descriptor}`)));
  const isConnection = (target: string) => {
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
    return inode !== undefined && tables.includes(` ${inode} `);
  };
  const connections = targets.filter(isConnection).length;
  const threads = readdirSync(own("task")).filter((thread) => nameOf(own(`task/${thread}`)) !== COLLECTOR);
  return { descriptors: targets.length - connections, connections, threads: threads.length };
}

/** "" if the descriptor was closed meanwhile. */
function targetOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
