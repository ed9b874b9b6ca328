/**
 * `make demo`: shows the product on a private host, or on a cluster of them, that is removed afterwards.
 *   bun scripts/demo.ts --datastore embedded|etcd
 *   bun scripts/demo.ts --cluster --datastore kubernetes|etcd
 * With `--console` it shows the console of that host or cluster, with live traffic, until Ctrl-C.
 * However it ends (success, failure, Ctrl-C, even SIGKILL), the private hosts and
 * everything in them are removed.
 */
import { parseArgs } from "node:util";
import { identity } from "../src/identity.ts";
import { INSTALLED_STORES } from "../test/support/operator-install.ts";
import type { StoreKind } from "../test/support/test-store.ts";
import { missingForCluster } from "./cluster/requirements.ts";
import { storeNamed } from "./cluster/wanted.ts";
import { superviseClusterDemo } from "./demo/cluster/supervise.ts";
import { showConsole } from "./demo/console.ts";
import { openEnvironment } from "./demo/environment.ts";
import { type Output, openOutput } from "./demo/output.ts";
import { missingRequirements } from "./demo/requirements.ts";
import { runSteps } from "./demo/steps.ts";

const STORES: readonly StoreKind[] = ["embedded", "etcd"];
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

const { values } = parseArgs({
  options: {
    cluster: { type: "boolean", default: false },
    console: { type: "boolean", default: false },
    datastore: { type: "string", default: "" },
  },
});
process.exit(await (values.cluster ? demoOfCluster(values.datastore) : demo(values.datastore)));

async function demoOfCluster(wanted: string): Promise<number> {
  const store = storeNamed(wanted, INSTALLED_STORES);
  if (store === undefined) return EXIT_USAGE;
  return isMissing(await missingForCluster("make demo CLUSTER=1"))
    ? 1
    : superviseClusterDemo(store, values.console ? "console" : "steps");
}

async function demo(wanted: string): Promise<number> {
  const store = storeNamed(wanted, STORES);
  if (store === undefined) return EXIT_USAGE;
  if (isMissing(await missingRequirements(store))) return 1;
  const stop = stopOnSignals();
  return runOn(store, openOutput(stop), stop);
}

function isMissing(missing: readonly string[]): boolean {
  if (missing.length > 0) console.error(`The demo cannot run: ${missing.join("; ")}`);
  return missing.length > 0;
}

async function runOn(store: StoreKind, output: Output, stop: AbortSignal): Promise<number> {
  const started = performance.now();
  output.title(`${identity.title} demo on the datastore "${store}"`);
  const demo = await output.step("Private host", () => openEnvironment(store));
  try {
    const shown = values.console ? showConsole(demo, output, stop) : runSteps(demo, output);
    await Promise.race([shown, rejectOn(stop)]);
  } catch (failure) {
    if (!stop.aborted) console.error(failure);
  } finally {
    await demo.close();
  }
  if (stop.aborted) {
    output.end("Interrupted; the private host and everything in it were removed");
    return EXIT_INTERRUPTED;
  }
  if (output.failed()) return 1;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  output.end(`Everything was cleaned up: no link, route, address, endpoint or process is left (${seconds} s)`);
  return 0;
}

function stopOnSignals(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => controller.abort());
  return controller.signal;
}

function rejectOn(stop: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  stop.addEventListener("abort", () => reject(stop.reason), { once: true });
  return promise;
}
