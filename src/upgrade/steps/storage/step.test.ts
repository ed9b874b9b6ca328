import { describe, expect, test } from "bun:test";
import { means, request, textsOf } from "../../../../test/support/ipam.ts";
import { type Around, startFakeApi } from "../../../../test/support/kube-api/fake-api.ts";
import {
  createFormerResources,
  FORMER_OWNER_UID,
  FORMER_PODS,
  FORMER_TUNNELS,
  formerResources,
} from "../../../../test/support/older-cluster/resources.ts";
import { proofSize } from "../../../../test/support/proof-size.ts";
import { rejectionOf } from "../../../../test/support/thrown-by.ts";
import { upgradeSite } from "../../../../test/support/upgrade-site.ts";
import { productMapping } from "../../../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../../datastore/kube/store.ts";
import { API_VERSION, identity } from "../../../identity.ts";
import { readAllRecords } from "../../../ipam/all-records.ts";
import { openAllocator } from "../../../ipam/allocator.ts";
import { DatastoreLocked } from "../../../ipam/cluster.ts";
import { findProblems } from "../../../ipam/invariants.ts";
import { clusterObjects } from "../../../kube/objects.ts";
import { IPAM_CONFIGURATION_KEY } from "../../../model/keys.ts";
import { UPGRADE_LOCK_ANNOTATION } from "../../../model/upgrade-lock-annotation.ts";
import { setLock } from "../../datastore-migration/migrate.ts";
import { FORMER_UID } from "../../former-names.ts";
import { lockGuard } from "../../former-storage/guard-lock.ts";
import { lockedSince } from "../../former-storage/lock.ts";
import { ALL_PREFIXES, readRecords } from "../../former-storage/stored-records.ts";
import { readFormerNodes } from "../../nodes/nodes-at-lock.ts";
import { nameOf } from "../../nodes/pods.ts";
import { remainingNodesStep } from "../remaining-nodes/step.ts";
import { unlockStep } from "../unlock/step.ts";
import { storageStep } from "./step.ts";

const FORMER = `/apis/crd.${identity.apiGroup}/v1`;
const PRESENT = `/apis/${API_VERSION}`;
const PLAN = { step: "storage", changes: [], obstacles: [], notes: [], estimatedSeconds: 0, data: {} };

type Api = ReturnType<typeof startFakeApi>;

function storeOn(api: Api, around?: Around) {
  let mark = 0;
  const mappings = productMapping(() => `mark-${++mark}`);
  return openKubeStore({ api: api.connect(around), mappings, close: async () => {} });
}

function siteOn(api: Api, around?: Around) {
  const objects = clusterObjects(api.connect(around));
  return upgradeSite({ objects, store: storeOn(api, around), facts: { storage: "former" } });
}

async function formerCluster(resources = formerResources()): Promise<Api> {
  const api = startFakeApi();
  await createFormerResources(api.connect(), resources);
  return api;
}

/** It serves the kind of the policy's owner. */
async function formerClusterWithOwner(uid = FORMER_OWNER_UID): Promise<Api> {
  const resources = formerResources().map(({ plural, object }) => {
    const annotations = Object.entries<string>(object.metadata.annotations ?? {}).map(
      ([name, text]) => [name, text.replace(FORMER_OWNER_UID, uid)] as const,
    );
    if (annotations.length === 0) return { plural, object };
    const metadata = { ...object.metadata, annotations: Object.fromEntries(annotations) };
    return { plural, object: { ...object, metadata } };
  });
  const api = await formerCluster(resources);
  const verbs = ["get", "list", "patch"];
  await clusterObjects(api.connect()).create("/apis/apps", {
    metadata: { name: "v1" },
    resources: [{ name: "deployments", kind: "Deployment", namespaced: true, verbs }],
  });
  return api;
}

/** What the present storage contains, without what differs from run to run. */
async function contents(api: Api) {
  const records = await readRecords(storeOn(api), ALL_PREFIXES);
  return Array.from(records.values(), ({ key, value }) => [
    key,
    value.replaceAll(/"uid":"[^"]*",?|"creationTimestamp":"[^"]*",?|"locked-since":"[^"]*"/g, ""),
  ]);
}

const MOMENTS = ["before", "after"] as const;
type Moment = (typeof MOMENTS)[number];

/** Ends the process at the n-th write: before the server gets it, or before the response arrives. */
function killedAt(write: number, when: Moment): Around {
  let count = 0;
  return async ({ method }, send) => {
    if (method === "GET") return send();
    count += 1;
    if (count > write) throw new Error("killed");
    if (count === write) {
      if (when === "after") send();
      throw new Error("killed");
    }
    return send();
  };
}

async function writesOf(work: (around: Around) => Promise<unknown>): Promise<number> {
  let count = 0;
  await work(async ({ method }, send) => {
    if (method !== "GET") count += 1;
    return send();
  });
  return count;
}

async function moved(api: Api): Promise<void> {
  const site = siteOn(api);
  await storageStep.act(site, PLAN);
  expect(await storageStep.remaining(site, PLAN)).toEqual([]);
  expect(await storageStep.verify?.(site, PLAN)).toEqual([]);
}

/** Asked before a rollback begins. */
async function obstaclesOf(site: ReturnType<typeof siteOn>) {
  const each = await Promise.all([unlockStep, storageStep].map((step) => step.rollbackObstacles?.(site, PLAN)));
  return each.flatMap((obstacles) => obstacles ?? []);
}

test("the move remembers the nodes of the time of the lock: those that join later have no former agent", async () => {
  const api = await formerCluster();
  const objects = clusterObjects(api.connect());
  const site = siteOn(api);
  expect(await readFormerNodes(site)).toBeUndefined();
  const before = (await objects.list("/api/v1/nodes")).map(nameOf);
  await objects.create("/api/v1/nodes", { metadata: { name: "present" } });
  await storageStep.act(site, PLAN);
  await objects.create("/api/v1/nodes", { metadata: { name: "later" } });
  await storageStep.act(site, PLAN);

  expect(await readFormerNodes(site)).toEqual(new Set([...before, "present"]));
});

