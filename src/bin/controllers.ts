/** The controllers: one process for the whole cluster; further ones are warm standbys. */
import { hostname } from "node:os";
import { chooseDatastore, environmentLayer } from "../admin/datastore/choice.ts";
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import { portIn } from "../config/port-variable.ts";
import { ControllersProcess } from "../controllers/controllers-process.ts";
import { livenessOf } from "../controllers/report.ts";
import { ReportServer } from "../controllers/serve-report.ts";
import { controllerSettings } from "../controllers/settings.ts";
import { openDatastore } from "../datastore/open.ts";
import { SYSTEM_CLOCK } from "../datastore/replica/clock.ts";
import { PluginError } from "../errors.ts";
import { type Watch, watchOver } from "../health/watchdog.ts";
import { identity } from "../identity.ts";
import { openKubeClient } from "../kube/client.ts";
import { quoted } from "../quote.ts";
import { FLOWS_API_PORT, FLOWS_LINK_PORT } from "../release/workloads/names.ts";
import { VERSION } from "../version.ts";
import { logOf, print } from "./program-output.ts";
import { STOP_SIGNALS } from "./write-and-exit.ts";

const { log, warn } = logOf(identity.controllers);

export async function run(args: readonly string[]): Promise<number> {
  const [first, ...others] = args;
  if (first === "-v" && others.length === 0) return print(`${identity.controllers} ${VERSION}`);
  if ((first === "-h" || first === "--help") && others.length === 0) return print(usage());
  if (first !== undefined) {
    console.error(`${identity.controllers}: unknown argument ${quoted(first)}\n\n${usage()}`);
    return 2;
  }
  const watch = watchOver({ warn });
  const stop = new AbortController();
  for (const name of STOP_SIGNALS) process.on(name, () => stop.abort());
  try {
    await runUntil(stop.signal, watch);
  } finally {
    watch.end();
  }
  return 0;
}

async function runUntil(signal: AbortSignal, watch: Watch): Promise<void> {
  Bun.unsafe.setJITPolicy(1);
  const environment = process.env;
  const elapsed = () => performance.now();
  const { wait } = SYSTEM_CLOCK;
  const settings = storeSettings(environment);
  const client = await openKubeClient(kubeAccessIn(environment), {
    environment,
    warn,
    now: () => new Date(),
    elapsed,
    program: identity.controllers,
  });
  const store = await openDatastore(settings, { environment, warn });
  const isEtcd = settings.kind === "etcd";
  const controllers = new ControllersProcess({
    client,
    store,
    isEtcd,
    environment,
    identity: `${environment["POD_NAME"] ?? hostname()}_${crypto.randomUUID()}`,
    now: () => new Date(),
    elapsed,
    wait,
    random: Math.random,
    signal,
    log,
    started: ({ running }) => server.listen(running),
  });
  const server = new ReportServer(() => controllers.report, portIn(environment, "HEALTH_PORT", HEALTH_PORT), warn);
  server.listen(controllerSettings(environment, undefined, { isEtcd }).running);
  watch.ask(() => livenessOf(controllers.report));
  const listening = setInterval(() => server.listenAgain(), LISTEN_AGAIN_MILLISECONDS);
  try {
    await controllers.run();
  } finally {
    clearInterval(listening);
    server.close();
  }
}

const HEALTH_PORT = 9095;
const LISTEN_AGAIN_MILLISECONDS = 5_000;

/** Those of the admin tool's variables. */
function storeSettings(environment: Readonly<Record<string, string | undefined>>): DatastoreSettings {
  const { settings } = chooseDatastore([environmentLayer(environment)]);
  if (settings.kind !== "embedded") return settings;
  throw new PluginError(
    "config-invalid",
    `Cannot run with the embedded datastore, which is of one host: there is no cluster to keep`,
    { details: "set DATASTORE_TYPE to etcdv3 or kubernetes" },
  );
}

/** Without a kubeconfig: the account of the pod. */
function kubeAccessIn({ KUBECONFIG }: Readonly<Record<string, string | undefined>>) {
  const kubeconfigs = (KUBECONFIG ?? "").split(":").filter((file) => file !== "");
  return kubeconfigs.length === 0 ? {} : { kubeconfigs };
}

function usage(): string {
  const { controllers, title, adminTool } = identity;
  return `Usage: ${controllers} [-v | -h]

The controllers of ${title}: keep the datastore in sync with the cluster. Several may run: one of them writes.

Environment:
  ENABLED_CONTROLLERS   policy, profile (or namespace, serviceaccount), workloadendpoint, node; takes precedence
                        over the KubeControllersConfiguration "default"
  RECONCILER_PERIOD     how often everything is compared, for example 5m
  SYNC_NODE_LABELS      copy the labels of nodes: enabled or disabled
  AUTO_HOST_ENDPOINTS   keep a host endpoint of each node: enabled or disabled
  HEALTH_ENABLED        serve /liveness and /readiness: true or false
  HEALTH_PORT           where to serve them (default ${HEALTH_PORT})
  FLOWS                 serve the API of flows: Enabled or Disabled (default)
  FLOWS_API_PORT        where the API server reaches it (default ${FLOWS_API_PORT})
  FLOWS_LINK_PORT       where node agents open their links (default ${FLOWS_LINK_PORT})
  CONSOLE               keep the certificate of ${identity.console}: Enabled or Disabled (default)
  KUBECONFIG            access to the Kubernetes API; by default the account of the pod
  POD_NAMESPACE         namespace of the Lease (default kube-system)
  DATASTORE_TYPE, ETCD_ENDPOINTS and the other variables of ${adminTool} select the datastore

  -v           print the version
  -h, --help   print this help`;
}
