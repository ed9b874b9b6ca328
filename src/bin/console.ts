/** The console of a cluster: one process, which may do nothing that its readers may not. */
import { runConsole } from "../console/console-process.ts";
import { loadPage } from "../console/page-bundle.ts";
import { openDatastore } from "../datastore/open.ts";
import { SYSTEM_CLOCK } from "../datastore/replica/clock.ts";
import { watchOver } from "../health/watchdog.ts";
import { identity } from "../identity.ts";
import { openKubeClient } from "../kube/client.ts";
import { quoted } from "../quote.ts";
import {
  ALERTS_VARIABLE,
  CONSOLE_HEALTH_PATH,
  CONSOLE_HEALTH_PORT,
  CONSOLE_PORT,
  CONSOLE_TLS_MOUNT,
} from "../release/workloads/names.ts";
import { SYSTEM_TIMERS } from "../timers.ts";
import { VERSION } from "../version.ts";
import { logOf, print } from "./program-output.ts";
import { removeUntrustedVariables } from "./trusted-environment.ts";
import { STOP_SIGNALS } from "./write-and-exit.ts";

const { log, warn } = logOf(identity.console);

export async function run(args: readonly string[]): Promise<number> {
  const [first, ...others] = args;
  if (first === "-v" && others.length === 0) return print(`${identity.console} ${VERSION}`);
  if ((first === "-h" || first === "--help") && others.length === 0) return print(usage());
  if (first !== undefined) {
    console.error(`${identity.console}: unknown argument ${quoted(first)}\n\n${usage()}`);
    return 2;
  }
  // The executable starts with little JIT compilation, which suits the plugins; a long-running process benefits from more.
  Bun.unsafe.setJITPolicy(1);
  // No proxy is shown the token of a reader.
  const environment = removeUntrustedVariables();
  const watch = watchOver({ warn });
  const stop = new AbortController();
  for (const name of STOP_SIGNALS) process.on(name, () => stop.abort());
  const now = () => new Date();
  const means = { environment, warn, now, elapsed: () => performance.now(), program: identity.console };
  try {
    await runConsole({
      ...{ environment, log, now, signal: stop.signal, clock: SYSTEM_CLOCK, timers: SYSTEM_TIMERS },
      page: await loadPage(),
      openClient: (access) => openKubeClient(access, means),
      openDatastore: (settings) => openDatastore(settings, { environment, warn }),
    });
  } finally {
    watch.end();
  }
  return 0;
}

function usage(): string {
  const { console: program, title, adminTool } = identity;
  return `Usage: ${program} [-v | -h]

The console of ${title}: a web page with health, flows and addresses of the cluster. Readers log in with a token of Kubernetes and see
what that may list; the console itself needs no rights. On one host: ${adminTool} console

Environment:
  CONSOLE_PORT      where to serve the page by HTTPS (default ${CONSOLE_PORT})
  TLS_CERT_FILE     its certificate (default ${CONSOLE_TLS_MOUNT}/tls.crt), read again when it changes; the names and
                    addresses in it are those that the console answers to, besides localhost
  TLS_KEY_FILE      the key of the certificate (default ${CONSOLE_TLS_MOUNT}/tls.key)
  HEALTH_PORT       where to serve ${CONSOLE_HEALTH_PATH} by HTTP (default ${CONSOLE_HEALTH_PORT})
  KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT
                    the Kubernetes API, as every pod has it; its certificate authority is that of the pod's account
  ${ALERTS_VARIABLE}    the Service of a Prometheus, NAMESPACE/SERVICE:PORT: the page shows its alerts of this product to readers
                    who may get services/proxy there (default: none)
  DATASTORE_TYPE, ETCD_ENDPOINTS and the other variables of ${adminTool} select the datastore

  -v           print the version
  -h, --help   print this help`;
}
