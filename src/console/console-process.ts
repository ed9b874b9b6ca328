/**
 * The console of a cluster. It has no rights of its own: what a reader asks, it asks with the reader's token. In a cluster with etcd
 * it reads the datastore itself, and shows what the API server lets the reader see.
 *
 *   certificate (server/certificate-files.ts) ─> server/console-server.ts ─> source/cluster-source.ts ─> API server, etcd
 */
import { chooseDatastore, environmentLayer } from "../admin/datastore/choice.ts";
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import type { KubeAccess } from "../config/kube-access.ts";
import { portIn } from "../config/port-variable.ts";
import type { Datastore } from "../datastore/datastore.ts";
import type { Clock } from "../datastore/replica/clock.ts";
import { PluginError } from "../errors.ts";
import { LocalServer } from "../health/local-server.ts";
import { identity } from "../identity.ts";
import type { KubeClient, KubeLines } from "../kube/api.ts";
import { serverFromEnvironment } from "../kube/server-from-environment.ts";
import { onceEach } from "../log/once-each.ts";
import { OBJECT_NAME } from "../model/installation/console.ts";
import { quoted } from "../quote.ts";
import {
  ALERTS_VARIABLE,
  CONSOLE_HEALTH_PATH,
  CONSOLE_HEALTH_PORT,
  CONSOLE_PORT,
  CONSOLE_TLS_MOUNT,
} from "../release/workloads/names.ts";
import type { Timers } from "../timers.ts";
import { VERSION } from "../version.ts";
import { onAnyAddress } from "../web/web-listener.ts";
import { CertificateFiles, type ServedCertificate } from "./server/certificate-files.ts";
import { ConsoleServer } from "./server/console-server.ts";
import type { PageFiles } from "./server/page-files.ts";
import { LOOPBACK_NAMES } from "./server/request-checks.ts";
import type { AlertsService } from "./source/ask-prometheus.ts";
import { clusterSources } from "./source/cluster-source.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface ConsoleProcess {
  readonly environment: Environment;
  readonly page: PageFiles;
  /** `access` has the token of a reader. */
  readonly openClient: (access: KubeAccess) => Promise<KubeClient & KubeLines>;
  readonly openDatastore: (settings: DatastoreSettings) => Promise<Datastore>;
  readonly signal: AbortSignal;
  readonly now: () => Date;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

/** Files of a Secret are replaced within a minute or two. */
const COMPARE_MILLISECONDS = 10_000;

/** Resolves when the signal is aborted and nothing is left open. */
export async function runConsole(means: ConsoleProcess): Promise<void> {
  const { environment, signal, clock, log } = means;
  const settings = consoleSettings(environment);
  const problems = onceEach((message) => log(message, "WARNING"));
  const files = new CertificateFiles(settings.certificateFile, settings.keyFile);
  // Without one it cannot begin; later it goes on with the one that it has.
  let served = await files.read();
  const etcd = settings.datastore.kind === "etcd" ? await means.openDatastore(settings.datastore) : undefined;
  const server = serverOf(means, settings, { etcd, hosts: () => served.names });
  const health = new LocalServer((path) => (path === CONSOLE_HEALTH_PATH ? HEALTHY : undefined), problems.report);
  const serve = async (certificate: ServedCertificate) => {
    const { cert, key } = certificate;
    await onAnyAddress((host) => server.listen(host, settings.port, { cert, key }));
    served = certificate;
    log(`Serving the console at port ${settings.port} as ${[...certificate.names].join(", ")}`, "INFO");
  };
  try {
    await serve(served);
    while (!signal.aborted) {
      health.listen({ host: ALL_ADDRESSES, port: settings.healthPort });
      await clock.wait(COMPARE_MILLISECONDS, signal);
      try {
        const certificate = await files.read();
        if (certificate !== served) await serve(certificate);
        problems.forget();
      } catch (failure) {
        problems.report(`${failure instanceof Error ? failure.message : failure}`);
      }
    }
  } finally {
    health.close();
    server.close();
    await etcd?.close();
  }
}

const ALL_ADDRESSES = "";
const HEALTHY = { status: 200, text: "ok" } as const;

interface ServerNeeds {
  readonly etcd: Datastore | undefined;
  readonly hosts: () => ReadonlySet<string>;
}

function serverOf(
  { page, openClient, now, clock, timers, log }: ConsoleProcess,
  { apiRoot, alerts }: ConsoleSettings,
  { etcd, hosts }: ServerNeeds,
): ConsoleServer {
  const openSource = clusterSources({
    ...{ version: VERSION, server: { apiRoot }, openClient, now, uuid: () => crypto.randomUUID() },
    wait: (milliseconds) => clock.wait(milliseconds, NEVER),
    ...(etcd === undefined ? {} : { etcd }),
    ...(alerts === undefined ? {} : { alerts, timers }),
  });
  return new ConsoleServer({
    ...{ page, openSource, clock, timers, log, now: () => now().getTime() },
    about: { product: identity.title, version: VERSION, mode: "cluster", writable: true },
    cookie: () => `__Host-${identity.console}`,
    // Of any port: a Service, an Ingress and `kubectl port-forward` have others than this process.
    isOwnHost: (name) => LOOPBACK_NAMES.has(name) || hosts().has(name),
  });
}

const NEVER = new AbortController().signal;

export interface ConsoleSettings {
  readonly port: number;
  readonly healthPort: number;
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly apiRoot: string;
  /** Absent: no alerts are shown. */
  readonly alerts?: AlertsService;
  readonly datastore: Extract<DatastoreSettings, { kind: "etcd" | "orchestrator" }>;
}

/** Throws for a variable that is missing or cannot be used. */
export function consoleSettings(environment: Environment): ConsoleSettings {
  const apiRoot = serverFromEnvironment(environment);
  if (apiRoot === undefined)
    throw new PluginError("config-invalid", "Cannot serve the console: there is no Kubernetes API in the environment", {
      details: `run it in a pod, or set KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT; on one host use "${identity.adminTool} console"`,
    });
  const { settings: datastore } = chooseDatastore([environmentLayer(environment)]);
  if (datastore.kind === "embedded")
    throw new PluginError("config-invalid", "Cannot serve the console of a cluster with the datastore of one host", {
      details: `set DATASTORE_TYPE to etcdv3 or kubernetes, or use "${identity.adminTool} console" on the host`,
    });
  return {
    port: portIn(environment, "CONSOLE_PORT", CONSOLE_PORT),
    healthPort: portIn(environment, "HEALTH_PORT", CONSOLE_HEALTH_PORT),
    certificateFile: environment["TLS_CERT_FILE"] || `${CONSOLE_TLS_MOUNT}/tls.crt`,
    keyFile: environment["TLS_KEY_FILE"] || `${CONSOLE_TLS_MOUNT}/tls.key`,
    ...{ apiRoot, datastore },
    ...alertsIn(environment[ALERTS_VARIABLE] ?? ""),
  };
}

function alertsIn(text: string): Pick<ConsoleSettings, "alerts"> {
  if (text === "") return {};
  const [, namespace = "", service = "", digits = ""] = /^([^/]*)\/([^:]*):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  const isNamed = [namespace, service].every((name) => OBJECT_NAME.test(name));
  if (isNamed && port >= 1 && port <= 65_535) return { alerts: { namespace, service, port } };
  throw new PluginError(
    "config-invalid",
    `Cannot serve the console: ${ALERTS_VARIABLE} ${quoted(text)} is not a Service`,
    {
      details: "use NAMESPACE/SERVICE:PORT of a Prometheus, for example monitoring/prometheus:9090",
    },
  );
}
