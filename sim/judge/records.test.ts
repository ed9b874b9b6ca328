import { expect, test } from "bun:test";
import { productMapping } from "../../src/datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../src/datastore/kube/store.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import type { KubeRequest } from "../../src/kube/api.ts";
import { blocksPrefix, HANDLES_PREFIX, resourcesPrefix } from "../../src/model/keys.ts";
import { means, poolChange, request, seed } from "../../test/support/ipam.ts";
import { startFakeApi } from "../../test/support/kube-api/fake-api.ts";
import { recordsOfApi } from "./records.ts";

test("records in the orchestrator's API are those that the product's own store reads", async () => {
  const api = startFakeApi();
  const paths = new Set<string>();
  let revision = 0;
  const note = ({ method, path, body }: KubeRequest) => {
    if (method !== "GET") revision += 1;
    if (method === "POST") paths.add(`${path}/${JSON.parse(body ?? "").metadata.name}`);
    else paths.add(path);
  };
  const client = api.connect(async (sent, send) => {
    note(sent);
    return send();
  });
  await client.request({
    method: "POST",
    path: "/api/v1/nodes",
    body: JSON.stringify({ metadata: { name: "node-1" } }),
  });
  const store = openKubeStore({ api: client, mappings: productMapping(() => "mark"), close: async () => {} });
  await seed(store, poolChange("blue", "10.0.0.0/24"));
  await openAllocator(store, means()).assign(request("network.one"));
  const records = recordsOfApi({
    get revision() {
      return String(revision);
    },
    all: () =>
      [...paths].flatMap((path) => [api.object(path)].flatMap((object) => (object ? [{ path, object }] : []))) as never,
  });

  for (const prefix of [blocksPrefix(4), HANDLES_PREFIX, resourcesPrefix("ippools"), resourcesPrefix("nodes")]) {
    const [wanted] = (await store.read([{ kind: "prefix", prefix }])).answers;
    expect(records.under(prefix)).toEqual(wanted ?? []);
    expect(wanted).toHaveLength(1);
    expect(records.under(prefix)[0]).toBe(records.under(prefix)[0]);
  }
});
