/** Policies in the orchestrator's API: custom resources, in namespaces too. */
import { beforeEach, describe, expect, test } from "bun:test";
import { resourceKey, resourcesPrefix } from "../../model/keys.ts";
import type { Datastore } from "../datastore.ts";
import { type FakeApi, startFakeApi } from "./fake-api.ts";
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
