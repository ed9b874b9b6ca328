/**
 * `make demo`: the product at work, on a private host that is gone afterwards.
 *   bun scripts/demo.ts --datastore embedded|etcd
 * Whatever ends it (its end, a failure, Ctrl-C, even SIGKILL), the private host
 * goes with it, and everything inside.
 */
import { parseArgs } from "node:util";
import { identity } from "../src/identity.ts";
import type { StoreKind } from "../test/support/test-store.ts";
import { missingMeans } from "./demo/means.ts";
import { play } from "./demo/play.ts";
import { openScreen, type Screen } from "./demo/screen.ts";
import { openStage } from "./demo/stage.ts";

const STORES: readonly StoreKind[] = ["embedded", "etcd"];
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

const { values } = parseArgs({ options: { datastore: { type: "string", default: "embedded" } } });
process.exit(await demo(values.datastore));

async function demo(wanted: string): Promise<number> {
  const store = STORES.find((kind) => kind === wanted);
  if (store === undefined) {
    console.error(`DATASTORE=${wanted} is not known; there are: ${STORES.join(", ")}`);
    return EXIT_USAGE;
  }
  const missing = await missingMeans(store);
  if (missing.length > 0) {
    console.error(`The demo cannot run: ${missing.join("; ")}`);
    return 1;
  }
  const stop = stopOnSignals();
  return perform(store, openScreen(stop), stop);
}

async function perform(store: StoreKind, screen: Screen, stop: AbortSignal): Promise<number> {
  const started = performance.now();
  screen.title(`${identity.title} demo on the datastore "${store}"`);
  const stage = await screen.step("A host of its own", () => openStage(store));
  try {
    await Promise.race([play(stage, screen), rejectOn(stop)]);
  } catch (failure) {
    if (!stop.aborted) console.error(failure);
  } finally {
    await stage.close();
  }
  if (stop.aborted) {
    screen.end("Stopped; the private host is gone, and everything in it");
    return EXIT_INTERRUPTED;
  }
  if (screen.failed()) return 1;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  screen.end(`Everything was given back: no link, route, address, endpoint or process is left (${seconds} s)`);
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