const USED = [...FORMER_PODS.map(({ address }) => address), ...Object.values(FORMER_TUNNELS)];

describe("the plan of the move", () => {
  test("says what is copied, and names fields and kinds that have no meaning any more", async () => {
    const api = await formerCluster();
    const plan = await storageStep.plan(siteOn(api));

    expect(plan?.obstacles).toEqual([]);
    expect(plan?.changes.map(({ action }) => action)).toEqual(["update", "create"]);
    expect(plan?.changes.at(-1)?.what).toBe("Copies of 18 resources and 15 records of IPAM (3 blocks)");
    // What former agents and controllers wrote themselves means what this release does anyway.
    expect(plan?.notes.join("\n")).not.toMatch(/FelixConfiguration|KubeControllersConfiguration/);
    expect(await contents(api)).toEqual([]);
    const site = siteOn(api);
    await site.objects.patch(`${FORMER}/kubecontrollersconfigurations/default`, {
      spec: { logSeverityScreen: "Debug" },
    });
    expect((await storageStep.plan(site))?.notes).toContain(
      'KubeControllersConfiguration "default": fields that this release does not have are not copied: spec.logSeverityScreen',
    );
  });

  test("is refused for what this release cannot store, with the object, the field and the remedy", async () => {
    const wrong = { plural: "ippools", object: { metadata: { name: "odd" }, spec: { cidr: "10.0.0.0/33" } } };
    const api = await formerCluster([...formerResources(), wrong]);
    const plan = await storageStep.plan(siteOn(api));

    expect(plan?.obstacles).toEqual([
      {
        message: expect.stringMatching(/^IPPool "odd" cannot be moved: .*cidr.*10\.0\.0\.0\/33/),
        remedy: `correct or delete it: kubectl edit ippools.crd.${identity.apiGroup} odd`,
      },
    ]);
    expect((await rejectionOf(() => storageStep.act(siteOn(api), PLAN))).kind).toBe("resource-invalid");
  });

  test("is refused for failsafe ports that would be open more widely", async () => {
    const api = await formerCluster();
    const site = siteOn(api);
    const change = (entry: object) =>
      site.objects.patch(`${FORMER}/felixconfigurations/default`, { spec: { failsafeInboundHostPorts: [entry] } });
    const remedy = `correct it: kubectl edit felixconfigurations.crd.${identity.apiGroup} default`;

    await change({ protocol: "tcp", port: 2222, net: "10.0.0.0/8" });
    const restricted = await storageStep.plan(site);
    expect(restricted?.obstacles).toEqual([
      { message: expect.stringContaining('does not have "failsafeInboundHostPorts[0].net"'), remedy },
    ]);
    // The default, which is what would apply instead, has more open ports.
    await change({ protocol: "other", port: 2222 });
    expect((await storageStep.plan(siteOn(api)))?.obstacles).toEqual([
      { message: expect.stringContaining("failsafeInboundHostPorts[0].protocol"), remedy },
    ]);
    expect((await rejectionOf(() => storageStep.act(site, PLAN))).kind).toBe("resource-invalid");
  });

  test("is refused if somebody else has locked the datastore: the upgrade would unlock it", async () => {
    const api = await formerCluster();
    const site = siteOn(api);
    await site.objects.patch(`${FORMER}/clusterinformations/default`, { spec: { datastoreReady: false } });

    expect((await storageStep.plan(site))?.obstacles).toEqual([
      {
        message: expect.stringContaining("the datastore is locked already"),
        remedy: expect.stringContaining(`kubectl patch clusterinformations.crd.${identity.apiGroup} default`),
      },
    ]);
  });

  test("is not needed by a cluster of the present storage", async () => {
    const objects = clusterObjects(startFakeApi().connect());
    const site = upgradeSite({ objects, facts: { storage: "current" } });

    expect([await storageStep.plan(site), await unlockStep.plan(site)]).toEqual([undefined, undefined]);
  });
});

