import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminSurroundings, runInside } from "../../../../test/support/admin-context.ts";
import { addressedNodeChange, means, podRequest, poolChange, seed, textsOf } from "../../../../test/support/ipam.ts";
import { startFakeApi } from "../../../../test/support/kube-api/fake-api.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { formatAddress } from "../../../ip/address.ts";
import { readAllRecords } from "../../../ipam/all-records.ts";
import { openAllocator } from "../../../ipam/allocator.ts";
import { KeptInUse } from "../../../ipam/assign/kept-address.ts";
import { findProblems } from "../../../ipam/invariants.ts";
import { keptIn } from "../../../ipam/leaks/waiting-addresses.ts";
import type { KubeClient } from "../../../kube/api.ts";
import { clusterInformation } from "../../../model/cluster-information.ts";
import { keepHandle } from "../../../model/kept-address.ts";
import { resourceKey } from "../../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../../main/command.ts";

const NOW = new Date("2026-01-02T12:00:00Z");
const before = (minutes: number) => new Date(NOW.getTime() - minutes * 60_000);

let store = openMemory();
let api = startFakeApi();
let lists = 0;
let client: KubeClient;

beforeEach(async () => {
  store = openMemory();
  api = startFakeApi();
  lists = 0;
  client = api.connect(async ({ query }, send) => {
    if (query?.["limit"] !== undefined) lists += 1;
    return send();
  });
  await seed(
    store,
    poolChange("blue", "10.0.0.0/24", { blockSize: 30 }),
    poolChange("green", "fd00::/120", { blockSize: 126 }),
    ...["n1", "n2"].map((name) => addressedNodeChange(name, `${addressOf(name)}/24`)),
  );
  for (const name of ["n1", "n2"]) await join(name);
});

const post = (path: string, object: object) => client.request({ method: "POST", path, body: JSON.stringify(object) });

/** `n7` has 10.1.0.7. */
const addressOf = (node: string, network = "10.1.0") => `${network}.${node.replace(/\D/g, "")}`;

/** A kubelet registers its node. */
const join = (name: string, network?: string) =>
  post("/api/v1/nodes", {
    metadata: { name },
    status: {
      addresses: [
        { type: "InternalIP", address: addressOf(name, network) },
        { type: "Hostname", address: name },
      ],
    },
  });

async function createPod(name: string, node: string, ips: readonly string[]): Promise<void> {
  await post("/api/v1/namespaces/red/pods", {
    metadata: { name, namespace: "red" },
    spec: { nodeName: node },
    status: { podIPs: ips.map((ip) => ({ ip })) },
  });
}

/** Assigns addresses of both families, as the plugin does. */
async function assign(pod: string, node: string, at = before(60)): Promise<readonly string[]> {
  const allocator = openAllocator(store, means({ now: () => at }));
  return textsOf(await allocator.assign(podRequest(`${pod}-c`, { pod, node })));
}

/** The same for a pod that keeps its addresses. */
async function assignKept(
  pod: string,
  { node, container, at = before(60) }: { readonly node: string; readonly container: string; readonly at?: Date },
): Promise<readonly string[]> {
  const handle = keepHandle({ network: "net", namespace: "red", identity: `pod/${pod}` });
  const keep = { handle, containerId: container, when: "always", title: `pod "red/${pod}"` } as const;
  const allocator = openAllocator(store, means({ now: () => at }));
  return textsOf(await allocator.assign({ ...podRequest(container, { pod, node }), keep }));
}

/** `10.0.0.5 c1` in use, `10.0.0.5 waits` */
async function kept(): Promise<readonly string[]> {
  const { blocks } = await readAllRecords(store);
  return blocks
    .flatMap(keptIn)
    .map(({ address, kept: { user } }) => `${formatAddress(address)} ${user?.containerId ?? "waits"}`)
    .sort();
}

/** The addresses that were released at `NOW` may be used by another node then. */
const rested = { now: before(-3) };

const ETCD = { DATASTORE_TYPE: "etcdv3", KUBECONFIG: "/kubeconfig" };

