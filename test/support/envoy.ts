/** Real Envoy, in a network namespace or in the test's own. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { partIfBuilt } from "../parts/build.ts";
import { startDaemon } from "./daemon.ts";
import { type EnvoyPlan, envoyConfig } from "./envoy-config.ts";

export interface Envoy {
  /** Of the process, for its memory. */
  readonly pid: number;
  /** The value of one of its counters or gauges, such as `http.http_8080.downstream_rq_total`. */
  statistic(name: string): Promise<number>;
  log(): string;
  stop(): Promise<void>;
}

interface EnvoyStart extends Omit<EnvoyPlan, "admin"> {
  /** The path of its network namespace; absent: the one of the test. */
  readonly netns?: string;
  /** Its configuration, log and sockets. Not below a path of more than about 80 characters: sockets are there. */
  readonly directory: string;
  /** Threads that serve requests. Default: 1. */
  readonly concurrency?: number;
}

/** Why there is none here; undefined if there is. */
export function envoyProblem(): string | undefined {
  const built = partIfBuilt("envoy");
  return "missing" in built ? built.missing : undefined;
}

export function envoyProgram(): string {
  const built = partIfBuilt("envoy");
  if ("missing" in built) throw new Error(built.missing);
  return built.path;
}

/** Starts it and waits until it serves. It ends with the test run. */
export async function startEnvoy(start: EnvoyStart): Promise<Envoy> {
  const { netns, directory, concurrency = 1, ...plan } = start;
  const config = join(directory, "envoy.json");
  const admin = join(directory, "envoy-admin.sock");
  writeFileSync(config, envoyConfig({ ...plan, admin }));
  const ask = async (path: string) => {
    const response = await fetch(`http://envoy${path}`, { unix: admin });
    const text = await response.text();
    if (!response.ok) throw new Error(`Envoy answers ${path} with ${response.status}: ${text}`);
    return text;
  };
  const daemon = startDaemon({
    command: [...(netns === undefined ? [] : ["nsenter", `--net=${netns}`]), ...envoyCommand(config, concurrency)],
    logFile: join(directory, "envoy.log"),
    ready: () => ask("/ready"),
  });
  try {
    await daemon.ready();
  } catch (error) {
    await daemon.kill();
    throw error;
  }
  return {
    pid: daemon.pid,
    async statistic(name) {
      const line = await ask(`/stats?filter=^${name}$`);
      return Number(/: (\d+)$/m.exec(line)?.[1] ?? "0");
    },
    log: daemon.log,
    stop: daemon.kill,
  };
}

function envoyCommand(config: string, concurrency: number): readonly string[] {
  // Without hot restart several may run on one machine.
  const settings = ["--disable-hot-restart", "--log-level", "warning", "--concurrency", String(concurrency)];
  return [envoyProgram(), "--config-path", config, ...settings];
}
