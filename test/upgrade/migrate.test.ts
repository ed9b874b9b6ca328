/**
 * The data of a cluster move from a real etcd to a real API server, by the commands of the admin tool: killed now and then, with
 * every address kept, and none of them assigned again.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { readAllRecords } from "../../src/ipam/all-records.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { recordCluster } from "../../src/ipam/confirm-cluster.ts";
import { findProblems } from "../../src/ipam/invariants.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { type AdminSurroundings, runInside } from "../support/admin-context.ts";
import { means, request, textsOf } from "../support/ipam.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { FLOW_SETTINGS, fillEtcd } from "../support/migration-source.ts";
import { testNeeding } from "../support/needs.ts";
import { storeAround } from "../support/wrapped-store.ts";

const problem = apiServerProblem();
const testCluster = testNeeding(problem);
const around = { environment: {}, warn: () => {}, now: () => new Date(), elapsed: () => performance.now() };

describe("the data of a cluster on etcd", () => {
  let server: ApiServer;
  let etcd: Datastore;
  let addresses: ReadonlyMap<string, string>;
  let file = "";
  beforeAll(async () => {
    if (problem !== undefined) return;
    server = await startApiServer();
    etcd = await openDatastore({ kind: "etcd", source: { kind: "endpoints", endpoints: [server.etcdEndpoint] } });
    addresses = await fillEtcd(etcd);
    const node = (name: string) => `apiVersion: v1\nkind: Node\nmetadata: {name: ${name}, labels: {rack: a}}\n`;
    await server.apply(
      `${node("one")}---\n${node("two")}---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n`,
    );
  }, 60_000);
  afterAll(async () => {
    await etcd?.close();
    await server?.stop();
  });

  const onEtcd = (words: string, more: AdminSurroundings = {}) =>
    runInside([...words.split(" "), "--etcd-endpoints", server.etcdEndpoint], { openDatastore, ...more });
  const onApi = (words: string, more: AdminSurroundings = {}) =>
    runInside([...words.split(" "), "--datastore-type", "kubernetes", "--kubeconfig", server.adminKubeconfig], {
      openDatastore,
      openKubeClient: (access) => openKubeClient(access, around),
      files: { "export.jsonl": file },
      wait: (milliseconds) => Bun.sleep(Math.min(milliseconds, 100)),
      ...more,
    });

  testCluster("are exported once etcd is locked", async () => {
    expect(await onEtcd("datastore migrate export")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("lock"),
    });
    expect((await onEtcd("datastore migrate lock")).stdout).toBe("The datastore is locked\n");
    const exported = await onEtcd("datastore migrate export");
    expect(exported.code).toBe(0);
    expect(exported.stderr).toContain('Profile "by-hand" is left out');
    file = exported.stdout;
  });

  testCluster("are not imported into another cluster than that of etcd, until the move is confirmed", async () => {
    await recordCluster(etcd, "another");
    file = (await onEtcd("datastore migrate export")).stdout;
    const refused = await onApi("datastore migrate import -f export.jsonl");
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('it is that of cluster "another", and this is');
    expect(refused.stderr).toContain("confirm it with: vendorctl datastore adopt-cluster");
    expect(await server.kubectl(["get", "customresourcedefinitions", "--output=name"])).toBe("");

    const openApi: AdminSurroundings["openKubeClient"] = (access) => openKubeClient(access, around);
    const confirm = `datastore adopt-cluster --yes --kubeconfig ${server.adminKubeconfig}`;
    expect((await onEtcd(confirm, { openKubeClient: openApi })).code).toBe(0);
    file = (await onEtcd("datastore migrate export")).stdout;
  });

  testCluster(
    "are imported however often the tool is killed, compared, and not imported twice",
    async () => {
      for (const last of [1, 9]) {
        let count = 0;
        const killing: AdminSurroundings["openDatastore"] = async (settings) => {
          const store = await openDatastore(settings);
          const commit: Datastore["commit"] = async (changes) => {
            count += 1;
            if (count > last) throw new Error("killed");
            return store.commit(changes);
          };
          return storeAround(store, { commit });
        };
        expect((await onApi("datastore migrate import -f export.jsonl", { openDatastore: killing })).code).toBe(1);
      }
      expect((await onApi("datastore migrate check -f export.jsonl")).code).toBe(1);
      const imported = await onApi("datastore migrate import -f export.jsonl");
      expect([imported.code, imported.stdout]).toEqual([0, expect.stringContaining("which is locked")]);
      const audit = server.startAudit();
      expect((await onApi("datastore migrate import -f export.jsonl")).code).toBe(0);
      const writes = audit.requests("admin").filter(({ verb }) => !["get", "list", "watch"].includes(verb));
      expect(writes).toEqual([]);
      expect((await onApi("datastore migrate check -f export.jsonl")).stdout).toContain("0 differences");
    },
    60_000,
  );

  testCluster(
    "keep every address, and none is assigned again",
    async () => {
      expect((await onApi("datastore migrate unlock")).code).toBe(0);
      expect((await onApi("datastore migrate import -f export.jsonl")).stderr).toContain("unlocked already");
      const access = { kubeconfigs: [server.adminKubeconfig] };
      const store = await openDatastore({ kind: "orchestrator", access });
      try {
        const allocator = openAllocator(store, means({ wait: (milliseconds) => Bun.sleep(milliseconds) }));
        for (const [handle, address] of addresses) {
          const held = await Promise.all(["one", "two"].map((node) => allocator.held(request(handle, { node }))));
          expect([...new Set(held.flat().map((each) => formatAddress(each.address)))]).toEqual([address]);
        }
        const used = new Set(addresses.values());
        for (const [index, node] of ["one", "two", "one", "two", "two", "one"].entries()) {
          const [address = ""] = textsOf(await allocator.assign(request(`new-${index}`, { node })));
          expect(used.has(address)).toBe(false);
          used.add(address);
        }
        expect(findProblems(await readAllRecords(store))).toEqual([]);
        const { spec } = await server.get<{ readonly spec: object }>("nodeagentconfiguration", "node.one");
        expect(spec).toMatchObject(FLOW_SETTINGS);
      } finally {
        await store.close();
      }
    },
    60_000,
  );
});