describe("the move", () => {
  test.each(["v3.15.0", "v3.22.1", "v3.26.1", "v3.28.0"])("of %s: everything is copied and locked", async (release) => {
    const api = await formerCluster(formerResources({ release }));
    await moved(api);

    expect(api.object(`${FORMER}/clusterinformations/default`)?.["spec"]).toMatchObject({ datastoreReady: false });
    expect(api.object(`${PRESENT}/clusterinformations/default`)?.["spec"]).toMatchObject({
      clusterGUID: "0123456789abcdef0123456789abcdef",
      datastoreReady: false,
      [`${identity.product}Version`]: release,
    });
    const store = storeOn(api);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
    const refused = await rejectionOf(() => openAllocator(store, means()).assign(request("net.new", { node: "one" })));
    expect(refused).toBeInstanceOf(DatastoreLocked);
  });

  test("copies what users see: names, labels, annotations, owners outside the product, and the former UID", async () => {
    const api = await formerClusterWithOwner();
    await moved(api);
    const policy = api.object(`${PRESENT}/namespaces/shop/networkpolicies/allow-web`);
    const former = api.object(`${FORMER}/namespaces/shop/networkpolicies/default.allow-web`);

    expect(policy?.metadata).toMatchObject({
      labels: { team: "shop" },
      annotations: { reviewed: "yes", [FORMER_UID]: former?.metadata["uid"] },
      ownerReferences: [{ kind: "Deployment", name: "web" }],
    });
    expect(policy?.["spec"]).toMatchObject({ tier: "default", selector: 'app == "web"' });
    expect(api.object(`${PRESENT}/nodeagentconfigurations/default`)?.["spec"]).toEqual({
      defaultEndpointToHostAction: "Return",
      failsafeInboundHostPorts: [{ protocol: "tcp", port: 2222 }],
      healthPort: 9098,
      tablesRefreshInterval: "60s",
    });
    const automatic = api.object(`${PRESENT}/hostendpoints/two-auto-hep`);
    expect(automatic?.metadata["labels"]).toEqual({ [`${identity.labelPrefix}created-by`]: identity.controllers });
    expect(api.object(`${PRESENT}/ippools/default-ipv4-ippool`)?.metadata["finalizers"]).toEqual([
      `${identity.labelPrefix}blocks`,
    ]);
  });

  test("leaves out owners that do not exist with this UID: the garbage collector would delete the copy", async () => {
    for (const api of [await formerCluster(), await formerClusterWithOwner("another")]) {
      expect((await storageStep.plan(siteOn(api)))?.notes).toContain(
        'NetworkPolicy "shop/default.allow-web": its owner Deployment "web" does not exist any more; the reference to it is not copied',
      );
      await moved(api);
      const policy = api.object(`${PRESENT}/namespaces/shop/networkpolicies/allow-web`);
      expect(policy?.metadata["ownerReferences"]).toBeUndefined();
    }
  });

  test("copies IPAM entry by entry, with exact sequence numbers, nodes of handles, and what nodes borrow", async () => {
    const api = await formerCluster();
    await moved(api);
    const block = api.object(`${PRESENT}/ipamblocks/192-168-10-0-26`)?.["spec"];

    expect(JSON.stringify(block)).toContain("1690000000123456793");
    const handle = api.object(`${PRESENT}/ipamhandles/k8s-pod-network.dddd4444`);
    expect(handle?.metadata["labels"]).toEqual({ [`${identity.labelPrefix}node`]: "two" });
    const borrowed = (await storeOn(api).read([{ kind: "prefix", prefix: `${identity.etcdRoot}/ipam/v2/borrowed/` }]))
      .answers;
    expect(borrowed.flat().map(({ key }) => key)).toEqual([
      `${identity.etcdRoot}/ipam/v2/borrowed/two/ipv4/block/192.168.10.0-26`,
      `${identity.etcdRoot}/ipam/v2/borrowed/two/ipv4/block/192.168.200.0-26`,
    ]);
  });

  test("twice writes nothing", async () => {
    const api = await formerCluster();
    await moved(api);

    expect(await writesOf((around) => storageStep.act(siteOn(api, around), PLAN))).toBe(0);
  });

  test("killed at any write and started again: the end is that of an undisturbed one", async () => {
    const undisturbed = await formerCluster();
    await moved(undisturbed);
    const expected = await contents(undisturbed);
    const fresh = await formerCluster();
    const writes = await writesOf((around) => storageStep.act(siteOn(fresh, around), PLAN));
    expect(writes).toBeGreaterThan(30);

    for (let write = 1; write <= writes; write += 1) {
      const one: readonly Moment[] = [write % 2 === 0 ? "before" : "after"];
      for (const when of proofSize({ everyDay: one, soak: MOMENTS })) {
        const api = await formerCluster();
        await storageStep.act(siteOn(api, killedAt(write, when)), PLAN).catch(() => {});
        await moved(api);
        expect(await contents(api)).toEqual(expected);
      }
    }
  });

  test("stops at a resource that is not a copy, and changes nothing of it", async () => {
    const api = await formerCluster();
    const spec = { cidr: "10.99.0.0/16" };
    const body = JSON.stringify({ kind: "IPPool", metadata: { name: "default-ipv4-ippool" }, spec });
    await api.connect().request({ method: "POST", path: `${PRESENT}/ippools`, body });

    const refused = await rejectionOf(() => storageStep.act(siteOn(api), PLAN));
    expect([refused.kind, refused.message]).toEqual([
      "resource-exists",
      expect.stringContaining("default-ipv4-ippool"),
    ]);
    expect(api.object(`${PRESENT}/ippools/default-ipv4-ippool`)?.["spec"]).toEqual(spec);
  });

  test("is undone completely, also if that is killed at any write", async () => {
    const counting = await formerCluster();
    await moved(counting);
    const writes = await writesOf(
      (around) => storageStep.rollback?.(siteOn(counting, around), PLAN) ?? Promise.reject(),
    );

    for (let write = 1; write <= writes; write += 1) {
      const api = await formerCluster();
      await moved(api);
      const { backups } = siteOn(api);
      const killed = siteOn(api, killedAt(write, write % 2 === 0 ? "before" : "after"));
      await storageStep.rollback?.({ ...killed, backups }, PLAN).catch(() => {});
      await storageStep.rollback?.({ ...siteOn(api), backups }, PLAN);
      expect(await contents(api)).toEqual([]);
      expect(api.object(`${FORMER}/clusterinformations/default`)?.["spec"]).toMatchObject({ datastoreReady: true });
    }
  });
});

