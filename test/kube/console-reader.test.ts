/**
 * What the console shows to readers with few rights, on a real API server: nothing that they may not list, in no view, and no count
 * of it. What they are shown does not depend on it either.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { SESSION_LIMITS, Sessions } from "../../src/console/server/sessions.ts";
import { STREAM_LIMITS, Streams } from "../../src/console/server/streams.ts";
import { clusterSources } from "../../src/console/source/cluster-source.ts";
import type { ConsoleSource } from "../../src/console/source.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openKube } from "../../src/datastore/kube/open.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { type FlowAnswer, flowLine } from "../../src/flows/flow-answer.ts";
import { PRODUCT_API } from "../../src/identity.ts";
import { assignOrdinal, emptyBlock } from "../../src/ipam/block.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { LIMITS } from "../../src/kube/retries.ts";
import { writeBlock } from "../../src/model/ipam-block.ts";
import { blockKey } from "../../src/model/keys.ts";
import { SYSTEM_TIMERS, type Timers } from "../../src/timers.ts";
import { meansWith } from "../support/imitated-api.ts";
import { DENIED } from "../support/imitated-flows.ts";
import { poolChange, prefix, seed } from "../support/ipam.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
const { signal } = new AbortController();

/** Of what the reader of the namespace "shop" may not list. */
const SECRETS = /node-alpha|node-beta|vault|bank|blue-pool|10\.66\.|wide-policy/;
const FLOW: FlowAnswer = {
  explanation: {
    flow: {
      ...DENIED,
      destination: {
        ...{ kind: "pod", namespace: "shop", name: "web-0", address: "10.66.0.1", port: 80, node: "node-alpha" },
        labels: { app: "web" },
      },
    },
    missing: [],
  },
};

let server: ApiServer;
beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  await installCrds(server);
  for (const name of ["node-alpha", "node-beta"])
    await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name } }));
  for (const namespace of ["shop", "bank"]) {
    await server.createNamespace(namespace);
    await server.apply(closedPolicy(namespace));
  }
  await pod("shop", "web-0", "10.66.0.1");
  await pod("bank", "vault-0", "10.66.0.2");
  await fillBlock(2);
}, 180_000);
afterAll(() => server?.stop());

function closedPolicy(namespace: string): string {
  const metadata = { name: `${namespace}-closed`, namespace };
  return JSON.stringify({
    ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata },
    spec: { podSelector: {}, policyTypes: ["Ingress"] },
  });
}

async function pod(namespace: string, name: string, address: string): Promise<void> {
  const metadata = { name, namespace, labels: { app: name.replace(/-\d+$/, "") } };
  const spec = { nodeName: "node-alpha", containers: [{ name: "main", image: "example.invalid/none" }] };
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec }));
  const status = JSON.stringify({ status: { phase: "Running", podIP: address, podIPs: [{ ip: address }] } });
  const patch = ["patch", "pod", name, `--namespace=${namespace}`, "--subresource=status", "--type=merge"];
  await server.kubectl([...patch, `--patch=${status}`]);
}

/** The first address for the pod of "shop", the others for pods of "bank". */
async function fillBlock(used: number): Promise<void> {
  const store = await openKube({ kubeconfigs: [server.adminKubeconfig] }, {});
  let block = emptyBlock(prefix("10.66.0.0/26"), "host:node-alpha", BigInt(Date.now()) * 1_000_000n);
  for (let ordinal = 1; ordinal <= used; ordinal++) {
    const owner = ordinal === 1 ? { namespace: "shop", pod: "web-0" } : { namespace: "bank", pod: `vault-${ordinal}` };
    const attributes = { handleId: `net.${ordinal}`, secondary: { ...owner, node: "node-alpha" } };
    block = assignOrdinal(block, ordinal, attributes)?.block ?? block;
  }
  try {
    await seed(store, poolChange("blue-pool", "10.66.0.0/24"), {
      ...{ kind: "put", key: blockKey(block.cidr), value: writeBlock(block) },
    });
  } finally {
    await store.close();
  }
}

