/** What a watcher costs the orchestrator's API: the CPU time of a real kube-apiserver for the same changes of pods with more and more watchers, each on its own connection. */
import type { ApiFanOut, ApiFanOutRound } from "../../sim/scale/measured.ts";
import type { KubeClient, KubeRequest } from "../../src/kube/api.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { requireOk } from "../../src/kube/require-ok.ts";
import { type ApiServer, startApiServer } from "../../test/support/kube-apiserver.ts";
import { openKubeObjects } from "../../test/support/kube-objects.ts";
import { processorMilliseconds } from "./processor-clock.ts";
import { memoryOf } from "./scale-node.ts";

const PODS = "/api/v1/pods";
const POD = { name: "changing", namespace: "default" };

export async function measureApiFanOut(watcherCounts: readonly number[], writes: number): Promise<ApiFanOut> {
  const rounds: ApiFanOutRound[] = [];
  for (const watchers of watcherCounts) {
    const server = await startApiServer();
    rounds.push(await measureRound(server, watchers, writes));
    await server.stop();
  }
  return { rounds };
}

async function measureRound(server: ApiServer, watchers: number, writes: number): Promise<ApiFanOutRound> {
  await createPod(server);
  const ending = new AbortController();
  const clients = await Promise.all(Array.from({ length: watchers + 1 }, () => openClient(server)));
  const [writer, ...watching] = clients;
  if (writer === undefined) throw new Error("There is no client");
  const request: KubeRequest = { method: "GET", path: PODS, attempt: "retry" };
  const { metadata } = JSON.parse(requireOk(await writer.request(request), request));
  const heard = watching.map(() => ({ events: 0, bytes: 0 }));
  const loops = watching.map(async (client, index) => {
    const mine = heard[index];
    const query = { resourceVersion: String(metadata.resourceVersion) };
    for await (const { type, text } of client.watch(PODS, query, ending.signal)) {
      if (mine === undefined) break;
      if (type === "OPENED") continue;
      mine.events += 1;
      mine.bytes += text.length;
    }
  });
  await Bun.sleep(3_000);
  const pids = [server.apiServer.pid, server.etcd.pid] as const;
  const before = pids.map(processorMilliseconds);
  for (let round = 0; round < writes; round += 1) await labelPod(writer, round);
  while (heard.some(({ events }) => events < writes)) await Bun.sleep(5);
  const [apiMilliseconds = 0, etcdMilliseconds = 0] = pids.map(
    (pid, index) => processorMilliseconds(pid) - (before[index] ?? 0),
  );
  const apiResidentBytes = memoryOf(pids[0]).residentBytes;
  ending.abort();
  await Promise.all(loops);
  await Promise.all(clients.map((client) => client.close()));
  console.log(
    `${watchers} watchers: ${Math.round(apiMilliseconds)} ms of kube-apiserver's CPU time for ${writes} changes`,
  );
  const bytesPerEvent = (heard[0]?.bytes ?? 0) / writes;
  return { watchers, writes, bytesPerEvent, apiMilliseconds, etcdMilliseconds, apiResidentBytes };
}

/** Of no node, so that nobody else changes it. */
async function createPod(server: ApiServer): Promise<void> {
  const objects = await openKubeObjects(server);
  await objects.apply("ServiceAccount", { metadata: { name: "default", namespace: POD.namespace } });
  const containers = [{ name: "main", image: "none", ports: [{ name: "http", containerPort: 8080 }] }];
  await objects.apply("Pod", { metadata: { ...POD, labels: { app: "shop" } }, spec: { containers } });
  await objects.close();
}

async function labelPod(client: KubeClient, round: number): Promise<void> {
  const request: KubeRequest = {
    method: "PATCH",
    path: `/api/v1/namespaces/${POD.namespace}/pods/${POD.name}`,
    contentType: "application/merge-patch+json",
    body: JSON.stringify({ metadata: { labels: { round: String(round) } } }),
    attempt: "retry",
  };
  requireOk(await client.request(request), request);
}

function openClient({ adminKubeconfig }: ApiServer): Promise<KubeClient> {
  return openKubeClient(
    { kubeconfigs: [adminKubeconfig] },
    { environment: process.env, warn: () => {}, now: () => new Date(), elapsed: () => performance.now() },
  );
}
