/** The controllers that copy, on two datastores in memory. */
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { ControllersInMemory } from "../../test/support/controllers-in-memory.ts";
import { means, podRequest, poolChange, seed } from "../../test/support/ipam.ts";
import { pollUntil } from "../../test/support/poll.ts";
import { storeAround } from "../../test/support/wrapped-store.ts";
import { API_VERSION } from "../identity.ts";
import { readAllRecords } from "../ipam/all-records.ts";
import { openAllocator } from "../ipam/allocator.ts";
import { BRAKE_INTERVAL_MILLISECONDS } from "../ipam/removal-brake.ts";
import { type ClusterInformationSpec, clusterInformation } from "../model/cluster-information.ts";
import { convertClusterPolicy } from "../model/cluster-network-policy.ts";
import { resourceKey } from "../model/keys.ts";
import { convertPolicy } from "../model/orchestrator-policy.ts";
import { accountProfile, namespaceProfile } from "../model/orchestrator-profile.ts";
import { podRecordKey, podRecordOf } from "../model/pod-record.ts";
import { namespaceController } from "./mirrors.ts";

let site: ControllersInMemory;

/** Lets minutes pass, and waits until the brake has looked. */
function minutesLater(): () => Promise<void> {
  let [passed, calls] = [0, 0];
  site.elapsed = () => {
    calls += 1;
    return performance.now() + passed;
  };
  return async () => {
    const before = calls;
    passed += BRAKE_INTERVAL_MILLISECONDS;
    await pollUntil(() => calls - before > 4, "the next look");
  };
}

beforeEach(() => {
  site = new ControllersInMemory();
});
afterEach(() => site.end());

const INFORMATION_KEY = resourceKey("clusterinformations", { name: "default" });
const POLICY_KEY = resourceKey("networkpolicies", { namespace: "red", name: "knp.default.deny" });
const policy = (selector: object = {}) =>
  convertPolicy({ metadata: { namespace: "red", name: "deny" }, spec: { podSelector: selector } });
const PROFILE_KEY = resourceKey("profiles", { name: "kns.red" });
const ACCOUNT_KEY = resourceKey("profiles", { name: "ksa.red.shop" });
const profile = (labels = {}) => namespaceProfile({ metadata: { name: "red", labels } });

