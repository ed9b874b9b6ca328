/** Policies in the orchestrator's API: custom resources, in namespaces too, and its own policies, converted. */
import { beforeEach, describe, expect, test } from "bun:test";
import { type FakeApi, startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { resourceKey, resourcesPrefix } from "../../model/keys.ts";
import { SERVICE_ENDPOINTS_PREFIX, serviceEndpointsKey } from "../../model/service-endpoints.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Datastore } from "../datastore.ts";
import { failureOf } from "../datastore-contract/subject.ts";
import { startReplica } from "../replica.ts";
import { productMapping } from "./product-mapping.ts";
import { openKubeStore } from "./store.ts";

const CRS = "/apis/vendor.org/v3";

let api: FakeApi;
let store: Datastore;
let asked: string[];

beforeEach(() => {
  api = startFakeApi();
  asked = [];
  const client = api.connect(async (request, send) => {
    asked.push(`${request.method} ${request.path}`);
    return send();
  });
  let marks = 0;
  store = openKubeStore({ api: client, mappings: productMapping(() => String(++marks)), close: () => client.close() });
});

const read = async (prefix: string) => (await store.read([{ kind: "prefix", prefix }])).answers[0] ?? [];
const policyKey = (namespace: string, name: string) => resourceKey("networkpolicies", { namespace, name });

function policy(namespace: string, name: string, spec: object = {}): string {
  return JSON.stringify({ apiVersion: "vendor.org/v3", kind: "NetworkPolicy", metadata: { name, namespace }, spec });
}

describe("a namespaced resource", () => {
  test("is an object in its namespace: created, read, replaced and deleted there", async () => {
    const key = policyKey("red", "web");
    await store.commit([{ kind: "create", key, value: policy("red", "web") }]);
    const [created] = (await store.read([{ kind: "key", key }])).answers.flat();
    await store.commit([
      { kind: "update", key, value: policy("red", "web", { order: 1 }), revision: created?.revision ?? "" },
    ]);
    const [updated] = (await store.read([{ kind: "key", key }])).answers.flat();
    await store.commit([{ kind: "delete", key, revision: updated?.revision ?? "" }]);

    expect(JSON.parse(updated?.value ?? "")).toMatchObject({
      metadata: { name: "web", namespace: "red" },
      spec: { order: 1 },
    });
    const path = `${CRS}/namespaces/red/networkpolicies`;
    expect(asked).toEqual([
      `POST ${path}`,
      `GET ${path}/web`,
      `PUT ${path}/web`,
      `GET ${path}/web`,
      `DELETE ${path}/web`,
    ]);
    expect(api.object(`${path}/web`)).toBeUndefined();
  });

  test("is listed with those of all namespaces, or of one", async () => {
    for (const [namespace, name] of [
      ["red", "a"],
      ["blue", "a"],
      ["red", "b"],
    ] as const) {
      await store.commit([{ kind: "create", key: policyKey(namespace, name), value: policy(namespace, name) }]);
    }
    asked.splice(0);

    expect((await read(resourcesPrefix("networkpolicies"))).map(({ key }) => key)).toEqual([
      policyKey("blue", "a"),
      policyKey("red", "a"),
      policyKey("red", "b"),
    ]);
    expect((await read(resourcesPrefix("networkpolicies", "red"))).map(({ key }) => key)).toEqual([
      policyKey("red", "a"),
      policyKey("red", "b"),
    ]);
    expect(asked).toContain(`GET ${CRS}/namespaces/red/networkpolicies`);
  });

  test.each([
    resourceKey("networkpolicies", { name: "web" }),
    resourceKey("networkpolicies", { namespace: "Red", name: "web" }),
    resourceKey("tiers", { namespace: "red", name: "web" }),
  ])("has no object with the key %s", async (key) => {
    expect((await store.read([{ kind: "key", key }])).answers).toEqual([[]]);
    expect(asked).toEqual([]);
  });
});

test.each(["globalnetworkpolicies", "globalnetworksets", "tiers", "hostendpoints", "nodeagentconfigurations"])(
  "%s are objects without a namespace",
  async (plural) => {
    const key = resourceKey(plural, { name: "default" });
    const value = JSON.stringify({ metadata: { name: "default", labels: { a: "b" } }, spec: { order: 2.5 } });
    await store.commit([{ kind: "create", key, value }]);

    expect(api.object(`${CRS}/${plural}/default`)).toMatchObject({
      apiVersion: "vendor.org/v3",
      metadata: { labels: { a: "b" } },
      spec: { order: 2.5 },
    });
    expect((await read(resourcesPrefix(plural))).map((entry) => entry.key)).toEqual([key]);
  },
);

describe("a NetworkPolicy of the orchestrator", () => {
  const PATH = "/apis/networking.k8s.io/v1/namespaces/red/networkpolicies";
  const key = policyKey("red", "knp.default.web");

  /** As another program would; members of its lists have no `apiVersion`. */
  async function request(method: "POST" | "PUT" | "DELETE", name: string, spec: object = { podSelector: {} }) {
    const body = JSON.stringify({ metadata: { name, namespace: "red" }, spec });
    const path = method === "POST" ? PATH : `${PATH}/${name}`;
    const { status } = await api.connect().request({ method, path, ...(method === "DELETE" ? {} : { body }) });
    expect(status).toBeLessThan(300);
  }

  test("is read as a policy of this product, listed beside the others", async () => {
    await request("POST", "web", { podSelector: { matchLabels: { app: "web" } } });
    await store.commit([{ kind: "create", key: policyKey("red", "own"), value: policy("red", "own") }]);

    const [entry] = (await store.read([{ kind: "key", key }])).answers.flat();
    expect(JSON.parse(entry?.value ?? "")).toMatchObject({
      kind: "NetworkPolicy",
      metadata: { name: "knp.default.web", namespace: "red" },
      spec: { selector: "vendor.org/orchestrator == 'k8s' && app == 'web'", types: ["Ingress"], order: 1000 },
    });
    for (const prefix of [resourcesPrefix("networkpolicies"), resourcesPrefix("networkpolicies", "red")]) {
      expect((await read(prefix)).map((each) => each.key)).toEqual([key, policyKey("red", "own")]);
    }
    expect(await read(resourcesPrefix("networkpolicies", "blue"))).toEqual([]);
  });

  test("cannot be written, and a custom resource of that name is not a policy", async () => {
    await request("POST", "web");
    const [entry] = (await store.read([{ kind: "key", key }])).answers.flat();
    const value = policy("red", "knp.default.web");
    for (const change of [
      { kind: "update", key, value, revision: entry?.revision ?? "" },
      { kind: "delete", key, revision: entry?.revision ?? "" },
      { kind: "create", key: policyKey("red", "knp.default.other"), value },
    ] as const) {
      expect(await failureOf(store.commit([change]))).toMatchObject({ kind: "resource-invalid" });
    }
    const body = policy("red", "knp.default.forged");
    await api.connect().request({ method: "POST", path: `${CRS}/namespaces/red/networkpolicies`, body });
    expect((await read(resourcesPrefix("networkpolicies"))).map((each) => each.key)).toEqual([key]);
  });

  test("is followed together with the others, also after the history is gone", async () => {
    await request("POST", "before");
    const signal = new AbortController();
    const kinds = {
      policies: { prefix: resourcesPrefix("networkpolicies"), decode: ({ value }: { value: string }) => value },
    };
    const replica = startReplica(store, kinds, { signal: signal.signal, watches: "per kind" });
    const names = async (wanted: readonly string[]) => {
      for await (const { snapshot } of replica.updates()) {
        const found = Array.from(snapshot.policies, ([each]) => each.split("/").at(-1)).toSorted();
        if (Bun.deepEquals(found, [...wanted])) return;
      }
    };
    await names(["knp.default.before"]);
    await store.commit([{ kind: "create", key: policyKey("red", "own"), value: policy("red", "own") }]);
    await request("POST", "web");
    await names(["knp.default.before", "knp.default.web", "own"]);
    await request("DELETE", "before");
    await names(["knp.default.web", "own"]);
    api.forgetHistory();
    await request("DELETE", "web");
    await names(["own"]);
    signal.abort();
    await replica.ended;
  });
});

test("profiles of namespaces and service accounts are followed together", async () => {
  const make = (path: string, metadata: object) =>
    api.connect().request({ method: "POST", path, body: JSON.stringify({ metadata }) });
  await make("/api/v1/namespaces", { name: "red" });
  const { revision } = await store.read([{ kind: "prefix", prefix: resourcesPrefix("profiles") }]);
  await make("/api/v1/namespaces/red/serviceaccounts", { name: "runner", namespace: "red" });
  await make("/api/v1/namespaces", { name: "blue" });
  const seen: string[] = [];
  for await (const event of store.watch(resourcesPrefix("profiles"), revision, AbortSignal.timeout(5_000))) {
    if (event.kind === "put") seen.push(event.entry.key.slice(resourcesPrefix("profiles").length));
    if (seen.length === 2) break;
  }

  expect(seen.toSorted()).toEqual(["kns.blue", "ksa.red.runner"]);
});

test("the endpoints of services are derived from EndpointSlices, read only", async () => {
  const path = "/apis/discovery.k8s.io/v1/namespaces/red/endpointslices";
  const metadata = { name: "web-1", namespace: "red", labels: { "kubernetes.io/service-name": "web" } };
  const body = { metadata, endpoints: [{ addresses: ["10.0.0.1"] }], ports: [{ port: 80 }] };
  const { revision } = await store.read([{ kind: "prefix", prefix: SERVICE_ENDPOINTS_PREFIX }]);
  await api.connect().request({ method: "POST", path, body: JSON.stringify(body) });
  const other = { ...body, metadata: { name: "other", namespace: "red" } };
  await api.connect().request({ method: "POST", path, body: JSON.stringify(other) });
  const key = serviceEndpointsKey({ namespace: "red", name: "web-1" });

  const entries = await read(SERVICE_ENDPOINTS_PREFIX);
  expect(entries.map((entry) => [entry.key, JSON.parse(entry.value)])).toEqual([
    [key, { namespace: "red", service: "web", addresses: ["10.0.0.1"], ports: [{ protocol: 6, port: 80 }] }],
  ]);
  expect((await store.read([{ kind: "key", key }])).answers[0]).toEqual([...entries]);
  for await (const event of store.watch(SERVICE_ENDPOINTS_PREFIX, revision, AbortSignal.timeout(5_000))) {
    if (event.kind === "bookmark") continue;
    expect(event).toMatchObject({ kind: "put", entry: { key } });
    break;
  }
  expect(await failureOf(store.commit([{ kind: "create", key: `${key}-2`, value: "{}" }]))).toBeDefined();
});

describe("the pod of an endpoint", () => {
  const path = "/api/v1/namespaces/red/pods";
  const pod = (phase: string) => ({
    metadata: { name: "web", namespace: "red", annotations: { "cni.vendor.org/podIPs": "10.0.0.1/32" } },
    spec: { nodeName: "n1" },
    status: { phase, podIP: "10.0.0.9" },
  });

  test.each([
    ["Running", undefined],
    ["Pending", undefined],
    ["Succeeded", { phase: "Succeeded" }],
    ["Failed", { phase: "Failed" }],
  ])("in phase %s: whether it has ended is part of the record", async (phase, status) => {
    await api.connect().request({ method: "POST", path, body: JSON.stringify(pod(phase)) });
    const [entry] = await read(resourcesPrefix("workloadendpoints"));
    const endpoint = workloadEndpoint.read(entry?.value ?? "", entry?.key ?? "");

    expect(endpoint.spec.ipNetworks).toEqual(["10.0.0.1/32"]);
    expect(endpoint.status).toEqual(status);
  });
});
