/** The demo of a cluster; it ends when its stdin closes (supervise.ts). Its arguments are the datastore and what is shown. */
import { join } from "node:path";
import { identity } from "../../../src/identity.ts";
import { type ClusterEnvironment, openCluster } from "../../cluster/environment.ts";
import { openOutput } from "../output.ts";
import { showClusterConsole } from "./console.ts";
import { runClusterSteps } from "./steps.ts";

const store = process.argv[2] === "etcd" ? "etcd" : "kubernetes";
void Bun.stdin.text().finally(endAtOnce);
process.exit(await show());

async function show(): Promise<number> {
  const output = openOutput(new AbortController().signal);
  const started = performance.now();
  output.title(`${identity.title} demo on a cluster of two nodes, with the datastore "${store}"`);
  let demo: ClusterEnvironment | undefined;
  try {
    const showsConsole = process.argv[3] === "console";
    demo = await openCluster(output, {
      store,
      nodes: 2,
      flows: "Enabled",
      ...(showsConsole ? { console: "Enabled" } : {}),
    });
    await (showsConsole ? showClusterConsole(demo, output) : runClusterSteps(demo, output));
  } catch (failure) {
    console.error(failure);
  } finally {
    await demo?.[Symbol.asyncDispose]();
  }
  if (output.failed()) return 1;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  output.end(`Everything was cleaned up: no host, link, route, process or file is left (${seconds} s)`);
  return 0;
}

/** The private hosts and the control plane end with this process. */
function endAtOnce(): void {
  Bun.spawn([process.execPath, join(import.meta.dir, "remove-leftovers.process.ts"), String(process.pid)], {
    stdio: ["ignore", "ignore", "ignore"],
    detached: true,
  }).unref();
  process.exit(1);
}
