/** The sidecar: decides, beside the mesh's proxy in a pod, which requests the policies of the pod allow. */

import { RequestJudge } from "../alp/judge/request-judge.ts";
import { AgentLink } from "../alp/sidecar/agent-link.ts";
import { authorizationHandlers } from "../alp/sidecar/authorizer.ts";
import { DecisionCounters } from "../alp/sidecar/decision-counters.ts";
import { proxyGone } from "../alp/sidecar/drain.ts";
import { SidecarLog, type WriteLine } from "../alp/sidecar/sidecar-log.ts";
import { LIVE, metricsText, readinessOf } from "../alp/sidecar/sidecar-report.ts";
import { SYSTEM_CLOCK } from "../datastore/replica/clock.ts";
import { type GrpcServer, serveGrpc } from "../grpc/server.ts";
import { LocalServer } from "../health/local-server.ts";
import { healthPages, metricsPages } from "../health/pages.ts";
import { identity } from "../identity.ts";
import { formatLine } from "../log/line.ts";
import { aborted } from "../timers.ts";
import { VERSION } from "../version.ts";
import { DEFAULT_OPTIONS, readSidecarArguments, type SidecarOptions } from "./sidecar-arguments.ts";
import { STOP_SIGNALS } from "./write-and-exit.ts";

const { wait } = SYSTEM_CLOCK;
const elapsed = () => performance.now();
/** The proxy may run as any user; only the containers that mount the volume see the socket. */
const SOCKET_MODE = 0o666;

export async function run(args: readonly string[]): Promise<number> {
  const request = readSidecarArguments(args);
  switch (request.kind) {
    case "version":
      console.log(`${identity.sidecar} ${VERSION}`);
      return 0;
    case "help":
      console.log(usage());
      return 0;
    case "wrong":
      console.error(`${identity.sidecar}: ${request.problem}\nTry "${identity.sidecar} --help".`);
      return 2;
    case "run":
      await runUntilStopped(request.options);
      return 0;
  }
}

async function runUntilStopped(options: SidecarOptions): Promise<void> {
  // The executable starts with little JIT compilation, which suits the plugins; a long-running process benefits from more.
  Bun.unsafe.setJITPolicy(1);
  const log = new SidecarLog(options.logLevel, writeLine, elapsed);
  const judge = new RequestJudge(options.trustDomain);
  const counters = new DecisionCounters();
  const link = new AgentLink({ path: options.agent, version: VERSION, judge, log, elapsed, wait });
  const stop = stopSignal();
  const servers: GrpcServer[] = [];
  const connections = () => servers.reduce((sum, server) => sum + server.connections, 0);
  // First: a second sidecar that cannot have the port must not take the socket either.
  const closeHealth = serveHealth(options, () => {
    const since = link.disconnectedSince;
    return {
      revision: judge.revision,
      updates: link.updates,
      ...(since === undefined ? {} : { disconnectedSeconds: (elapsed() - since) / 1000 }),
      ...(link.droppedBecause === undefined ? {} : { droppedBecause: link.droppedBecause }),
      isStopping: stop.aborted,
      decisions: counters.decisions,
      decisionSeconds: counters.milliseconds / 1000,
      proxyConnections: connections(),
      residentBytes: process.memoryUsage.rss(),
    };
  });
  const handlers = authorizationHandlers({ judge, counters, log, elapsed });
  for (const path of [options.listen, ...(options.alsoListen === undefined ? [] : [options.alsoListen])]) {
    servers.push(await serveGrpc({ path, mode: SOCKET_MODE }, handlers));
  }
  log.info("Started", { version: VERSION, listen: options.listen, trustDomain: options.trustDomain });
  const linked = new AbortController();
  const following = link.run(linked.signal);
  await aborted(stop);
  log.info("Told to stop: decides until the proxy has gone");
  await proxyGone({ connections, wait: (milliseconds) => wait(milliseconds, linked.signal) });
  linked.abort();
  await following;
  for (const server of servers) await server.close();
  closeHealth();
}

/** Throws an error if the port is in use. */
function serveHealth(
  { healthPort: port }: SidecarOptions,
  report: () => Parameters<typeof metricsText>[0],
): () => void {
  if (port === 0) return () => {};
  const health = healthPages({ liveness: () => LIVE, readiness: () => readinessOf(report()) });
  const metrics = metricsPages(() => metricsText(report()));
  const server = new LocalServer(
    (path) => health(path) ?? metrics(path),
    (problem) => {
      throw new Error(`${problem} Choose another port with --health-port=PORT; 0 for none`);
    },
  );
  server.listen({ host: "", port, isExclusive: true });
  return () => server.close();
}

function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const name of STOP_SIGNALS) process.on(name, () => stop.abort());
  return stop.signal;
}

const writeLine: WriteLine = (level, message, fields) => {
  const entry = { time: new Date(), level, processId: process.pid, component: identity.sidecar, message, fields };
  process.stderr.write(formatLine(entry));
};

function usage(): string {
  const { sidecar, title } = identity;
  const { agent, listen, trustDomain, healthPort, logLevel } = DEFAULT_OPTIONS;
  return `Usage: ${sidecar} [OPTION]... | -v | -h

The sidecar of ${title}: runs beside the proxy of a service mesh in a pod, and decides for it which requests the network
policies allow, by method, path, address and service account. The node agent sends the policies; before that, and
whenever a request cannot be decided, it is denied.

  --agent=PATH            socket of the node agent (default ${agent})
  --listen=PATH           socket that the proxy asks (default ${listen})
  --also-listen=PATH      second socket, while a mesh still has the filter of an earlier release
  --trust-domain=NAME     trust domain of the clients' certificates; * for every one (default ${trustDomain})
  --health-port=PORT      serves /liveness, /readiness and /metrics; 0 for none (default ${healthPort})
  --log-level=LEVEL       minimum severity to log: ERROR, WARNING, INFO, DEBUG (default ${logLevel}); DEBUG logs every
                          denied request with the policy and the rule
  -v, --version           print the version
  -h, --help              print this help`;
}
