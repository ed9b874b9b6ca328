/**
 * The move of the storage on a real API server: crd.vendor.org/v1 behind a real aggregated API becomes vendor.org/v3. Killed
 * now and then, undone once, and at the end no new pod gets an address of a running one.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { productMapping } from "../../src/datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../src/datastore/kube/store.ts";
import { API_VERSION, apiVersionOf, identity } from "../../src/identity.ts";
import { readAllRecords } from "../../src/ipam/all-records.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { DatastoreLocked } from "../../src/ipam/cluster.ts";
import { findProblems } from "../../src/ipam/invariants.ts";
import type { KubeClient } from "../../src/kube/api.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { clusterObjects } from "../../src/kube/objects.ts";
import { NODE_AGENT_CONFIGURATION } from "../../src/model/kinds.ts";
import type { StepPlan } from "../../src/upgrade/engine/step.ts";
import { FORMER_API, FORMER_API_SERVER, FORMER_UID } from "../../src/upgrade/former-names.ts";
import { lockGuard } from "../../src/upgrade/former-storage/guard-lock.ts";
import { formerObjectsStep } from "../../src/upgrade/steps/former-objects/step.ts";
import { storageStep } from "../../src/upgrade/steps/storage/step.ts";
import { copiesState } from "../../src/upgrade/steps/storage/used-copies.ts";
import { unlockStep } from "../../src/upgrade/steps/unlock/step.ts";
import { means, request, textsOf } from "../support/ipam.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { installCrds } from "../support/kube-crds.ts";
import { testNeeding } from "../support/needs.ts";
import { type OlderCluster, startOlderCluster } from "../support/older-cluster/older-cluster.ts";
import {
  createFormerPods,
  createFormerResources,
  FORMER_PODS,
  FORMER_TUNNELS,
} from "../support/older-cluster/resources.ts";
import { pollUntil } from "../support/poll.ts";
import { rejectionOf } from "../support/thrown-by.ts";
import { upgradeSite } from "../support/upgrade-site.ts";

const problem = apiServerProblem();
const testCluster = testNeeding(problem);
const PRESENT = `/apis/${API_VERSION}`;
const FORMER = `/apis/${apiVersionOf(FORMER_API)}`;
const POLICY = "namespaces/shop/networkpolicies";
const API_SERVICE = `/apis/apiregistration.k8s.io/v1/apiservices/${FORMER_API_SERVER.apiService}`;

describe("the storage of an earlier release", () => {
  let cluster: OlderCluster;
  let client: KubeClient;
  let plan: StepPlan;
  beforeAll(async () => {
    if (problem !== undefined) return;
    cluster = await startOlderCluster({ nodes: ["one", "two"], aggregatedApi: "identity" });
    const around = { environment: {}, warn: () => {}, now: () => new Date(), elapsed: () => performance.now() };
    client = await openKubeClient({ kubeconfigs: [cluster.adminKubeconfig] }, around);
    await createFormerPods(cluster.objects);
    await createFormerResources(client);
    await installCrds(cluster);
  }, 60_000);
  afterAll(async () => {
    await client?.close();
    await cluster?.stop();
  });

  /** `killedAt`: the process ends at its n-th write. */
  const siteWith = (killedAt = Number.POSITIVE_INFINITY) => {
    let count = 0;
    const request: KubeClient["request"] = async (each) => {
      if (each.method !== "GET") count += 1;
      if (count > killedAt) throw new Error("killed");
      const response = await client.request(each);
      if (count === killedAt && each.method !== "GET") throw new Error("killed");
      return response;
    };
    const api = { ...client, watch: client.watch.bind(client), request };
    const store = openKubeStore({ api, mappings: productMapping(() => crypto.randomUUID()), close: async () => {} });
    const site = upgradeSite({
      objects: clusterObjects(api),
      store,
      facts: { storage: "former", hasAggregatedApi: true },
      onWait: () => Bun.sleep(100),
    });
    return { ...site, backups, store };
  };
  const saved = new Map<string, string>();
  const backups = {
    save: async (name: string, text: string) => void (saved.has(name) || saved.set(name, text)),
    read: async (name: string) => saved.get(name),
  };
  const readJson = async (path: string) => JSON.parse((await client.request({ method: "GET", path })).text);

  testCluster("is planned without a write", async () => {
    const found = await storageStep.plan(siteWith(0));
    if (found === undefined) throw new Error("there is no plan");
    plan = found;

    expect(plan.obstacles).toEqual([]);
    expect(plan.changes.map(({ action, path }) => [action, path])).toEqual([
      ["update", `${FORMER}/clusterinformations/default`],
      ["update", API_SERVICE],
      ["create", undefined],
    ]);
  });

  testCluster("is moved and compared, however often the tool is killed", async () => {
    for (const write of [1, 2, 5, 14]) await rejectionLike(storageStep.act(siteWith(write), plan));
    const site = siteWith();
    expect((await storageStep.remaining(site, plan)).length).toBeGreaterThan(0);
    await storageStep.act(site, plan);

    expect(await storageStep.remaining(site, plan)).toEqual([]);
    expect(await storageStep.verify?.(site, plan)).toEqual([]);
    const former = await readJson(`${FORMER}/${POLICY}/default.allow-web`);
    const copy = await readJson(`${PRESENT}/${POLICY}/allow-web`);
    expect(copy.metadata).toMatchObject({
      labels: { team: "shop" },
      annotations: { [FORMER_UID]: former.metadata.uid },
    });
    expect(copy.metadata.uid).not.toBe(former.metadata.uid);
    expect((await readJson(API_SERVICE)).status.conditions).toMatchObject([{ type: "Available", reason: "Local" }]);
    const text = await cluster.kubectl(["get", "--raw", `${PRESENT}/ipamblocks/192-168-10-0-26`]);
    expect(text).toContain('"sequenceNumber":1690000000123456793');
    await storageStep.act(siteWith(0), plan);
  });

  testCluster("is locked: nothing is assigned", async () => {
    const { store } = siteWith();
    const assign = () => openAllocator(store, means()).assign(request("k8s-pod-network.soon", { node: "one" }));

    expect(await rejectionOf(assign)).toBeInstanceOf(DatastoreLocked);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  testCluster("is what it was after a rollback, and the aggregated API serves it again", async () => {
    for (const write of [3, 20]) await rejectionLike(storageStep.rollback?.(siteWith(write), plan));
    await storageStep.rollback?.(siteWith(), plan);

    await pollUntil(async () => {
      const served = await readJson(`${PRESENT}/${POLICY}/allow-web`);
      const former = await readJson(`${FORMER}/${POLICY}/default.allow-web`);
      return served.metadata?.uid === former.metadata.uid;
    }, "the aggregated API");
    expect((await readJson(`${FORMER}/clusterinformations/default`)).spec.datastoreReady).toBe(true);
    expect((await readJson(`${FORMER}/ipamblocks`)).items).toHaveLength(3);
    // Again: nothing is deleted through the aggregated API.
    await storageStep.rollback?.(siteWith(0), plan);
    await storageStep.act(siteWith(), plan);
  });

  testCluster("is locked again if somebody unlocks it, as long as the copies are not compared", async () => {
    const site = siteWith();
    expect(await copiesState(site.store)).toBe("untouched");
    const patch = '{"spec":{"datastoreReady":true}}';
    await cluster.kubectl([
      "patch",
      `clusterinformations.${identity.apiGroup}`,
      "default",
      "--type=merge",
      "-p",
      patch,
    ]);
    expect(await copiesState(site.store)).toBe("untouched");
    await openAllocator(site.store, means()).assign(request("k8s-pod-network.meanwhile", { node: "one" }));

    expect(await copiesState(site.store)).toBe("used");
    expect(await storageStep.rollbackObstacles?.(site, plan)).toHaveLength(1);
    expect([await lockGuard(site, "both").look(), await lockGuard(site, "both").look()]).toEqual([true, false]);
    const assign = () => openAllocator(site.store, means()).assign(request("k8s-pod-network.soon", { node: "one" }));
    expect((await rejectionOf(assign)).details).not.toContain("datastoreReady");
  });

  testCluster(
    "ends its lock only after the pod that it alone knows is deleted, by the command that is named",
    async () => {
      const { objects, kubelets } = cluster;
      // As long as DEL fails because of the lock, the kubelet does not complete the deletion.
      kubelets.behave(({ metadata }) => metadata.name === "late", { kind: "hold" });
      const block = `${FORMER}/ipamblocks/192-168-77-64-26`;
      const { spec } = await readJson(block);
      const secondary = { node: "two", pod: "late", namespace: "shop" };
      spec.allocations[7] = spec.attributes.push({ handle_id: "k8s-pod-network.late", secondary }) - 1;
      spec.unallocated = spec.unallocated.filter((ordinal: number) => ordinal !== 7);
      await objects.patch(block, { spec });
      await objects.create("/api/v1/namespaces/shop/pods", {
        metadata: { name: "late", namespace: "shop" },
        spec: { nodeName: "two", containers: [{ name: "main", image: "main" }] },
      });
      const podIPs = [{ ip: "192.168.77.71" }];
      await objects.patch("/api/v1/namespaces/shop/pods/late/status", { status: { podIP: "192.168.77.71", podIPs } });

      const { details } = await rejectionOf(() => unlockStep.act(siteWith(), plan));
      await cluster.kubectl(["--namespace", "shop", "delete", "pod", "late", "--wait=false"]);
      expect((await rejectionOf(() => unlockStep.act(siteWith(), plan))).message).toContain("pod shop/late has 192");
      const [, command = ""] = /: kubectl ([^;]*?)(;|\. )/.exec(details) ?? [];
      await cluster.kubectl(command.split(" "));
      await unlockStep.act(siteWith(), plan);
    },
  );

  testCluster("is left behind by the end of the lock: no pod gets an address of a running one", async () => {
    const site = siteWith();
    await unlockStep.act(site, plan);
    const allocator = openAllocator(site.store, means());
    const before = (await readAllRecords(site.store)).handles.map(({ handleId }) => handleId);
    expect(before).toContain("k8s-pod-network.meanwhile");
    const given: string[] = [];
    for (const node of ["one", "two"]) {
      const handles = Array.from({ length: 10 }, (_, index) => `k8s-pod-network.${node}${index}`);
      for (const handle of handles) given.push(...textsOf(await allocator.assign(request(handle, { node }))));
    }
    const used = [...FORMER_PODS.map(({ address }) => address), ...Object.values(FORMER_TUNNELS)];

    expect(new Set([...given, ...used]).size).toBe(20 + used.length);
    expect(given.filter((address) => !/^192\.168\.(10|77)\./.test(address))).toEqual([]);
    const [pod] = FORMER_PODS;
    await allocator.releaseHandle({ handle: `k8s-pod-network.${pod?.container}`, node: pod?.node ?? "" });
    expect(findProblems(await readAllRecords(site.store))).toEqual([]);
    expect((await rejectionOf(async () => storageStep.rollback?.(site, plan))).kind).toBe("resource-in-use");
    expect(await storageStep.rollbackObstacles?.(site, plan)).toHaveLength(1);
  });

  testCluster("needs no APIService: the API server creates its own, and discovery lists the new kinds", async () => {
    const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const listed = async () => (await client.request({ method: "GET", path: "/apis", accept })).text;
    await formerObjectsStep.act(siteWith(), { ...plan, changes: [], data: { roles: [] } });
    await pollUntil(
      async () => (await listed()).includes(`"resource":"${NODE_AGENT_CONFIGURATION.plural}"`),
      "the kinds of this release in the discovery",
    );
    await pollUntil(async () => {
      const { metadata } = await readJson(API_SERVICE);
      return metadata?.labels?.["kube-aggregator.kubernetes.io/automanaged"] !== undefined;
    }, "the APIService of the definitions");

    expect((await readJson(`${PRESENT}/${POLICY}/allow-web`)).metadata.name).toBe("allow-web");
    expect(identity.apiGroup).not.toBe(FORMER_API.group);
  });
});

/** The process was killed. */
async function rejectionLike(work: Promise<unknown> | undefined): Promise<void> {
  const failure = await Promise.resolve(work).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(String(failure)).toContain("killed");
}
