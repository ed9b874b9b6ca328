import { describe, expect, test } from "bun:test";
import { seed } from "../../../test/support/ipam.ts";
import { type FakeApi, startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { EVERYTHING, type Rule, readersCluster } from "../../../test/support/readers.ts";
import type { Change, Datastore } from "../../datastore/datastore.ts";
import { openKube } from "../../datastore/kube/open.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { ENDPOINT, NODE, POOL } from "../../model/kinds.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { ReaderRights, readerOf } from "./reader.ts";
import { visibleStore } from "./visible-store.ts";

const NAMESPACES = ["bank", "lab", "shop", "zoo"];

function endpoint(namespace: string, index: number): Change {
  const made = workloadEndpoint.make({ name: `n-k8s-p${index}-eth0`, namespace }, { orchestrator: "k8s", node: "n" });
  return { kind: "put", key: ENDPOINT.key(made.metadata), value: workloadEndpoint.write(made) };
}

async function filled(): Promise<Datastore> {
  const store = openMemory();
  for (const namespace of NAMESPACES)
    await seed(store, ...Array.from({ length: 400 }, (_, index) => endpoint(namespace, index)));
  return store;
}

async function visible(rules: readonly Rule[], store: Datastore, api: FakeApi = apiWithNamespaces()) {
  const { openClient, requests } = readersCluster(api, { reader: { user: "reader", rules } });
  const client = await openClient({ token: "reader" });
  const rights = new ReaderRights(client, await readerOf(client), () => new Date(0));
  return { seen: visibleStore({ store, decides: "rights" }, rights), rights, client, requests };
}

function apiWithNamespaces(): FakeApi {
  const api = startFakeApi({ watchList: "refused" });
  for (const name of NAMESPACES)
    api.respond({ method: "POST", path: "/api/v1/namespaces", body: JSON.stringify({ metadata: { name } }) });
  return api;
}

const NAMES: Rule = { resources: ["namespaces"] };

describe("visibleStore()", () => {
  test("reads the namespaces in which the reader may list, in pages, and names what is left out", async () => {
    const rules = [NAMES, { resources: ["workloadendpoints"], namespaces: ["lab", "zoo"] }];
    const { seen } = await visible(rules, await filled());
    const keys = (await readAllEntries(seen, ENDPOINT.prefix())).map(({ key }) => key);

    expect(keys.length).toBe(800);
    expect(keys.every((key) => /\/(lab|zoo)\//.test(key))).toBe(true);
    expect(keys).toEqual([...new Set(keys)].toSorted());
    expect(seen.hidden).toEqual(["pods outside of namespaces lab, zoo"]);
  });

  test("hides keys as it hides lists", async () => {
    const store = await filled();
    const { seen } = await visible([{ resources: ["workloadendpoints"], namespaces: ["lab"] }], store);
    const read = async (namespace: string) => {
      const key = ENDPOINT.key({ namespace, name: "n-k8s-p1-eth0" });
      return (await seen.read([{ kind: "key", key }])).answers.flat().length;
    };

    expect([await read("lab"), await read("bank")]).toEqual([1, 0]);
    expect(seen.hidden).toEqual(["pods"]);
  });

  test("hides kinds without namespaces as a whole, and nothing from who may list them", async () => {
    const store = await filled();
    const few = (await visible([{ resources: ["nodes"] }], store)).seen;
    for (const kind of [POOL, NODE]) await readAllEntries(few, kind.prefix());
    expect(few.hidden).toEqual(["IP pools"]);
    const all = (await visible(EVERYTHING, store)).seen;
    expect((await readAllEntries(all, ENDPOINT.prefix())).length).toBe(1_600);
    expect(all.hidden).toEqual([]);
  });

  test("refuses prefixes of which nothing says who may see them", async () => {
    const { seen } = await visible(EVERYTHING, await filled());
    await expect(seen.read([{ kind: "prefix", prefix: "/" }])).rejects.toMatchObject({ kind: "internal" });
  });

  test("only creates, and nothing without a namespace", async () => {
    const { seen } = await visible(EVERYTHING, await filled());
    const change = endpoint("lab", 1);
    await expect(seen.commit([change])).rejects.toMatchObject({ kind: "internal" });
    const key = POOL.key({ name: "blue" });
    await expect(seen.commit([{ kind: "create", key, value: "{}" }])).rejects.toMatchObject({ kind: "internal" });
  });

  test("of Kubernetes, believes the API server, whatever the reviews would say", async () => {
    const api = apiWithNamespaces();
    const { client, rights } = await visible([], openMemory(), api);
    const store = await openKube({}, { openClient: async () => client });
    const seen = visibleStore({ store, decides: "store" }, rights);

    expect(await readAllEntries(seen, ENDPOINT.prefix())).toEqual([]);
    expect(await readAllEntries(seen, POOL.prefix())).toEqual([]);
    expect(seen.hidden).toEqual(["IP pools", "pods"]);
  });
});

describe("ReaderRights", () => {
  test("asks once in half a minute", async () => {
    const { rights, requests } = await visible(EVERYTHING, openMemory());
    const before = requests.length;
    for (let count = 0; count < 3; count++) await rights.may({ verb: "list", group: "", resource: "pods" });

    expect(requests.length - before).toBe(1);
  });

  test("knows the namespace of a service account that may not list namespaces", async () => {
    const user = "system:serviceaccount:shop:reader";
    const { openClient } = readersCluster(startFakeApi(), { reader: { user, rules: [] } });
    const client = await openClient({ token: "reader" });
    const rights = new ReaderRights(client, await readerOf(client), () => new Date(0));

    expect(await rights.namespaces()).toEqual(["shop"]);
  });
});
