/** The operator: one process for the whole cluster; further ones are warm standbys. */
import { hostname } from "node:os";
import { portIn } from "../config/port-variable.ts";
import { SYSTEM_CLOCK } from "../datastore/replica/clock.ts";
import { LocalServer } from "../health/local-server.ts";
import { healthPages, metricsPages } from "../health/pages.ts";
import { type Watch, watchOver } from "../health/watchdog.ts";
import { identity } from "../identity.ts";
import { openKubeClient } from "../kube/client.ts";
import { livenessOf, metricsText, readinessOf } from "../operator/health-report.ts";
import { openInstallationDatastore } from "../operator/installation-datastore.ts";
import { OperatorProcess } from "../operator/operator-process.ts";
import { deleteInstallations } from "../operator/request-deletion.ts";
import { quoted } from "../quote.ts";
import { OPERATOR_HEALTH_PORT } from "../release/workloads/names.ts";
import { VERSION } from "../version.ts";
import { logOf, print } from "./program-output.ts";
import { STOP_SIGNALS } from "./write-and-exit.ts";

const METRICS_PORT = 9097;
const ALL_ADDRESSES = "";
const { log, warn } = logOf(identity.operator);
const DELETE_INSTALLATION = "delete-installation";

type Environment = Readonly<Record<string, string | undefined>>;

export async function run(args: readonly string[]): Promise<number> {
  const [first, ...others] = args;
  if (first === "-v" && others.length === 0) return print(`${identity.operator} ${VERSION}`);
  if ((first === "-h" || first === "--help") && others.length === 0) return print(usage());
  const stop = new AbortController();
  for (const name of STOP_SIGNALS) process.on(name, () => stop.abort());
  if (first === DELETE_INSTALLATION && others.length === 0) return deleteUntil(stop.signal, process.env);
  if (first !== undefined) {
    console.error(`${identity.operator}: unknown argument ${quoted(first)}\n\n${usage()}`);
    return 2;
  }
  const watch = watchOver({ warn });
  try {
    await runUntil(stop.signal, process.env, watch);
  } finally {
    watch.end();
  }
  return 0;
}

async function runUntil(signal: AbortSignal, environment: Environment, watch: Watch): Promise<void> {
  Bun.unsafe.setJITPolicy(1);
  const elapsed = () => performance.now();
  const now = () => new Date();
  const { wait } = SYSTEM_CLOCK;
  const ports = {
    health: portIn(environment, "HEALTH_PORT", OPERATOR_HEALTH_PORT),
    metrics: portIn(environment, "METRICS_PORT", METRICS_PORT),
  };
  const program = identity.operator;
  const client = await openKubeClient(kubeAccessIn(environment), { environment, warn, now, elapsed, program });
  const operator = new OperatorProcess({
    client,
    environment,
    openDatastore: openInstallationDatastore({ client, environment, warn }),
    identity: `${environment["POD_NAME"] ?? hostname()}_${crypto.randomUUID()}`,
    signal,
    now,
    elapsed,
    wait,
    random: Math.random,
    newName: () => crypto.randomUUID(),
    log,
  });
  const report = () => operator.report;
  const pages = { liveness: () => livenessOf(report()), readiness: () => readinessOf(report()) };
  const health = new LocalServer(healthPages(pages), warn);
  const metrics = new LocalServer(
    metricsPages(() => metricsText(report())),
    warn,
  );
  health.listen({ host: ALL_ADDRESSES, port: ports.health });
  metrics.listen({ host: ALL_ADDRESSES, port: ports.metrics });
  watch.ask(pages.liveness);
  try {
    await operator.run();
  } finally {
    health.close();
    metrics.close();
    await client.close();
  }
}

/** For the hook of the chart: afterwards there is no operator that could remove the network. */
async function deleteUntil(signal: AbortSignal, environment: Environment): Promise<number> {
  const client = await openKubeClient(kubeAccessIn(environment), {
    environment,
    warn,
    now: () => new Date(),
    elapsed: () => performance.now(),
    program: identity.operator,
  });
  try {
    const report = (message: string) => log(message, "INFO");
    const isGone = await deleteInstallations({ client, wait: SYSTEM_CLOCK.wait, signal, log: report });
    if (isGone) log("the network is removed", "INFO");
    return isGone ? 0 : 1;
  } finally {
    await client.close();
  }
}

/** Without a kubeconfig: the account of the pod. */
function kubeAccessIn({ KUBECONFIG }: Environment) {
  const kubeconfigs = (KUBECONFIG ?? "").split(":").filter((file) => file !== "");
  return kubeconfigs.length === 0 ? {} : { kubeconfigs };
}

function usage(): string {
  const { operator, title, systemNamespace } = identity;
  return `Usage: ${operator} [${DELETE_INSTALLATION} | -v | -h]

The operator of ${title}: installs and changes the network as the Installation "default" says. Several may run: one of
them writes. The components are in namespace ${systemNamespace}.

Environment:
  KUBECONFIG      access to the Kubernetes API; by default the account of the pod
  POD_NAMESPACE   namespace of the operator and of its Lease (default ${operator})
  HEALTH_PORT     where to serve /liveness and /readiness (default ${OPERATOR_HEALTH_PORT})
  METRICS_PORT    where to serve /metrics (default ${METRICS_PORT})

  ${DELETE_INSTALLATION}   delete the Installation and wait until the running operator has removed the network
  -v                    print the version
  -h, --help            print this help`;
}