describe("the end of the lock", () => {
  test("comes after every ADD that had begun before; what such an ADD wrote is copied", async () => {
    const api = await formerCluster();
    const site = siteOn(api);
    await storageStep.act(site, PLAN);
    const begun = site.now();
    const path = `${FORMER}/ipamblocks/192-168-77-64-26`;
    const spec = structuredClone(api.object(path)?.["spec"]) as Record<string, unknown[]>;
    const late = { handle_id: "k8s-pod-network.late", secondary: { node: "two", pod: "late", namespace: "shop" } };
    spec["attributes"]?.push(late);
    (spec["allocations"] ?? [])[7] = 2;
    spec["unallocated"] = (spec["unallocated"] ?? []).filter((ordinal) => ordinal !== 7);
    await site.objects.patch(path, { spec });
    await site.objects.create(`${FORMER}/ipamhandles`, {
      metadata: { name: "k8s-pod-network.late" },
      spec: { handleID: "k8s-pod-network.late", block: { "192.168.77.64/26": 1 }, deleted: false },
    });
    expect([await storageStep.remaining(site, PLAN), await storageStep.verify?.(site, PLAN)]).toEqual([[], []]);
    await unlockStep.act(site, PLAN);

    expect(site.now().getTime() - begun.getTime()).toBe(130_000);
    expect(await unlockStep.remaining(site, PLAN)).toEqual([]);
    const world = await readAllRecords(storeOn(api));
    expect(world.handles.map(({ handleId }) => handleId)).toContain("k8s-pod-network.late");
    expect(findProblems(world)).toEqual([]);
    const { backups } = site;
    expect(await writesOf((around) => unlockStep.act({ ...siteOn(api, around), backups }, PLAN))).toBe(0);
  });

  test("comes after copies that were deleted meanwhile are made again; changed ones stay", async () => {
    const api = await formerCluster();
    await moved(api);
    const site = siteOn(api);
    const policy = `${PRESENT}/namespaces/shop/networkpolicies/allow-web`;
    await site.objects.remove(policy);
    const peer = `${PRESENT}/bgppeers/rack-switch`;
    await site.objects.patch(peer, { spec: { asNumber: 64999 } });
    await unlockStep.act(site, PLAN);

    expect(api.object(policy)?.["spec"]).toMatchObject({ selector: 'app == "web"' });
    expect(api.object(peer)?.["spec"]).toMatchObject({ asNumber: 64999 });
    expect(site.lines).toContain(
      'NetworkPolicy "shop/default.allow-web" was deleted since it was copied, and is copied again',
    );
  });

  test("does not come while something deletes a copy again and again", async () => {
    const api = await formerCluster();
    await moved(api);
    const policy = `${PRESENT}/namespaces/shop/networkpolicies/allow-web`;
    const collected: Around = async ({ method, path }, send) => {
      const response = send();
      if (method === "POST" && path.endsWith("/shop/networkpolicies"))
        await clusterObjects(api.connect()).remove(policy);
      return response;
    };
    await clusterObjects(api.connect()).remove(policy);

    const refused = await rejectionOf(() => unlockStep.act(siteOn(api, collected), PLAN));
    expect(refused.message).toContain('NetworkPolicy "shop/default.allow-web" is not copied yet');
    expect(api.object(`${PRESENT}/clusterinformations/default`)?.["spec"]).toMatchObject({ datastoreReady: false });
  });

  test("killed at any write and started again it ends the same", async () => {
    for (const write of [1, 2]) {
      const api = await formerCluster();
      await moved(api);
      await unlockStep.act(siteOn(api, killedAt(write, write === 1 ? "before" : "after")), PLAN).catch(() => {});
      await unlockStep.act(siteOn(api), PLAN);
      expect(api.object(`${PRESENT}/clusterinformations/default`)?.["spec"]).toMatchObject({ datastoreReady: true });
    }
  });

  test("is the point of no return", async () => {
    const api = await formerCluster();
    await moved(api);
    const site = siteOn(api);
    expect(await obstaclesOf(site)).toEqual([]);
    await unlockStep.act(site, PLAN);

    expect(await storageStep.remaining(site, PLAN)).toEqual([]);
    expect((await rejectionOf(async () => storageStep.rollback?.(site, PLAN))).kind).toBe("resource-in-use");
    expect(await obstaclesOf(site)).toHaveLength(1);
    // Also if the aggregated API is back, and shows the former storage.
    const name = `v3.${identity.apiGroup}`;
    const spec = { service: { name: "api", namespace: "n" } };
    await site.objects.create("/apis/apiregistration.k8s.io/v1/apiservices", { metadata: { name }, spec });
    expect(await obstaclesOf(site)).toHaveLength(1);
  });

  test("stays the point of no return if the datastore is locked later, as before a migration", async () => {
    const api = await formerCluster();
    await moved(api);
    const site = siteOn(api);
    await unlockStep.act(site, PLAN);
    await openAllocator(storeOn(api), means()).assign(request("k8s-pod-network.new", { node: "one" }));
    await setLock(storeOn(api), "locked");
    const before = await contents(api);

    expect(await obstaclesOf(site)).toHaveLength(1);
    expect((await rejectionOf(async () => storageStep.rollback?.(site, PLAN))).kind).toBe("resource-in-use");
    expect(await contents(api)).toEqual(before);
    expect(api.object(`${FORMER}/clusterinformations/default`)?.["spec"]).toMatchObject({ datastoreReady: false });
  });

  test("no pod gets an address of a running one afterwards, until all blocks are full", async () => {
    const api = await formerCluster();
    await moved(api);
    await unlockStep.act(siteOn(api), PLAN);
    const allocator = openAllocator(storeOn(api), means());
    const given: string[] = [];
    for (let count = 0; count < 150; count += 1) {
      const node = count % 2 === 0 ? "one" : "two";
      given.push(...textsOf(await allocator.assign(request(`k8s-pod-network.new${count}`, { node }))));
    }

    expect(new Set([...given, ...USED]).size).toBe(150 + USED.length);
    expect(given).not.toContain("192.168.10.2");
    const [pod] = FORMER_PODS;
    await allocator.releaseHandle({ handle: `k8s-pod-network.${pod?.container}`, node: pod?.node ?? "" });
    expect(findProblems(await readAllRecords(storeOn(api)))).toEqual([]);
  });
});

