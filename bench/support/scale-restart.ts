/**
 * A kube-apiserver that starts again: it answers every older revision with 410, so everybody lists everything. Real
 * replicas, each with its own connections, on a real kube-apiserver; its audit log says what they ask for, second by second.
 */
import { readFileSync } from "node:fs";
import type { ApiRestart } from "../../sim/scale/measured.ts";
import { openKube } from "../../src/datastore/kube/open.ts";
import { SYSTEM_CLOCK } from "../../src/datastore/replica/clock.ts";
import { type Replica, startReplica } from "../../src/datastore/replica.ts";
import { POLICY_KINDS } from "../../src/policy/inputs.ts";
import { ROUTING_KINDS } from "../../src/routing/inputs.ts";
import { type ApiServer, startApiServer } from "../../test/support/kube-apiserver.ts";
import { openKubeObjects } from "../../test/support/kube-objects.ts";
import { processorMilliseconds } from "./processor-clock.ts";

/** Of what every agent follows, that which needs no CRD: four collections. */
const KINDS = { nodes: ROUTING_KINDS.nodes, profiles: POLICY_KINDS.profiles, endpoints: POLICY_KINDS.endpoints };
const COLLECTIONS = 4;
const LIMIT_MILLISECONDS = 600_000;
const AT_ONCE = 25;
/** Bun opens 256 connections at most, unless the environment of the process says otherwise. */
const CONNECTIONS = Number(process.env["BUN_CONFIG_MAX_HTTP_REQUESTS"] ?? 256);

interface Plan {
  readonly replicas: number;
  readonly nodes: number;
}

export async function measureRestart({ replicas: count, nodes }: Plan): Promise<ApiRestart> {
  const needed = count * (COLLECTIONS + 1);
  if (CONNECTIONS < needed) throw new Error(`Set BUN_CONFIG_MAX_HTTP_REQUESTS to ${needed} or more`);
  const server = await startApiServer();
  const ending = new AbortController();
  try {
    await fill(server, nodes);
    const replicas: Replica<unknown>[] = [];
    const marks: string[] = [];
    for (let first = 0; first < count; first += AT_ONCE) {
      const some = Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, index) => first + index);
      await Promise.all(some.map(async (index) => void replicas.push(await follow(server, { index, marks, ending }))));
      await until(() => replicas.every(({ status }) => status.state === "in sync"));
    }
    // Each has seen this, and none the revision that the server starts with.
    await mark(server, "before");
    await until(() => marks.filter((name) => name === "before").length === count);
    const before = processorMilliseconds(server.etcd.pid);
    const stopped = Date.now();
    // On a busy machine it is not ready within the time that tests wait; it goes on.
    await server.apiServer.restart().catch(() => {});
    await markInTheEnd(server, "after");
    const started = Date.now();
    await until(() => marks.filter((name) => name === "after").length === count);
    await until(() => replicas.every(({ status }) => status.state === "in sync"));
    const recovered = Date.now();
    const requests = requestsSince(server.auditLog, stopped).filter(({ uri }) => COUNTED.test(uri));
    const lists = requests.filter(isList);
    const found = {
      ...{ replicas: count, collections: COLLECTIONS, objects: 2 * nodes },
      downMilliseconds: started - stopped,
      recoverMilliseconds: recovered - started,
      requests: countBy(requests.map(({ verb }) => verb)),
      mostPerSecond: busiest(requests),
      lists: lists.length,
      mostListsPerSecond: busiest(lists),
      mostListsPerTenthOfSecond: busiest(lists, 100),
      etcdMilliseconds: processorMilliseconds(server.etcd.pid) - before,
      apiMilliseconds: processorMilliseconds(server.apiServer.pid),
      etcdReads: await readsOfEtcd(server),
    };
    console.log(found);
    ending.abort();
    await Promise.all(replicas.map(({ ended }) => ended));
    return found;
  } finally {
    ending.abort();
    await server.stop();
  }
}

