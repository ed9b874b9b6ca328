/** What the store relies on, on a real API server with the CRDs and under the plugin's role: refusals, exact numbers, long names. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Datastore, Entry } from "../../src/datastore/datastore.ts";
import { failureOf } from "../../src/datastore/datastore-contract/subject.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { identity } from "../../src/identity.ts";
import { affinitiesPrefix, affinityKey, blockKey, handleKey, resourceKey } from "../../src/model/keys.ts";
import { prefix } from "../support/ipam.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import { testNeeding } from "../support/needs.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);

let server: ApiServer;
let access: { readonly kubeconfigs: readonly string[] };
const stores: Datastore[] = [];

beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  await installCrds(server);
  await server.apply(readFileSync(join(import.meta.dir, "../../deploy/rbac/vendor-kubernetes.yaml"), "utf8"));
  const role = `${identity.product}-kubernetes`;
  access = { kubeconfigs: [(await server.serviceAccount({ name: identity.product, clusterRole: role })).kubeconfig] };
}, 120_000);
afterAll(async () => {
  for (const store of stores) await store.close();
  await server?.stop();
});

async function openStore(): Promise<Datastore> {
  const store = await openDatastore({ kind: "orchestrator", access });
  stores.push(store);
  return store;
}

async function readOne(store: Datastore, key: string): Promise<Entry | undefined> {
  return (await store.read([{ kind: "key", key }])).answers[0]?.[0];
}

describe("the orchestrator's API with our CRDs", () => {
  testServer("keeps numbers beyond 2^53 exact", async () => {
    const store = await openStore();
    const key = blockKey(prefix("10.0.0.0/30"));
    const value = `{"cidr":"10.0.0.0/30","affinity":"host:n1","allocations":[0,null,null,null],"unallocated":[1,2,3],"attributes":[{"handle_id":"net.a","secondary":{}}],"deleted":false,"sequenceNumber":1794801600123456789,"sequenceNumberForAllocation":{"0":9007199254740993}}`;
    await store.commit([{ kind: "create", key, value }]);
    const text = (await readOne(await openStore(), key))?.value ?? "";

    expect(text).toContain("1794801600123456789");
    expect(text).toContain("9007199254740993");
  });

  testServer("tells long names of nodes, and handles that differ in case, apart", async () => {
    const store = await openStore();
    const block = prefix("10.0.1.0/26");
    const nodes = ["a", "b"].map(
      (end) => `${"n".repeat(60)}.${"m".repeat(60)}.${"o".repeat(60)}.${"p".repeat(60)}.${end}`,
    );
    for (const node of nodes)
      await store.commit([{ kind: "create", key: affinityKey(node, block), value: '{"state":"confirmed"}' }]);
    for (const node of nodes) {
      const { answers } = await store.read([{ kind: "prefix", prefix: affinitiesPrefix(node) }]);
      expect(answers[0]?.map(({ key }) => key)).toEqual([affinityKey(node, block)]);
    }
    const handles = ["net.abc", "NET.abc", `net.${"x".repeat(300)}`];
    for (const id of handles) await store.commit([{ kind: "create", key: handleKey(id), value: '{"block":{}}' }]);
    for (const id of handles) expect((await readOne(store, handleKey(id)))?.key).toBe(handleKey(id));
  });

  testServer("refuses what was decided on an older version, or on an object that was created again", async () => {
    const [store, other] = [await openStore(), await openStore()];
    const key = handleKey("net.again");
    await store.commit([{ kind: "create", key, value: '{"block":{}}' }]);
    const seen = await readOne(store, key);
    const current = await readOne(other, key);
    await other.commit([{ kind: "delete", key, revision: current?.revision ?? "" }]);
    await other.commit([{ kind: "create", key, value: '{"block":{"10.0.0.0/26":1}}' }]);
    const revision = seen?.revision ?? "";

    for (const change of [
      { kind: "update", key, value: '{"block":{}}', revision },
      { kind: "delete", key, revision },
    ] as const) {
      expect(await store.commit([change])).toEqual({ ok: false, reason: "stale", key });
    }
    expect((await readOne(store, key))?.value).toContain('"10.0.0.0/26":1');
  });

  testServer("does not lose what is written to a block while somebody deletes it", async () => {
    const store = await openStore();
    const key = blockKey(prefix("10.0.2.0/30"));
    const value = '{"cidr":"10.0.2.0/30","allocations":[null,null,null,null],"unallocated":[0,1,2,3],"attributes":[]}';
    await store.commit([{ kind: "create", key, value }]);
    const patch = JSON.stringify({ metadata: { finalizers: ["example.org/keep"] } });
    await server.kubectl(["patch", "ipamblock", "10-0-2-0-30", "--type=merge", `--patch=${patch}`]);
    await server.kubectl(["delete", "ipamblock", "10-0-2-0-30", "--wait=false"]);
    const revision = (await readOne(store, key))?.revision ?? "";
    const failure = await failureOf(store.commit([{ kind: "update", key, value, revision }]));

    expect(failure).toMatchObject({ kind: "try-again-later" });
    expect(String(failure)).toContain("example.org/keep");
  });

  testServer("a pod's addresses are recorded once by two that do not see each other", async () => {
    await server.createNamespace("red");
    const spec = { nodeName: "n1", containers: [{ name: "main", image: "none" }] };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "red" }, spec };
    await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" } }));
    await server.apply(JSON.stringify(pod));
    const key = resourceKey("workloadendpoints", { namespace: "red", name: "n1-k8s-web-eth0" });
    const endpoint = (containerID: string, address: string) =>
      JSON.stringify({ metadata: {}, spec: { containerID, ipNetworks: [address] } });
    const [one, two] = [await openStore(), await openStore()];
    expect([await readOne(one, key), await readOne(two, key)]).toEqual([undefined, undefined]);
    const first = await one.commit([{ kind: "create", key, value: endpoint("c1", "10.0.0.1/32") }]);
    const second = await two.commit([{ kind: "create", key, value: endpoint("c2", "10.0.0.2/32") }]);

    expect([first.ok, second.ok]).toEqual([true, false]);
    expect((await readOne(two, key))?.value).toContain("10.0.0.1/32");
  });
});
