/** Policies and what they refer to, as operators write them on the datastores without an orchestrator. */
import { afterAll, beforeAll, describe } from "bun:test";
import { join } from "node:path";
import { type EtcdCluster, hasEtcd, startEtcd } from "../support/etcd.ts";
import { testNeeding } from "../support/needs.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { adminWith, expectLives, policyResources } from "./policy-kind-commands.ts";

const directory = temporaryDirectory("admin-policies");
let etcd: EtcdCluster | undefined;
beforeAll(async () => {
  if (hasEtcd) etcd = await startEtcd();
});
afterAll(async () => {
  await etcd?.stop();
  directory.remove();
});

const STORES = [
  {
    store: "embedded",
    need: undefined,
    environment: () => ({ DATASTORE_TYPE: "embedded", DATASTORE_PATH: join(directory.path, "store.db") }),
  },
  {
    store: "etcd",
    need: hasEtcd ? undefined : "needs etcd",
    environment: () => ({ DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: etcd?.endpoints.join() ?? "" }),
  },
];

for (const { store, need, environment } of STORES) {
  describe(`the admin tool on ${store}`, () => {
    const test = testNeeding(need);

    test("creates, shows, changes, labels and deletes each kind of policy and BGP", () =>
      expectLives(adminWith(environment()), policyResources({ hasServices: false })));
  });
}