async function fill(server: ApiServer, nodes: number): Promise<void> {
  const objects = await openKubeObjects(server);
  await objects.apply("ServiceAccount", { metadata: { name: "default", namespace: "default" } });
  for (let index = 0; index < nodes; index++) {
    const containers = [{ name: "main", image: "none" }];
    await Promise.all([
      objects.apply("Node", { metadata: { name: `node-${index}` } }),
      objects.apply("Pod", {
        metadata: { name: `pod-${index}`, namespace: "default", labels: { app: "shop" } },
        spec: { containers },
      }),
    ]);
  }
  await objects.close();
}

async function mark(server: ApiServer, name: string): Promise<void> {
  const objects = await openKubeObjects(server);
  await objects.apply("Namespace", { metadata: { name } });
  await objects.close();
}

async function markInTheEnd(server: ApiServer, name: string): Promise<void> {
  const end = performance.now() + LIMIT_MILLISECONDS;
  for (;;) {
    const failure = await mark(server, name).then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    if (failure === undefined) return;
    if (performance.now() > end) throw failure.error;
  }
}

async function follow(
  server: ApiServer,
  { index, marks, ending }: { index: number; marks: string[]; ending: AbortController },
): Promise<Replica<unknown>> {
  const store = await openKube({ kubeconfigs: [server.adminKubeconfig] }, { environment: process.env });
  const clock = { now: () => performance.now(), wait: SYSTEM_CLOCK.wait };
  const options = { signal: ending.signal, watches: "per kind", clock, peers } as const;
  const replica = startReplica(store, KINDS, options);
  function peers(): number {
    return replica.part(["nodes"]).snapshot?.nodes.size ?? 0;
  }
  void (async () => {
    const seen = new Set<string>();
    for await (const { changes } of replica.part(["profiles"]).updates()) {
      for (const change of changes.profiles) {
        const name = /kns\.(before|after)$/.exec(change.key)?.[1];
        if (change.kind !== "put" || name === undefined || seen.has(name)) continue;
        seen.add(name);
        marks.push(name);
      }
    }
    await store.close();
  })();
  if (index % 100 === 0) console.log(`replica ${index}`);
  return replica;
}

async function until(isDone: () => boolean): Promise<void> {
  const end = performance.now() + LIMIT_MILLISECONDS;
  while (!isDone()) {
    if (performance.now() > end) throw new Error("The replicas are not in sync within the limit");
    await Bun.sleep(20);
  }
}

interface TimedRequest {
  readonly verb: string;
  readonly uri: string;
  readonly at: number;
}

/** What replicas ask for: of nodes, pods, namespaces and service accounts of the whole cluster. */
const COUNTED = /^\/api\/v1\/(nodes|pods|namespaces|serviceaccounts)\?/;

function requestsSince(auditLog: string, since: number): readonly TimedRequest[] {
  const byId = new Map<string, TimedRequest>();
  for (const line of readFileSync(auditLog, "utf8").split("\n")) {
    if (!line.endsWith("}")) continue;
    const { auditID, verb, requestURI, requestReceivedTimestamp } = JSON.parse(line);
    const at = Date.parse(requestReceivedTimestamp);
    if (at >= since) byId.set(auditID, { verb, uri: requestURI, at });
  }
  return [...byId.values()];
}

/** With a limit of one object only the revision is asked for. A watch may begin with a list. */
function isList({ verb, uri }: TimedRequest): boolean {
  return verb === "list" ? !/[?&]limit=1(&|$)/.test(uri) : uri.includes("sendInitialEvents=true");
}

function busiest(requests: readonly TimedRequest[], milliseconds = 1_000): number {
  return Math.max(0, ...Object.values(countBy(requests.map(({ at }) => String(Math.floor(at / milliseconds))))));
}

function countBy(names: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** How often the server that has started asked etcd for these kinds, or for its revision. */
async function readsOfEtcd(server: ApiServer): Promise<number> {
  const text = await server.kubectl(["get", "--raw", "/metrics"]);
  const rows = text.matchAll(/^etcd_requests_total\{([^}]*)\} (\d+)/gm);
  return [...rows]
    .filter(([, labels = ""]) => /resource="(nodes|pods|namespaces|serviceaccounts)"/.test(labels))
    .filter(([, labels = ""]) => /operation="(list|getCurrentResourceVersion)"/.test(labels))
    .reduce((sum, [, , value]) => sum + Number(value), 0);
}
