/** The built sidecar, in a network namespace or in the test's own. */
import { join } from "node:path";
import { SIDECAR_ENVIRONMENT } from "../../src/alp/mesh/sidecar-parts.ts";
import { identity } from "../../src/identity.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

interface SidecarStart {
  /** The path of its network namespace; absent: the one of the test. */
  readonly netns?: string;
  /** Its log is written there. */
  readonly directory: string;
  /** The socket of the node agent. */
  readonly agent: string;
  /** The socket for Envoy. */
  readonly listen: string;
  readonly options?: readonly string[];
  /** Where its health is served. Default: 9098. */
  readonly healthPort?: number;
}

export interface Sidecar extends Daemon {
  /** The status and the text of a page, such as `/readiness`. */
  page(path: string): Promise<string>;
}

/** As in its container. */
const ENVIRONMENT = ["env", ...Object.entries(SIDECAR_ENVIRONMENT).map((variable) => variable.join("="))];
const PROGRAM = join(import.meta.dir, "../../dist/bin", identity.sidecar);

/** Starts it and waits until it responds. It ends with the test run. */
export async function startSidecar(start: SidecarStart): Promise<Sidecar> {
  const { netns, directory, agent, listen, options = [], healthPort = 9098 } = start;
  const inside = netns === undefined ? [] : ["nsenter", `--net=${netns}`];
  const page = async (path: string) => {
    const url = `http://127.0.0.1:${healthPort}${path}`;
    const command = [...inside, "curl", "-s", "-S", "-m", "5", "-w", "%{http_code}", url];
    const child = Bun.spawn(command, { stdout: "pipe", stderr: "pipe" });
    const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(errors);
    return `${output.slice(-3)} ${output.slice(0, -3)}`;
  };
  const daemon = startDaemon({
    command: [
      ...inside,
      ...ENVIRONMENT,
      PROGRAM,
      `--agent=${agent}`,
      `--listen=${listen}`,
      `--health-port=${healthPort}`,
      ...options,
    ],
    logFile: join(directory, "sidecar.log"),
    ready: () => page("/liveness"),
  });
  await daemon.ready();
  return Object.assign(daemon, { page });
}