interface ReaderRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

const OWN: readonly ReaderRule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] },
  { apiGroups: ["networking.k8s.io", PRODUCT_API.group], resources: ["networkpolicies"], verbs: ["get", "list"] },
];
const BLOCKS: readonly ReaderRule[] = [
  { apiGroups: [PRODUCT_API.group], resources: ["ippools", "ipreservations", "ipamblocks"], verbs: ["get", "list"] },
];

/** A service account of "shop" with rules there, and others everywhere. */
async function reader(name: string, everywhere: readonly ReaderRule[] = [], etcd?: Datastore): Promise<ConsoleSource> {
  const { token } = await server.serviceAccount({ name, namespace: "shop" });
  const bind = (kind: "Role" | "ClusterRole", rules: readonly ReaderRule[]) => {
    const apiVersion = "rbac.authorization.k8s.io/v1";
    const metadata = { name: `reader-${name}`, ...(kind === "Role" ? { namespace: "shop" } : {}) };
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind, name: metadata.name };
    const subjects = [{ kind: "ServiceAccount", name, namespace: "shop" }];
    return [
      { apiVersion, kind, metadata, rules },
      { apiVersion, kind: `${kind}Binding`, metadata, roleRef, subjects },
    ];
  };
  for (const object of [...bind("Role", OWN), ...(everywhere.length > 0 ? bind("ClusterRole", everywhere) : [])])
    await server.apply(JSON.stringify(object));
  return open(token, etcd);
}

/** Nothing serves flows here: what the API of flows filters, its own tests show. `etcd`: absent with Kubernetes as the datastore. */
async function open(token: string, etcd?: Datastore): Promise<ConsoleSource> {
  const certificateAuthorityFile = server.credentials.authority.cert;
  const openSource = clusterSources({
    ...{ version: "v1.0.0", server: { apiRoot: server.url, certificateAuthorityFile }, now: () => new Date() },
    ...{ wait: (milliseconds) => Bun.sleep(milliseconds), uuid: () => crypto.randomUUID() },
    ...(etcd === undefined ? {} : { etcd }),
    async openClient(access) {
      const client = await openKubeClient(access, meansWith({ limits: LIMITS }));
      return {
        request: (request) => client.request(request),
        watch: (path, query, stop) => client.watch(path, query, stop),
        close: () => client.close(),
        async *lines() {
          yield flowLine(FLOW).trimEnd();
        },
      };
    },
  });
  return openSource(token, signal);
}

/** Everything that a reader is shown, without times. */
async function views(source: ConsoleSource): Promise<string> {
  const refusal = (failure: unknown) => `${failure}`;
  const all = [
    await source.health(signal),
    await source.pools(signal),
    await Array.fromAsync(source.poolMap("blue-pool", signal)).catch(refusal),
    await source.address("10.66.0.2", signal).catch(refusal),
    await source.address("10.66.0.9", signal).catch(refusal),
    await source.draft("n2-9", signal),
    await source.rights(signal),
  ];
  return JSON.stringify(all, (key, value) => (["at", "knownAt"].includes(key) ? undefined : value));
}

