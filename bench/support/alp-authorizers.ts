/** What decides the requests in the benchmark of application layer policy, each on a unix socket of its own. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Daemon, startDaemon } from "../../test/support/daemon.ts";
import { startFakeAgent, WELCOME } from "../../test/support/fake-agent.ts";
import { startSidecar } from "../../test/support/sidecar.ts";
import { type AlpLoad, ownUpdate, peerMessages } from "./alp-load.ts";

export interface AuthorizerStart {
  /** For its sockets, files and logs. */
  readonly directory: string;
  readonly undo: AsyncDisposableStack;
}

export interface Authorizer {
  readonly name: string;
  readonly socket: string;
  readonly pid: number;
}

/** Its agent is the benchmark's: it sends the state once. */
export async function startOwnSidecar(
  load: AlpLoad,
  { healthPort, directory, undo }: AuthorizerStart & { readonly healthPort: number },
): Promise<Authorizer> {
  const [agent, listen] = [join(directory, "agent.sock"), join(directory, "own.sock")];
  const fake = undo.use(startFakeAgent(agent, [WELCOME, ownUpdate(load)]));
  const sidecar = await startSidecar({ directory, agent, listen, healthPort });
  undo.defer(sidecar.kill);
  await fake.applied(1);
  return { name: OWN, socket: listen, pid: sidecar.pid };
}

/** `programs`: the directory of Calico's sidecar and of its feeder, which takes the place of Felix. */
export async function startPeerSidecar(
  load: AlpLoad,
  { programs, directory, undo }: AuthorizerStart & { readonly programs: string },
): Promise<Authorizer> {
  const [felix, listen] = [join(directory, "felix.sock"), join(directory, "peer.sock")];
  const messages = join(directory, "messages");
  await Bun.write(
    messages,
    `${peerMessages(load)
      .map((each) => JSON.stringify(each))
      .join("\n")}\n`,
  );
  const feed = ["sh", "-c", 'exec "$0" -listen "$1" < "$2"', join(programs, "feeder"), felix, messages];
  await startOnSocket(feed, felix, { directory, undo });
  const command = [join(programs, "dikastes"), "-listen", listen, "-dial", felix];
  const { pid } = await startOnSocket(command, listen, { directory, undo });
  return { name: PEER, socket: listen, pid };
}

/** The lower bound of an authorizer on this runtime: it decides nothing. */
export async function startIdleAuthorizer({ directory, undo }: AuthorizerStart): Promise<Authorizer> {
  const socket = join(directory, "idle.sock");
  const command = [process.execPath, join(import.meta.dir, "alp-idle-authorizer.process.ts"), socket];
  const { pid } = await startOnSocket(command, socket, { directory, undo });
  return { name: "an authorizer that allows everything", socket, pid };
}

const OWN = "the sidecar";
export const PEER = "Calico 3.31.0";

async function startOnSocket(command: readonly string[], socket: string, { undo }: AuthorizerStart): Promise<Daemon> {
  const daemon = startDaemon({
    command,
    logFile: `${socket}.log`,
    async ready() {
      if (!existsSync(socket)) throw new Error(`no socket ${socket}`);
    },
  });
  undo.defer(daemon.kill);
  await daemon.ready();
  return daemon;
}