const gc = (words = "", surroundings: AdminSurroundings = {}) =>
  runInside(`ipam gc --cluster ${words}`.trim().split(" "), {
    store,
    now: NOW,
    env: ETCD,
    openKubeClient: async () => client,
    ...surroundings,
  });

const handles = async () => (await readAllRecords(store)).handles.map(({ handleId }) => handleId).sort();

describe("ipam gc --cluster", () => {
  describe("with the kubeconfig of another cluster", () => {
    const INFORMATION = resourceKey("clusterinformations", { name: "default" });
    const initialize = (spec: object = {}) =>
      seed(store, {
        ...{ kind: "put", key: INFORMATION },
        value: clusterInformation.write(clusterInformation.make({ name: "default" }, spec)),
      });
    const recordedUid = async () => {
      const entry = (await store.read([{ kind: "key", key: INFORMATION }])).answers[0]?.[0];
      return entry && clusterInformation.read(entry.value, entry.key).spec.kubeSystemUID;
    };
    const adopt = (words = "") =>
      runInside(`datastore adopt-cluster ${words}`.trim().split(" "), {
        ...{ store, now: NOW, env: ETCD, openKubeClient: async () => client },
      });
    const becomeCluster = async (nodes: readonly string[], network?: string) => {
      api = startFakeApi();
      client = api.connect(async (_, send) => send());
      await post("/api/v1/namespaces", { metadata: { name: "kube-system" } });
      for (const name of nodes) await join(name, network);
    };
    const uidOf = async (): Promise<string> => {
      const response = await client.request({ method: "GET", path: "/api/v1/namespaces/kube-system" });
      return JSON.parse(response.text).metadata.uid;
    };
    /** 20 pods of nodes that only their claims name, as after the Node records were deleted. */
    const living = async () => {
      for (let pod = 0; pod < 20; pod += 1) await assign(`p${pod}`, `m${pod % 2}`);
      return handles();
    };

    test("releases nothing, and says how to confirm a move", async () => {
      await initialize({ kubeSystemUID: "of-the-first" });
      const before = await living();
      await becomeCluster(["n1", "n2"]);
      const { code, stderr } = await gc("--dead-node n1");

      expect(code).toBe(EXIT_FAILED);
      expect(stderr).toContain('it is that of cluster "of-the-first"');
      expect(stderr).toContain("vendorctl datastore adopt-cluster");
      expect(await handles()).toEqual(before);
    });

    test("releases nothing if none is recorded yet, and the nodes are others", async () => {
      await initialize();
      const before = await living();
      await becomeCluster(["o1", "o2"]);
      const { code, stderr } = await gc("--yes");

      expect(code).toBe(EXIT_FAILED);
      expect(stderr).toContain('of its 2 nodes, such as "n1", the cluster has 0');
      expect([await handles(), await recordedUid()]).toEqual([before, undefined]);
    });

    test("releases nothing if none is recorded yet, and the nodes have the same names and other addresses", async () => {
      await initialize();
      const before = await living();
      await becomeCluster(["n1", "n2"], "10.2.0");
      const { code, stderr } = await gc("--yes");

      expect([code, await handles(), await recordedUid()]).toEqual([EXIT_FAILED, before, undefined]);
      expect(stderr).toContain("vendorctl datastore adopt-cluster");
      expect((await adopt()).stdout).toContain("Nodes: 2 in the datastore, 2 in the cluster, 0 nodes in both\n");
    });

    test("records the cluster whose nodes it has, and not in a dry run", async () => {
      await initialize();
      await becomeCluster(["n1", "n2"]);
      expect((await gc("--dry-run")).code).toBe(EXIT_OK);
      expect(await recordedUid()).toBeUndefined();

      expect((await gc()).code).toBe(EXIT_OK);
      expect(await recordedUid()).toBe(await uidOf());
    });

    test("goes on once an administrator confirms the move, but does not release most addresses without another word", async () => {
      await initialize({ kubeSystemUID: "of-the-first" });
      const before = await living();
      await becomeCluster(["o1"]);
      const shown = await adopt();
      expect(shown.code).toBe(EXIT_FAILED);
      expect(shown.stdout).toContain("The datastore is of cluster: of-the-first");
      expect(shown.stdout).toContain("Nodes: 2 in the datastore, 1 in the cluster, 0 nodes in both");
      expect(await recordedUid()).toBe("of-the-first");

      expect((await adopt("--yes")).code).toBe(EXIT_OK);
      expect(await recordedUid()).toBe(await uidOf());
      const { code, stderr } = await gc();
      expect(code).toBe(EXIT_FAILED);
      expect(stderr).toContain("40 of 40 look leaked, which is more than 20 %");
      expect(await handles()).toEqual(before);

      expect((await gc("--yes")).code).toBe(EXIT_OK);
      expect(await handles()).toEqual([]);
    });
  });

  test("does not delete the claims of most nodes at once without another word", async () => {
    const allocator = openAllocator(store, means({ now: () => before(60) }));
    for (let node = 0; node < 20; node += 1) {
      await assign(`p${node}`, `m${node}`);
      await allocator.releaseHandle(podRequest(`p${node}-c`, { pod: `p${node}`, node: `m${node}` }));
    }
    const { code, stderr } = await gc();
    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("20 of 20 nodes");
    expect((await readAllRecords(store)).affinities).toHaveLength(40);

    expect((await gc("--yes")).code).toBe(EXIT_OK);
    expect((await readAllRecords(store)).affinities).toEqual([]);
  });

  test("does not release most blocks at once without another word, however few nodes have them", async () => {
    const allocator = openAllocator(store, means({ now: () => before(60) }));
    // Four addresses in a block.
    const pods = Array.from({ length: 40 }, (_, index) => ({ pod: `p${index}`, node: `m${index % 2}` }));
    for (const { pod, node } of pods) await assign(pod, node);
    for (const owner of pods) await allocator.releaseHandle(podRequest(`${owner.pod}-c`, owner));
    const { code, stderr } = await gc();
    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("20 of 20 blocks are theirs");
    expect((await readAllRecords(store)).affinities).toHaveLength(20);

    expect((await gc("--yes")).code).toBe(EXIT_OK);
    expect((await readAllRecords(store)).affinities).toEqual([]);
  });

  test("keeps the addresses of nodes that exist: their containers may run", async () => {
    const addresses = await assign("static", "n1");
    const { code, stdout } = await gc();

    expect(code).toBe(EXIT_OK);
    for (const address of addresses) {
      expect(stdout).toContain(
        `kept ${address} (pod red/static, container "static-c" on node n1): pod red/static does not exist; its node exists`,
      );
    }
    await gc("--dead-node n2");
    expect(await handles()).toEqual(["net.static-c"]);
  });

  test("releases the addresses of pods that do not exist on a dead node, and explains each candidate", async () => {
    const [gone4, gone6] = await assign("gone", "n1");
    await createPod("runs", "n2", await assign("runs", "n2"));
    const [new4] = await assign("new", "n1", before(3));

    const dry = await gc("--dead-node n1 --dry-run");
    expect(dry.stdout).toContain(
      `would release ${gone4} (pod red/gone, container "gone-c" on node n1): pod red/gone does not exist\n`,
    );
    expect(await handles()).toEqual(["net.gone-c", "net.new-c", "net.runs-c"]);

    const { code, stdout } = await gc("--dead-node n1");
    expect(code).toBe(EXIT_OK);
    for (const address of [gone4, gone6]) {
      expect(stdout).toContain(
        `released ${address} (pod red/gone, container "gone-c" on node n1): pod red/gone does not exist\n`,
      );
    }
    expect(stdout).toContain(
      `kept ${new4} (pod red/new, container "new-c" on node n1): pod red/new does not exist; assigned 3 minutes ago, grace period 15 minutes\n`,
    );
    expect(stdout).toContain("Cluster: 2 leaked addresses, 2 kept for now");
    expect(await handles()).toEqual(["net.new-c", "net.runs-c"]);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  describe("what pods keep on a dead node", () => {
    const deletePod = (name: string) =>
      client.request({ method: "DELETE", path: `/api/v1/namespaces/red/pods/${name}` });

    test("waits for its pod, which gets it on another node; all else is released", async () => {
      const [own, others] = [
        await assignKept("db-0", { node: "n1", container: "c1" }),
        await assignKept("db-1", { node: "n2", container: "c2" }),
      ];
      const [gone] = await assign("gone", "n1");
      // StatefulSet and scheduler have made it again; its ADD finds the address in use.
      await createPod("db-0", "n2", []);
      const failure = await assignKept("db-0", { node: "n2", container: "c3", at: NOW }).catch(
        (error: unknown) => error,
      );
      expect(failure).toBeInstanceOf(KeptInUse);
      await gc();
      const dry = await gc("--dead-node n1 --dry-run");
      const title = (address: string) =>
        `${address} (pod red/db-0, container "c1" on node n1): pod red/db-0 is on node n2`;
      for (const address of own)
        expect(dry.stdout).toContain(`would end the use of ${title(address)}; it waits for pod red/db-0\n`);
      expect(await kept()).toEqual([...own.map((each) => `${each} c1`), ...others.map((each) => `${each} c2`)].sort());

      const { code, stdout } = await gc("--dead-node n1");
      expect(code).toBe(EXIT_OK);
      for (const address of own)
        expect(stdout).toContain(`ended the use of ${title(address)}; it waits for pod red/db-0\n`);
      expect(stdout).toContain(`released ${gone} (pod red/gone, container "gone-c" on node n1)`);
      expect(stdout).toContain("Cluster: 2 leaked addresses, 2 addresses that pods keep, 0 kept for now");
      expect(await kept()).toEqual(
        [...own.map((each) => `${each} waits`), ...others.map((each) => `${each} c2`)].sort(),
      );

      expect(await assignKept("db-0", { node: "n2", container: "c3", at: NOW })).toEqual(own);
      expect(findProblems(await readAllRecords(store))).toEqual([]);
    });

    test("is in use as long as the API has the pod there with it, and waits once that is deleted", async () => {
      const own = await assignKept("db-0", { node: "n1", container: "c1" });
      await createPod("db-0", "n1", own);
      await gc("--dead-node n1");
      expect(await kept()).toEqual(own.map((each) => `${each} c1`).sort());

      await deletePod("db-0");
      const { addresses } = JSON.parse((await gc("--dead-node n1 -o json")).stdout);
      expect(addresses.map(({ state }: { readonly state: string }) => state)).toEqual(["waits", "waits"]);
      expect(await kept()).toEqual(own.map((each) => `${each} waits`).sort());
    });
  });

  test("counts the grace period from the assignment, however long it is", async () => {
    await assign("gone", "n1", before(60));
    expect((await gc("--dead-node n1 --grace 2h")).stdout).toContain(
      "assigned 60 minutes ago, grace period 120 minutes",
    );
    expect(await handles()).toEqual(["net.gone-c"]);

    await gc("--dead-node n1 --grace 1h");
    expect(await handles()).toEqual([]);
  });

  test("releases the addresses and claims of a node that is gone at once, and deletes its blocks when they have rested", async () => {
    await assign("gone", "n2", before(1));
    await store.commit([{ kind: "delete", key: resourceKey("nodes", { name: "n2" }), revision: await nodeRevision() }]);
    await client.request({ method: "DELETE", path: "/api/v1/nodes/n2" });
    expect((await gc("--dry-run")).stdout).toContain("would release block 10.0.0.");

    const { stdout } = await gc();
    expect(stdout).toContain("node n2 is gone, and pod red/gone does not exist");
    expect(stdout).toContain("of node n2: the node is gone; its addresses rest for another 180 s");
    expect((await readAllRecords(store)).blocks.map(({ affinity }) => affinity)).toEqual([undefined, undefined]);
    await gc("", rested);
    const { blocks, affinities } = await readAllRecords(store);
    expect([blocks, affinities, await handles()]).toEqual([[], [], []]);
  });

  test("gives empty blocks back, except one of each pool and node", async () => {
    const pods = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    for (const pod of pods) await assign(pod, "n1");
    await gc("--dead-node n1");
    await gc("", rested);

    const { blocks } = await readAllRecords(store);
    expect(blocks.map(({ cidr }) => cidr.network.family).sort()).toEqual([4, 6]);
  });

  test("judges again by the live state", async () => {
    const addresses = await assign("late", "n1");
    // The pod is created between the list and the release.
    const racing = api.connect(async ({ method, path }, send) => {
      if (method === "GET" && path.endsWith("/pods/late")) await createPod("late", "n1", addresses);
      return send();
    });
    const { stdout } = await gc("--dead-node n1", { openKubeClient: async () => racing });

    expect(stdout).toContain("pod red/late does not exist; it is in use by now");
    expect(await handles()).toEqual(["net.late-c"]);
  });

  test("reads pods page by page", async () => {
    for (let pod = 0; pod < 1_001; pod += 1) await createPod(`p${pod}`, "n1", []);
    await gc();

    expect(lists).toBeGreaterThanOrEqual(4);
  });

  test("prints JSON", async () => {
    await assign("gone", "n1");
    const { addresses, dryRun } = JSON.parse((await gc("--dead-node n1 --dry-run -o json")).stdout);

    expect(dryRun).toBe(true);
    expect(addresses[0]).toMatchObject({
      address: expect.stringContaining("10.0.0."),
      pod: "gone",
      namespace: "red",
      node: "n1",
      state: "would release",
      reason: "pod red/gone does not exist",
      assignedAt: "2026-01-02T11:00:00.000Z",
    });
  });

  test("uses the given kubeconfig on etcd, that of the installed network config, or says that there is none", async () => {
    const asked: unknown[] = [];
    const openKubeClient: AdminSurroundings["openKubeClient"] = async (access) => {
      asked.push(access);
      return client;
    };
    await gc("--kubeconfig /given", { openKubeClient });
    await gc("", { openKubeClient });
    const config = {
      name: "net",
      cniVersion: "1.0.0",
      plugins: [{ type: "vendor", ipam: { type: "vendor-ipam" }, kubernetes: { kubeconfig: "/of-plugin" } }],
    };
    const files = { "/etc/cni/net.d/10-vendor.conflist": JSON.stringify(config) };
    await gc("", { openKubeClient, files, env: { DATASTORE_TYPE: "etcdv3" } });
    expect(asked).toEqual([
      { kubeconfigs: ["/given"] },
      { kubeconfigs: ["/kubeconfig"] },
      { kubeconfigs: ["/of-plugin"] },
    ]);

    const { code, stderr } = await gc("", { env: { DATASTORE_TYPE: "etcdv3" } });
    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("no access to it is configured");
    expect(stderr).toContain("--kubeconfig");
  });

  test.each([
    ["--grace 30s", "shorter than a minute"],
    ["--grace soon", "not a duration"],
    ["--name n1", "cannot be combined"],
    ["--any-namespace", "cannot be combined"],
  ])("refuses %s", async (words, reason) => {
    const { code, stderr } = await gc(words);

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain(reason);
  });

  test("is refused on the embedded datastore", async () => {
    const { code, stderr } = await gc("", { env: { DATASTORE_TYPE: "embedded", DATASTORE_PATH: import.meta.path } });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("there is no cluster");
  });

  test("judges the others if a record cannot be read, and reports it", async () => {
    await assign("gone", "n1");
    await seed(store, { kind: "put", key: resourceKey("nodes", { name: "n3" }), value: "{" });
    const { code, stdout, stderr } = await gc("--dead-node n1");

    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toContain("released 10.0.0.");
    expect(stderr).toContain("n3");
  });
});

async function nodeRevision(): Promise<string> {
  const { answers } = await store.read([{ kind: "key", key: resourceKey("nodes", { name: "n2" }) }]);
  return answers[0]?.[0]?.revision ?? "";
}