describe("a reader of one namespace", () => {
  testServer(
    "is shown nothing of the rest of the cluster, in no view, and what it is shown does not depend on it",
    async () => {
      const source = await reader("few");
      const health = await source.health(signal);
      expect([health.nodes, health.problems, health.parts.map(({ name }) => name)]).toEqual([[], [], ["datastore"]]);
      const { pools, problems, hidden } = await source.pools(signal);
      expect([pools, problems]).toEqual([[], []]);
      expect(hidden).toContain("IP pools");
      const before = await views(source);
      // What it asked for itself is repeated to it.
      const asked = before.replaceAll(/blue-pool|10\.66\.0\.[129]\b/g, "");
      expect(asked).not.toMatch(SECRETS);

      await pod("bank", "vault-3", "10.66.0.3");
      await fillBlock(9);
      await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "node-gamma" } }));
      expect(await views(source)).toBe(before);
      await source.close();
    },
    120_000,
  );

  testServer(
    "who may also list blocks sees which addresses are in use, and whose only in its namespace",
    async () => {
      const source = await reader("blocks", BLOCKS);
      const [pool] = (await source.pools(signal)).pools;
      expect(pool?.name).toBe("blue-pool");
      expect((await source.address("10.66.0.1", signal)).owner).toBe("pod shop/web-0");
      const other = await source.address("10.66.0.2", signal);
      expect(other).toMatchObject({ use: "u", pool: "blue-pool" });
      const map = await Array.fromAsync(source.poolMap("blue-pool", signal));
      expect(JSON.stringify([other, map, await source.health(signal)])).not.toMatch(/node-|vault|bank|net\.2/);
      await source.close();
    },
    120_000,
  );

  testServer(
    "is promised nothing about a draft, since it may not list all that decides, and may not apply it",
    async () => {
      const source = await reader("drafts");
      const draft = await source.draft("n2-9", signal);
      expect(draft.verdict).toBe("depends");
      await expect(source.applyDraft("n2-9", draft, signal)).rejects.toThrow("403");
      await source.close();
    },
    120_000,
  );
});

/** Counts how often the rights of streams were reviewed. */
function countedTimers() {
  let reviews = 0;
  const after: Timers["after"] = (milliseconds, action) => {
    reviews++;
    return SYSTEM_TIMERS.after(milliseconds, action);
  };
  return { timers: { ...SYSTEM_TIMERS, after }, reviews: () => reviews };
}

describe("an open stream", () => {
  for (const [kind, etcd] of [
    ["kubernetes", undefined],
    ["etcd", openMemory()],
  ] as const) {
    testServer(
      `ends when a right in one namespace is taken away, and not before, with ${kind} as the datastore`,
      async () => {
        const name = `taken-${kind}`;
        const source = await reader(name, [], etcd);
        const clock = { now: () => performance.now(), wait: (milliseconds: number) => Bun.sleep(milliseconds) };
        const sessions = new Sessions(SESSION_LIMITS, { now: Date.now, clock, timers: SYSTEM_TIMERS });
        const { session } = sessions.open(source, (text) => text);
        const { timers, reviews } = countedTimers();
        const streams = new Streams({ ...STREAM_LIMITS, reviewMilliseconds: 50 }, timers);
        using stream = await streams.open(session);
        // What is shown by the rights in the namespace.
        await source.draft("n2-9", signal);
        const before = reviews();
        await pollUntil(() => reviews() > before + 3, "more reviews");
        expect(stream.signal.aborted).toBe(false);

        await server.kubectl(["delete", "rolebinding", `reader-${name}`, "--namespace=shop"]);
        await pollUntil(() => stream.signal.aborted, "the stream to end");
        expect(stream.signal.reason).toMatchObject({ status: 409, message: "What you may see has changed" });

        // Opened again it stays open.
        using other = await streams.open(session);
        const since = reviews();
        await pollUntil(() => reviews() > since + 3, "more reviews");
        expect(other.signal.aborted).toBe(false);
        session.end("The test is over");
      },
      120_000,
    );
  }
});

describe("an administrator", () => {
  testServer(
    "is shown all of it",
    async () => {
      const plan = { name: "all", namespace: "kube-system", clusterRole: "cluster-admin" };
      const source = await open((await server.serviceAccount(plan)).token);
      const health = await source.health(signal);
      expect(health.hidden).toEqual([]);
      expect(health.nodes.map(({ name }) => name)).toContain("node-alpha");
      expect((await source.address("10.66.0.2", signal)).owner).toBe("pod bank/vault-2");
      const draft = await source.draft("n2-9", signal);
      expect([draft.verdict, draft.notes]).toEqual(["allowed", []]);
      expect((await source.applyDraft("n2-9", draft, signal)).applied).toHaveLength(1);
      expect((await source.draft("n2-9", signal)).yaml).toBe("");
      await source.close();
    },
    120_000,
  );
});
