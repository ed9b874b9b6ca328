/**
 * The controllers beside those of Calico: each with its own etcd and the same API server, in which there are 2,000 policies
 * and 10,000 pods. Fails if the product writes anything but its Lease while nothing changes.
 */
import { part } from "../test/parts/build.ts";
import { hasEtcd, startEtcd } from "../test/support/etcd.ts";
import { apiServerProblem, startApiServer } from "../test/support/kube-apiserver.ts";
import { openKubeObjects } from "../test/support/kube-objects.ts";
import { createLoad, loadRecords } from "./support/controllers-load.ts";
import { type ControllersResult, measureControllers } from "./support/controllers-measurements.ts";
import { type ControllersSystem, ownControllers, peerControllers } from "./support/controllers-systems.ts";
import { controllersTable, needlessWrites } from "./support/controllers-table.ts";
import { putRecords } from "./support/etcd-records.ts";
import { buildProduct } from "./support/programs.ts";
import { writeResults } from "./support/report.ts";

const SIZE = { namespaces: 200, nodes: 100, policies: 2_000, pods: 10_000 };
const ROUNDS = Math.min(Number(process.env["BENCH_ROUNDS"] ?? 40), 40);
const IDLE_SECONDS = Math.min(ROUNDS, 20);

const problem = apiServerProblem() ?? (hasEtcd ? undefined : "needs etcd");
if (problem === undefined) await compare();
else console.log(`controllers: skipped: ${problem}`);

async function compare(): Promise<void> {
  await using undo = new AsyncDisposableStack();
  const folder = await buildProduct();
  const peer = await part("kube-controllers");
  if ("missing" in peer) console.log(`without Calico: ${peer.missing}`);
  const server = await startApiServer();
  undo.defer(server.stop);
  const objects = await openKubeObjects(server);
  undo.defer(objects.close);
  await createLoad(objects, SIZE);
  const systems: readonly ControllersSystem[] = [
    ...("missing" in peer ? [] : [peerControllers(peer.path, server.directory)]),
    ownControllers(folder),
  ];
  const results: ControllersResult[] = [];
  for (const system of systems) {
    const etcd = await startEtcd();
    const [endpoint = ""] = etcd.endpoints;
    await putRecords(endpoint, loadRecords(SIZE).map(system.record));
    const plan = { server, objects, endpoint, ...SIZE, rounds: ROUNDS, idleSeconds: IDLE_SECONDS };
    results.push(await measureControllers(system, plan));
    await etcd.stop();
  }
  console.log(controllersTable(results));
  await writeResults("controllers", { size: SIZE, results });
  const needless = results.slice(-1).flatMap(needlessWrites);
  if (needless.length === 0) return;
  console.error(`The controllers wrote while nothing changed: ${needless.join(", ")}`);
  process.exitCode = 1;
}