describe("the controllers that copy", () => {
  test("create, change and delete a copy as the object is created, changed and deleted", async () => {
    site.start();
    await site.putObject(POLICY_KEY, policy());
    await site.until(POLICY_KEY, (found) => found?.spec.selector.includes("k8s"));
    await site.putObject(POLICY_KEY, policy({ matchLabels: { app: "db" } }));
    await site.until(POLICY_KEY, (found) => found?.spec.selector.includes("app == 'db'"));
    await site.deleteObject(POLICY_KEY);
    await site.until(POLICY_KEY, (found) => found === undefined);
  });

  test("copy policies of the cluster too", async () => {
    const key = resourceKey("globalnetworkpolicies", { name: "kcnp.web" });
    const object = (priority: number) => ({
      metadata: { name: "web" },
      spec: { tier: "Admin", priority, subject: { namespaces: {} } },
    });
    site.start();
    await site.putObject(key, convertClusterPolicy(object(1)));
    await site.until(key, (found) => found?.spec.tier === "kube-admin" && found.spec.order === 1);

    await site.putRecord(key, convertClusterPolicy(object(2)));
    await site.until(key, (found) => found?.spec.order === 1);
    await site.deleteObject(key);
    await site.until(key, (found) => found === undefined);
  });

  test("put back what a user changed or deleted, and overwrite what cannot be read", async () => {
    site.start();
    await site.putObject(PROFILE_KEY, profile({ team: "a" }));
    const isRight = (found: Awaited<ReturnType<typeof site.record>>) => found?.spec.labelsToApply["pcns.team"] === "a";
    await site.until(PROFILE_KEY, isRight);

    await site.putRecord(PROFILE_KEY, profile({ team: "b" }));
    await site.until(PROFILE_KEY, isRight);
    await site.deleteRecord(PROFILE_KEY);
    await site.until(PROFILE_KEY, isRight);
    await site.putRecord(PROFILE_KEY, { kind: "Profile", metadata: { name: "kns.red" }, spec: { ingress: 7 } });
    await site.until(PROFILE_KEY, isRight);
  });

  test("delete copies whose object was deleted while nobody looked, and nothing of users", async () => {
    const own = resourceKey("networkpolicies", { namespace: "red", name: "mine" });
    const ownProfile = resourceKey("profiles", { name: "mine" });
    await site.putRecord(POLICY_KEY, policy());
    await site.putRecord(own, {
      apiVersion: API_VERSION,
      kind: "NetworkPolicy",
      metadata: { namespace: "red", name: "mine" },
    });
    await site.putRecord(ownProfile, { apiVersion: API_VERSION, kind: "Profile", metadata: { name: "mine" } });
    const controllers = site.start();

    await site.until(POLICY_KEY, (found) => found === undefined);
    await site.untilSynced(controllers);
    expect(await site.record(own)).toBeDefined();
    expect(await site.record(ownProfile)).toBeDefined();
  });

  test.each([
    ["policy", POLICY_KEY, policy()],
    ["namespace", PROFILE_KEY, profile()],
    ["service account", ACCOUNT_KEY, accountProfile({ metadata: { namespace: "red", name: "shop" } })],
  ])("keep the copy of a %s that their watch has not shown, but the API has", async (_, key, copy) => {
    const controllers = site.start({ watches: "silent" });
    await pollUntil(() => controllers.states.every(({ isListed }) => isListed), "the first lists");
    await site.putObject(key, copy);
    await site.putRecord(key, copy);
    const isRefused = () => controllers.states.some(({ failingKeys }) => failingKeys > 0);
    await pollUntil(async () => isRefused() || (await site.record(key)) === undefined, "the decision");
    expect(await site.record(key)).toBeDefined();

    await site.deleteObject(key);
    await site.until(key, (found) => found === undefined);
  });

  test.each<[string, (index: number) => readonly [key: string, record: object]]>([
    [
      "policy",
      (index) => [
        resourceKey("networkpolicies", { namespace: "red", name: `knp.default.p${index}` }),
        convertPolicy({ metadata: { namespace: "red", name: `p${index}` }, spec: { podSelector: {} } }),
      ],
    ],
    [
      "namespace",
      (index) => [
        resourceKey("profiles", { name: `kns.n${index}` }),
        namespaceProfile({ metadata: { name: `n${index}`, labels: {} } }),
      ],
    ],
    [
      "node",
      (index) => [
        resourceKey("nodes", { name: `n${index}` }),
        {
          ...{ apiVersion: API_VERSION, kind: "Node", metadata: { name: `n${index}` } },
          spec: { orchRefs: [{ nodeName: `n${index}`, orchestrator: "k8s" }] },
        },
      ],
    ],
  ])(
    "hold the deletion of most records at once, until several looks have agreed: %s",
    async (name, recordOf) => {
      const records = Array.from({ length: 25 }, (_, index) => recordOf(index));
      for (const [key, record] of records) await site.putRecord(key, record);
      const nextLook = minutesLater();
      const controllers = site.start();
      const held = () => controllers.states.find((state) => state.name === name)?.heldRemovals;
      const left = async () => {
        const found = await Promise.all(records.map(([key]) => site.record(key)));
        return found.filter((record) => record !== undefined).length;
      };
      await pollUntil(() => held() === 25, "all to be held");
      await nextLook();
      expect([held(), await left()]).toEqual([25, 25]);
      const isOfThis = (line: string) => line.includes(`25 of 25 records of controller ${name} `);
      expect(site.logged.filter(isOfThis)).toHaveLength(1);

      await nextLook();
      await pollUntil(async () => (await left()) === 0, "the deletion of all");
    },
    30_000,
  );

  test("hold few nodes with many addresses, of which each alone has few, and all that they have", async () => {
    const nodes = ["n1", "n2", "n3"];
    const recordOf = (name: string) => ({
      ...{ apiVersion: API_VERSION, kind: "Node", metadata: { name } },
      spec: { orchRefs: [{ nodeName: name, orchestrator: "k8s" }] },
    });
    await seed(
      site.store,
      poolChange("blue", "10.0.0.0/24", { blockSize: 28 }),
      poolChange("green", "fd00::/120", { blockSize: 124 }),
    );
    for (const name of nodes) await site.putRecord(resourceKey("nodes", { name }), recordOf(name));
    const allocator = openAllocator(site.store, means());
    for (let pod = 0; pod < 12; pod += 1)
      await allocator.assign(podRequest(`p${pod}`, { pod: `p${pod}`, node: nodes[pod % 3] ?? "" }));
    const left = async () => {
      const { handles, affinities } = await readAllRecords(site.store);
      const records = await Promise.all(nodes.map((name) => site.record(resourceKey("nodes", { name }))));
      return [records.filter((record) => record !== undefined).length, affinities.length, handles.length];
    };
    const nextLook = minutesLater();
    const controllers = site.start();
    await pollUntil(() => controllers.collectorState?.heldRemovals === 24 + 3, "all addresses to be held");
    const held = () => controllers.states.find(({ name }) => name === "node")?.heldRemovals;
    await pollUntil(() => held() === 3, "all nodes to be held");
    await nextLook();
    expect(await left()).toEqual([3, 6, 12]);
    expect(
      site.logged.filter((line) => line.includes("and with them 24 of 24 addresses, are not removed")),
    ).toHaveLength(2);

    await nextLook();
    await pollUntil(async () => (await left())[0] === 0, "the deletion of the nodes");
  }, 30_000);

  describe("with most objects missing for a while", () => {
    const keyOf = (index: number) => resourceKey("profiles", { name: `kns.n${index}` });
    const recordOf = (index: number) => namespaceProfile({ metadata: { name: `n${index}`, labels: {} } });
    const indices = Array.from({ length: 25 }, (_, index) => index);
    const stateOf = (controllers: ReturnType<typeof site.start>) =>
      controllers.states.find(({ name }) => name === "namespace");
    const start = async () => {
      for (const index of indices) await site.putRecord(keyOf(index), recordOf(index));
      const controllers = site.start();
      await pollUntil(() => stateOf(controllers)?.heldRemovals === 25, "all to be held");
      await pollUntil(() => stateOf(controllers)?.isSynced ?? false, "all keys to be worked on");
      return controllers;
    };

    test("forget what they held when the objects are back", async () => {
      const controllers = await start();
      for (const index of indices) await site.putObject(keyOf(index), recordOf(index));
      await pollUntil(() => stateOf(controllers)?.heldRemovals === 0, "nothing to be held");
      const left = await Promise.all(indices.map((index) => site.record(keyOf(index))));
      expect(left).not.toContain(undefined);
    });

    test("compare all records once, not for each key that is held", async () => {
      const removals = spyOn(namespaceController, "removals");
      await start();
      const looks = removals.mock.calls.length;
      removals.mockRestore();

      expect(looks).toBeLessThan(5);
    });

    test("report nothing held as a standby, and held keys neither as failing nor as waiting", async () => {
      const controllers = await start();
      expect(stateOf(controllers)).toMatchObject({ failingKeys: 0, queueDepth: 0 });

      site.isLeader = false;
      expect(stateOf(controllers)?.heldRemovals).toBe(0);
    });
  });

  test("write nothing while nothing changes", async () => {
    await site.putObject(POLICY_KEY, policy());
    await site.putObject(PROFILE_KEY, profile());
    const controllers = site.start({ environment: { RECONCILER_PERIOD: "0.05s" } });
    await site.untilSynced(controllers);
    await site.until(PROFILE_KEY, (found) => found !== undefined);
    await site.until(POLICY_KEY, (found) => found !== undefined);
    await Bun.sleep(100);
    const before = controllers.states.map(({ writes }) => writes);
    await Bun.sleep(300);

    expect(controllers.states.map(({ writes }) => writes)).toEqual(before);
  });

  test("try again after a failure of the datastore, and say so", async () => {
    let failures = 3;
    const failing = storeAround(site.store, {
      commit: (changes) => {
        if (failures === 0) return site.store.commit(changes);
        failures -= 1;
        throw new Error("the datastore is away");
      },
    });
    site.start({ store: failing });
    await site.putObject(POLICY_KEY, policy());

    await site.until(POLICY_KEY, (found) => found !== undefined);
    expect(site.logged.join("\n")).toContain("the datastore is away; trying again in 50 ms");
  });

  test("write nothing while the datastore is locked, say so once, and write when it is unlocked", async () => {
    const information = (datastoreReady: boolean) =>
      clusterInformation.make({ name: "default" }, { datastoreReady } as ClusterInformationSpec);
    await site.putRecord(INFORMATION_KEY, information(false));
    site.start();
    await site.putObject(POLICY_KEY, policy());
    await pollUntil(() => site.logged.some((line) => line.startsWith("policy:")), "the report of the lock");
    await Bun.sleep(300);
    expect(await site.record(POLICY_KEY)).toBeUndefined();
    const locked = site.logged.filter((line) => line.startsWith("policy:"));
    expect(locked).toEqual([expect.stringContaining("waiting until it is unlocked")]);

    await site.putRecord(INFORMATION_KEY, information(true));
    await site.until(POLICY_KEY, (found) => found !== undefined);
  });

  test("write nothing while another leads, and everything as soon as they do", async () => {
    site.isLeader = false;
    site.start();
    await site.putObject(POLICY_KEY, policy());
    await Bun.sleep(100);
    expect(await site.record(POLICY_KEY)).toBeUndefined();

    site.isLeader = true;
    await site.until(POLICY_KEY, (found) => found !== undefined);
  });
});