describe("a lock that somebody else ends", () => {
  const INFORMATION = `${PRESENT}/clusterinformations/default`;
  const FORMER_INFORMATION = `${FORMER}/clusterinformations/default`;
  const isReady = (api: Api, path = INFORMATION) => Object(api.object(path)?.["spec"]).datastoreReady;
  const unlock = (api: Api, path = INFORMATION) =>
    clusterObjects(api.connect()).patch(path, { spec: { datastoreReady: true } });
  const assign = async (api: Api, handle: string, attributes = {}) =>
    textsOf(await openAllocator(storeOn(api), means()).assign(request(handle, { node: "one", attributes })));
  /** As a node agent of this release starts a pod. */
  const start = async (api: Api, pod: string) => {
    const [ip = ""] = await assign(api, `k8s-pod-network.${pod}`, { pod, namespace: "shop" });
    const metadata = { name: pod, namespace: "shop" };
    await clusterObjects(api.connect()).create("/api/v1/namespaces/shop/pods", { metadata, status: { podIP: ip } });
    return ip;
  };
  const handles = async (api: Api) => (await readAllRecords(storeOn(api))).handles.map(({ handleId }) => handleId);

  async function movedSite() {
    const api = await formerCluster();
    const site = siteOn(api);
    await storageStep.act(site, PLAN);
    return { api, site };
  }

  /** As a former ADD writes it that had begun before the lock. */
  async function addLate(api: Api, pod: string): Promise<void> {
    const objects = clusterObjects(api.connect());
    const path = `${FORMER}/ipamblocks/192-168-77-64-26`;
    const spec = structuredClone(api.object(path)?.["spec"]) as Record<string, unknown[]>;
    spec["attributes"]?.push({
      handle_id: `k8s-pod-network.${pod}`,
      secondary: { node: "two", pod, namespace: "shop" },
    });
    (spec["allocations"] ?? [])[7] = 2;
    spec["unallocated"] = (spec["unallocated"] ?? []).filter((ordinal) => ordinal !== 7);
    await objects.patch(path, { spec });
    await objects.create(`${FORMER}/ipamhandles`, {
      metadata: { name: `k8s-pod-network.${pod}` },
      spec: { handleID: `k8s-pod-network.${pod}`, block: { "192.168.77.64/26": 1 }, deleted: false },
    });
    await objects.create("/api/v1/namespaces/shop/pods", {
      metadata: { name: pod, namespace: "shop" },
      status: { podIPs: [{ ip: "192.168.77.71" }] },
    });
  }

  /** It is removed: the present storage has its address free, the former one does not know. */
  async function releaseFormerPod(api: Api, metadata: object): Promise<void> {
    const [pod] = FORMER_PODS;
    if (pod === undefined) throw new Error("there is no pod");
    const { name, namespace, node, container, address } = pod;
    const objects = clusterObjects(api.connect());
    await objects.create(`/api/v1/namespaces/${namespace}/pods`, {
      metadata: { name, namespace, ...metadata },
      status: { podIP: address, podIPs: [{ ip: address }] },
    });
    await openAllocator(storeOn(api), means()).releaseHandle({ handle: `k8s-pod-network.${container}`, node });
  }

  /** As a former DEL writes it that had begun before the lock. */
  async function deleteLate(api: Api): Promise<string> {
    const objects = clusterObjects(api.connect());
    const path = `${FORMER}/ipamblocks/192-168-77-64-26`;
    const spec = structuredClone(api.object(path)?.["spec"]) as Record<string, unknown[]>;
    (spec["allocations"] ?? [])[2] = null;
    spec["unallocated"]?.push(2);
    spec["attributes"]?.pop();
    await objects.patch(path, { spec });
    await objects.remove(`${FORMER}/ipamhandles/k8s-pod-network.cccc3333`);
    return "k8s-pod-network.cccc3333";
  }

  test.each([
    ["the datastore", INFORMATION],
    ["the former storage", FORMER_INFORMATION],
  ])("%s is locked again, and ADDs get their time again", async (what, path) => {
    const { api, site } = await movedSite();
    const guard = lockGuard(site, "both");
    expect(await guard.look()).toBe(false);
    await site.wait(100_000);
    await unlock(api, path);

    expect([await guard.look(), await guard.look()]).toEqual([true, false]);
    expect([isReady(api), isReady(api, FORMER_INFORMATION)]).toEqual([false, false]);
    expect(await lockedSince(storeOn(api))).toEqual(site.now());
    expect(site.lines.at(-1)).toMatch(new RegExp(`^Somebody else has unlocked ${what}.*locked again`));
  });

  test("after the end of the lock, only the former storage is locked again", async () => {
    const { api, site } = await movedSite();
    await unlockStep.act(site, PLAN);
    await unlock(api, FORMER_INFORMATION);

    expect(await lockGuard(site, "former").look()).toBe(true);
    expect([isReady(api), isReady(api, FORMER_INFORMATION)]).toEqual([true, false]);
  });

  test("after the end of the lock and while no run looks on: the nodes are not done, and what was assigned is found", async () => {
    const { api, site } = await movedSite();
    await unlockStep.act(site, PLAN);
    expect(await remainingNodesStep.verify?.(site, PLAN)).toEqual([]);
    await unlock(api, FORMER_INFORMATION);
    await addLate(api, "late");

    expect(await remainingNodesStep.remaining(site, PLAN)).toContainEqual("the former storage is not locked");
    expect(await remainingNodesStep.verify?.(site, PLAN)).toEqual([
      expect.stringMatching(/pod shop\/late has 192\.168\.77\.71.*delete pod late --force/),
    ]);
    await clusterObjects(api.connect()).remove("/api/v1/namespaces/shop/pods/late");
    expect(await remainingNodesStep.verify?.(site, PLAN)).toEqual([]);
  });

  test.each([
    ["that waited for its removal", { deletionTimestamp: "2026-01-01T00:00:00Z" }],
    ["whose status is not up to date yet", {}],
  ])("after the end of the lock, a pod %s is not one that former agents have started", async (_, metadata) => {
    const { api, site } = await movedSite();
    await unlockStep.act(site, PLAN);
    await releaseFormerPod(api, metadata);

    expect(await remainingNodesStep.verify?.(site, PLAN)).toEqual([]);
  });

  test("after the end of the lock and without a record of the addresses: pods that end are none of former agents", async () => {
    const { api, site } = await movedSite();
    await unlockStep.act(site, PLAN);
    await releaseFormerPod(api, { deletionTimestamp: "2026-01-01T00:00:00Z" });
    const backups = { ...site.backups, read: async () => undefined };

    expect(await remainingNodesStep.verify?.({ ...site, backups }, PLAN)).toEqual([]);
  });

  test.each(["upgrade apply", "upgrade rollback"] as const)("again and again, stops %s", async (command) => {
    const { api, site } = await movedSite();
    const guard = lockGuard(site, "both", command);
    const look = async () => {
      await unlock(api);
      await guard.look();
    };
    for (let count = 0; count < 5; count += 1) await look();

    const { message, details } = await rejectionOf(look);
    expect([message, details]).toEqual([
      expect.stringContaining("again and again"),
      expect.stringContaining(`run ${command} again`),
    ]);
    expect(isReady(api)).toBe(false);
  });

  test("addresses that were assigned meanwhile stay; what was not compared is compared before the end", async () => {
    const { api, site } = await movedSite();
    await unlock(api);
    const given = await assign(api, "k8s-pod-network.meanwhile");
    expect(await unlockStep.remaining(site, PLAN)).toEqual([expect.stringContaining("somebody else")]);
    const begun = site.now();
    await unlockStep.act(site, PLAN);

    expect(site.now().getTime() - begun.getTime()).toBe(130_000);
    expect(await handles(api)).toContain("k8s-pod-network.meanwhile");
    expect(await assign(api, "k8s-pod-network.next")).not.toEqual(given);
    expect(findProblems(await readAllRecords(storeOn(api)))).toEqual([]);
    expect([isReady(api), isReady(api, FORMER_INFORMATION)]).toEqual([true, false]);
    expect(await unlockStep.remaining(site, PLAN)).toEqual([]);
    expect(api.object(INFORMATION)?.metadata["annotations"] ?? {}).not.toHaveProperty(UPGRADE_LOCK_ANNOTATION);
  });

  test("an edited IPAMConfiguration is not a use of the addresses, and stays", async () => {
    const { api, site } = await movedSite();
    const [configuration] = [...(await readRecords(storeOn(api), [IPAM_CONFIGURATION_KEY])).values()];
    if (configuration === undefined) throw new Error("there is none");
    const value = configuration.value.replace(/"maxBlocksPerHost":\d+/, '"maxBlocksPerHost":7');
    expect(value).not.toBe(configuration.value);
    await storeOn(api).commit([{ ...configuration, kind: "update", value }]);

    expect(await obstaclesOf(site)).toEqual([]);
    await unlockStep.act(site, PLAN);
    expect(site.lines.join()).not.toContain("they stay as they are");
    const [edited] = [...(await readRecords(storeOn(api), [IPAM_CONFIGURATION_KEY])).values()];
    expect(edited?.value).toContain('"maxBlocksPerHost":7');
  });

  test("also if that person locks it again", async () => {
    const { api, site } = await movedSite();
    await unlock(api);
    await assign(api, "k8s-pod-network.meanwhile");
    await clusterObjects(api.connect()).patch(INFORMATION, { spec: { datastoreReady: false } });
    await unlockStep.act(site, PLAN);

    expect(await handles(api)).toContain("k8s-pod-network.meanwhile");
  });

  test("and a pod whose late ADD only the former storage knows: it is named, and has to be deleted", async () => {
    const { api, site } = await movedSite();
    await unlock(api);
    await assign(api, "k8s-pod-network.meanwhile");
    await addLate(api, "late");
    const refused = await rejectionOf(() => unlockStep.act(site, PLAN));

    expect(refused.message).toContain("pod shop/late has 192.168.77.71");
    expect(refused.details).toContain("kubectl --namespace shop delete pod late --force --grace-period=0");
    expect(isReady(api)).toBe(false);
    await clusterObjects(api.connect()).remove("/api/v1/namespaces/shop/pods/late");
    await unlockStep.act(site, PLAN);
    expect(isReady(api)).toBe(true);
  });

  test("nobody else: what a late DEL has released is free", async () => {
    const { api, site } = await movedSite();
    const handle = await deleteLate(api);
    await unlockStep.act(site, PLAN);

    expect(await handles(api)).not.toContain(handle);
    expect(findProblems(await readAllRecords(storeOn(api)))).toEqual([]);
  });

  test("is not ended by the step unlock while the aggregated API serves the former storage", async () => {
    const { api, site } = await movedSite();
    const spec = { service: { name: "api", namespace: "n" } };
    const metadata = { name: `v3.${identity.apiGroup}` };
    await site.objects.create("/apis/apiregistration.k8s.io/v1/apiservices", { metadata, spec });

    expect((await rejectionOf(() => unlockStep.act(site, PLAN))).message).toContain("the former storage is in use");
    expect(isReady(api)).toBe(false);
  });

  test("and a pod that has ended does not have its address any more", async () => {
    const { api, site } = await movedSite();
    await unlock(api);
    await assign(api, "k8s-pod-network.meanwhile");
    await addLate(api, "late");
    await clusterObjects(api.connect()).patch("/api/v1/namespaces/shop/pods/late", { status: { phase: "Succeeded" } });
    await unlockStep.act(site, PLAN);

    expect(isReady(api)).toBe(true);
  });

  test("a copy that was interrupted is not taken for somebody else's", async () => {
    const { api, site } = await movedSite();
    await addLate(api, "late");
    const killed = siteOn(api, killedAt(1, "after"));
    await unlockStep.act({ ...killed, notes: site.notes }, PLAN).catch(() => {});
    await unlockStep.act(site, PLAN);

    expect(isReady(api)).toBe(true);
    expect(await handles(api)).toContain("k8s-pod-network.late");
    expect(findProblems(await readAllRecords(storeOn(api)))).toEqual([]);
    expect(site.lines.join()).not.toContain("they stay as they are");
  });

  test("a copy that was interrupted is not taken for somebody else's, also if the ClusterInformation is edited", async () => {
    const { api, site } = await movedSite();
    await addLate(api, "late");
    const { notes } = site;
    await unlockStep.act({ ...siteOn(api, killedAfterHandle()), notes }, PLAN).catch(() => {});
    await clusterObjects(api.connect()).patch(INFORMATION, { metadata: { labels: { edited: "yes" } } });
    await unlockStep.act(site, PLAN);

    expect(await handles(api)).toContain("k8s-pod-network.late");
    expect(findProblems(await readAllRecords(storeOn(api)))).toEqual([]);
  });

  /** In the middle of writing what came late. */
  function killedAfterHandle(): Around {
    let isKilled = false;
    return async ({ method, path }, send) => {
      if (isKilled) throw new Error("killed");
      isKilled = method !== "GET" && /ipam(handles|blocks)/.test(path);
      return send();
    };
  }

  test.each([
    ["in the middle of writing what came late", killedAfterHandle],
    ["at its last write", killedAtUnlock],
  ])("the step unlock killed %s leaves the way back open", async (_, killed) => {
    const { api, site } = await movedSite();
    await addLate(api, "late");
    const { notes, backups } = site;
    await unlockStep.act({ ...siteOn(api, killed()), notes, backups }, PLAN).catch(() => {});
    expect(isReady(api)).toBe(false);
    expect(await obstaclesOf(site)).toEqual([]);
    await storageStep.rollback?.(site, PLAN);

    expect(await contents(api)).toEqual([]);
    expect(isReady(api, FORMER_INFORMATION)).toBe(true);
  });

  function killedAtUnlock(): Around {
    return async ({ path, body }, send) => {
      const isUnlock = path.startsWith(INFORMATION) && body?.includes('"datastoreReady":true') === true;
      return isUnlock ? Promise.reject(new Error("killed")) : send();
    };
  }

  test("closes the way back once an address is assigned, and only then", async () => {
    const { api, site } = await movedSite();
    await unlock(api);
    expect(await obstaclesOf(site)).toEqual([]);
    await assign(api, "k8s-pod-network.meanwhile");

    expect(await obstaclesOf(site)).toHaveLength(1);
    expect((await rejectionOf(async () => storageStep.rollback?.(site, PLAN))).kind).toBe("resource-in-use");
    expect(await handles(api)).toContain("k8s-pod-network.meanwhile");
  });

  /** As a tool does that writes the object as a whole. */
  const loseAnnotations = (api: Api, datastoreReady: boolean) =>
    clusterObjects(api.connect()).patch(INFORMATION, { metadata: { annotations: null }, spec: { datastoreReady } });

  test("and loses the mark of the copies: the way back is closed if addresses are only here, and they are named", async () => {
    const { api, site } = await movedSite();
    await unlock(api);
    const given = await start(api, "meanwhile");
    await loseAnnotations(api, false);
    const [obstacle, ...others] = await obstaclesOf(site);

    expect(others).toEqual([]);
    expect(obstacle?.message).toContain(given);
    expect(obstacle?.remedy).toContain("upgrade apply");
    expect((await rejectionOf(async () => storageStep.rollback?.(site, PLAN))).kind).toBe("resource-in-use");
    await unlockStep.act(site, PLAN);
    expect(await handles(api)).toContain("k8s-pod-network.meanwhile");
  });

  test("and loses the mark of the copies: the way back is open if the former storage knows all addresses", async () => {
    const { api, site } = await movedSite();
    await loseAnnotations(api, false);
    expect(await obstaclesOf(site)).toEqual([]);
    await storageStep.rollback?.(site, PLAN);

    expect(await contents(api)).toEqual([]);
  });

  test("and loses the mark of the copies: a DEL that comes late is not somebody's use of them", async () => {
    const { api, site } = await movedSite();
    await loseAnnotations(api, false);
    const handle = await deleteLate(api);

    expect(await obstaclesOf(site)).toEqual([]);
    await unlockStep.act(site, PLAN);
    expect(await handles(api)).not.toContain(handle);
    expect(site.lines.join()).not.toContain("they stay as they are");
    expect(findProblems(await readAllRecords(storeOn(api)))).toEqual([]);
  });

  test("and loses the mark of copies that are not complete: they are completed, whatever pods run", async () => {
    const api = await formerCluster();
    const site = siteOn(api);
    await storageStep.act(site, PLAN);
    await unlock(api);
    await start(api, "meanwhile");
    await clusterObjects(api.connect()).remove(`${PRESENT}/ipamblocks/192-168-77-64-26`);
    await loseAnnotations(api, false);

    expect(await storageStep.remaining(site, PLAN)).toContain("not everything is copied");
    await storageStep.act(site, PLAN);
    expect(await storageStep.remaining(site, PLAN)).toEqual([]);
    expect(await handles(api)).toContain("k8s-pod-network.meanwhile");
    expect(findProblems(await readAllRecords(storeOn(api)))).toEqual([]);
  });

  test("and loses the mark of the copies: nobody uses them before the node agents of this release come", async () => {
    const { api, site } = await movedSite();
    await unlock(api);
    await start(api, "meanwhile");
    await loseAnnotations(api, false);
    const stateOf = (step: string) => (step === "manifest" ? ("pending" as const) : undefined);

    expect(await obstaclesOf({ ...site, stateOf })).toEqual([]);
    expect(await obstaclesOf({ ...site, stateOf: () => undefined })).toHaveLength(1);
  });

  test("and loses the mark of the copies after this upgrade has unlocked them: they are in use", async () => {
    const { api, site } = await movedSite();
    await unlockStep.act(site, PLAN);
    await releaseFormerPod(api, {});
    await loseAnnotations(api, false);
    // Although the former storage knows all addresses.
    expect(await obstaclesOf(site)).toHaveLength(1);
    await unlockStep.act(site, PLAN);

    expect(await handles(api)).not.toContain("k8s-pod-network.aaaa1111");
  });

  test("what is used while the step unlock is interrupted stays", async () => {
    const { api, site } = await movedSite();
    await deleteLate(api);
    const { notes, backups } = site;
    await unlockStep.act({ ...siteOn(api, killedAt(1, "after")), notes, backups }, PLAN).catch(() => {});
    await unlock(api);
    const given = await start(api, "meanwhile");

    expect(await obstaclesOf(site)).toEqual([expect.objectContaining({ message: expect.stringContaining(given) })]);
    await unlockStep.act(site, PLAN);
    expect(await handles(api)).toContain("k8s-pod-network.meanwhile");
  });

  test("the step unlock killed before it has written a late DEL leaves the way back open, and is completed", async () => {
    for (const way of ["back", "on"] as const) {
      const { api, site } = await movedSite();
      const handle = await deleteLate(api);
      const { notes, backups } = site;
      await unlockStep.act({ ...siteOn(api, killedAt(1, "after")), notes, backups }, PLAN).catch(() => {});
      await clusterObjects(api.connect()).patch(INFORMATION, { metadata: { labels: { edited: "yes" } } });
      expect(await obstaclesOf(site)).toEqual([]);
      if (way === "back") await storageStep.rollback?.(site, PLAN);
      else await unlockStep.act(site, PLAN);

      expect(await handles(api)).not.toContain(handle);
      expect(isReady(api, FORMER_INFORMATION)).toBe(way === "back");
    }
  });

  test("addresses that were assigned are not replaced if a rollback stops, and the step begins again", async () => {
    const { api, site } = await movedSite();
    await unlock(api);
    await assign(api, "k8s-pod-network.meanwhile");
    // As agents do when it is unlocked.
    await clusterObjects(api.connect()).patch(INFORMATION, { spec: { [`${identity.product}Version`]: "v3.29.0" } });
    await storageStep.act(site, PLAN);

    expect([isReady(api), isReady(api, FORMER_INFORMATION)]).toEqual([false, false]);
    expect(await storageStep.remaining(site, PLAN)).toEqual([]);
    await storageStep.act(site, PLAN);
    expect(await handles(api)).toContain("k8s-pod-network.meanwhile");
    expect(await obstaclesOf(site)).toHaveLength(1);
  });

  test("resources that were edited since stay if a rollback stops, and the step begins again; missing ones are copied", async () => {
    const { api, site } = await movedSite();
    await unlock(api);
    await assign(api, "k8s-pod-network.meanwhile");
    const peer = `${PRESENT}/bgppeers/rack-switch`;
    const policy = `${PRESENT}/namespaces/shop/networkpolicies/allow-web`;
    await site.objects.patch(peer, { spec: { asNumber: 64999 } });
    await site.objects.remove(policy);
    expect(await storageStep.verify?.(site, PLAN)).toEqual([expect.stringContaining("is not copied yet")]);
    await storageStep.act(site, PLAN);

    expect(api.object(peer)?.["spec"]).toMatchObject({ asNumber: 64999 });
    expect(api.object(policy)?.["spec"]).toMatchObject({ selector: 'app == "web"' });
    expect([await storageStep.remaining(site, PLAN), await storageStep.verify?.(site, PLAN)]).toEqual([[], []]);
  });

  test("while the copy is interrupted: ADDs get their time again", async () => {
    const api = await formerCluster();
    const site = siteOn(api);
    await storageStep.act(siteOn(api, killedAt(12, "after")), PLAN).catch(() => {});
    await site.wait(100_000);
    await unlock(api, FORMER_INFORMATION);
    const before = site.now();
    await storageStep.act(site, PLAN);

    expect(await lockedSince(storeOn(api))).toEqual(before);
    expect(isReady(api, FORMER_INFORMATION)).toBe(false);
  });

  test("while a rollback waits for nodes: an ADD that has begun by then is found before anything is deleted", async () => {
    const { api, site } = await movedSite();
    await site.wait(1_000_000);
    await unlock(api);
    await lockGuard(site, "both", "upgrade rollback").look();
    let isAssigned = false;
    const wait = async (milliseconds: number) => {
      await site.wait(milliseconds);
      if (isAssigned) return;
      isAssigned = true;
      // As an ADD that had found it unlocked.
      await unlock(api);
      await assign(api, "k8s-pod-network.begun");
      await clusterObjects(api.connect()).patch(INFORMATION, { spec: { datastoreReady: false } });
    };

    expect((await rejectionOf(async () => storageStep.rollback?.({ ...site, wait }, PLAN))).kind).toBe(
      "resource-in-use",
    );
    expect(await handles(api)).toContain("k8s-pod-network.begun");
  });

  test("a rollback does not wait if nobody has unlocked it since it was copied", async () => {
    const { site } = await movedSite();
    const before = site.now();
    await storageStep.rollback?.(site, PLAN);

    expect(site.lines.filter((line) => line.startsWith("Waiting"))).toEqual([]);
    expect(site.now().getTime() - before.getTime()).toBeLessThan(5_000);
  });

  test("does not prevent a rollback if nobody has used it", async () => {
    const { api, site } = await movedSite();
    await unlock(api);
    await storageStep.rollback?.(site, PLAN);

    expect(await contents(api)).toEqual([]);
    expect(isReady(api, FORMER_INFORMATION)).toBe(true);
  });
});