/** Without the leak collection, to which the endpoint of a node without a record is one of a lost node. */
const ALONE = { environment: { ENABLED_CONTROLLERS: "workloadendpoint" } };

describe("the workloadEndpoint controller", () => {
  const KEY = resourceKey("workloadendpoints", { namespace: "red", name: "n1-k8s-web-eth0" });
  const endpoint = (profiles: readonly string[]) => ({
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: { namespace: "red", name: "n1-k8s-web-eth0", labels: { app: "old" } },
    spec: {
      orchestrator: "k8s",
      node: "n1",
      pod: "web",
      endpoint: "eth0",
      containerID: "c1",
      ipNetworks: ["10.0.0.1/32"],
      profiles,
    },
  });
  const pod = (labels: Record<string, string>) =>
    podRecordOf({
      metadata: { namespace: "red", name: "web", uid: "u1", labels },
      spec: {
        nodeName: "n1",
        serviceAccountName: "shop",
        containers: [{ ports: [{ name: "http", containerPort: 80 }] }],
      },
    });
  const POD_KEY = podRecordKey({ namespace: "red", name: "web" });

  test("copies labels, account and ports of a pod, and leaves the rest", async () => {
    await site.putRecord(KEY, endpoint(["kns.red"]));
    await site.putObject(POD_KEY, pod({ app: "new" }));
    site.start(ALONE);

    await site.until(KEY, (found) => found.metadata.labels.app === "new");
    expect((await site.record(KEY)).spec).toEqual({
      orchestrator: "k8s",
      node: "n1",
      pod: "web",
      endpoint: "eth0",
      containerID: "c1",
      ipNetworks: ["10.0.0.1/32"],
      serviceAccountName: "shop",
      profiles: ["kns.red", "ksa.red.shop"],
      ports: [{ name: "http", protocol: "TCP", port: 80 }],
    });
    await site.putObject(POD_KEY, pod({}));
    await site.until(KEY, (found) => found.metadata.labels.app === undefined);
  });

  test("never creates an endpoint, and never deletes one", async () => {
    await site.putObject(POD_KEY, pod({ app: "new" }));
    const controllers = site.start(ALONE);
    await site.untilSynced(controllers);
    expect(await site.record(KEY)).toBeUndefined();

    await site.putRecord(KEY, endpoint(["kns.red"]));
    await site.until(KEY, (found) => found.metadata.labels.app === "new");
    await site.deleteObject(POD_KEY);
    await Bun.sleep(100);
    expect(await site.record(KEY)).toBeDefined();
  });

  test("leaves an endpoint alone that was recorded without the orchestrator's policy", async () => {
    await site.putRecord(KEY, endpoint(["my-network"]));
    await site.putObject(POD_KEY, pod({ app: "new" }));
    const controllers = site.start(ALONE);
    await site.untilSynced(controllers);

    expect((await site.record(KEY)).metadata.labels).toEqual({ app: "old" });
  });
});
