/**
 * An upgrade from an earlier build of this product leaves the records of IPAM as they are: addresses that are kept for pods, in
 * use and waiting, those that rest, and lists. By the built tool, on a real API server; kubelets are imitated.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import type { Datastore, Wanted } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { identity } from "../../src/identity.ts";
import { parseAddress } from "../../src/ip/address.ts";
import { readAllRecords } from "../../src/ipam/all-records.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { KeptInUse } from "../../src/ipam/assign/kept-address.ts";
import { findProblems } from "../../src/ipam/invariants.ts";
import { keepHandle, keptOf } from "../../src/model/kept-address.ts";
import {
  blocksPrefix,
  HANDLES_PREFIX,
  IPAM_CONFIGURATION_KEY,
  resourceKey,
  resourcesPrefix,
} from "../../src/model/keys.ts";
import { VERSION } from "../../src/version.ts";
import { configurationChange, listChange, means, nodeChange, poolChange, request, textsOf } from "../support/ipam.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { manifestTextOf } from "../support/manifest-text.ts";
import { resourceValue } from "../support/migration-source.ts";
import { testNeeding } from "../support/needs.ts";
import type { AnyObject } from "../support/older-cluster/former-object.ts";
import { type OlderCluster, startOlderCluster } from "../support/older-cluster/older-cluster.ts";
import { openUpgradeTool } from "../support/older-cluster/upgrade-tool.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { rejectionOf } from "../support/thrown-by.ts";

setDefaultTimeout(300_000);

const PREVIOUS = "3.28.9";
const NODES = ["one", "two"] as const;
const COOLDOWN = 86_400;
const CLUSTER_INFORMATION = { [`${identity.product}Version`]: `v${PREVIOUS}`, datastoreReady: true };
const RECORDS: readonly Wanted[] = [
  ...[blocksPrefix(4), HANDLES_PREFIX, resourcesPrefix("ippools"), resourcesPrefix("ipaddresslists")].map(
    (prefix): Wanted => ({ kind: "prefix", prefix }),
  ),
  { kind: "key", key: IPAM_CONFIGURATION_KEY },
];

interface Way {
  readonly datastore: "kubernetes" | "etcd";
  readonly manifest: string;
  readonly problem: string | undefined;
  open(cluster: OlderCluster): Promise<Datastore>;
}

const WAYS: readonly Way[] = [
  {
    datastore: "kubernetes",
    manifest: `${identity.product}.yaml`,
    problem: apiServerProblem(),
    open: ({ adminKubeconfig }) => openDatastore({ kind: "orchestrator", access: { kubeconfigs: [adminKubeconfig] } }),
  },
  {
    datastore: "etcd",
    manifest: `${identity.product}-etcd.yaml`,
    problem: apiServerProblem() ?? proofSize({ everyDay: "only in `make soak`", soak: undefined }),
    open: ({ etcdEndpoint }) =>
      openDatastore({ kind: "etcd", source: { kind: "endpoints", endpoints: [etcdEndpoint] } }),
  },
];

describe.each(WAYS)(
  "an upgrade of an earlier build, datastore $datastore",
  ({ datastore, manifest, problem, open }) => {
    const test = testNeeding(problem);
    let cluster: OlderCluster;
    let store: Datastore;
    beforeAll(async () => {
      if (problem !== undefined) return;
      cluster = await startOlderCluster({ nodes: NODES, definitions: "none" });
      const text = manifestTextOf(PREVIOUS, manifest).replace("http://<ETCD_IP>:<ETCD_PORT>", cluster.etcdEndpoint);
      await cluster.kubectl(["apply", "--server-side", "--filename=-"], text);
      if (datastore === "kubernetes")
        await cluster.kubectl(["wait", "crd", "--all", "--for=condition=Established", "--timeout=60s"]);
      await pollUntil(
        async () =>
          Bun.deepEquals(
            await agentImages(),
            NODES.map(() => `v${PREVIOUS}`),
          ),
        "the agents",
      );
      store = await open(cluster);
      const information = resourceValue("ClusterInformation", "default", CLUSTER_INFORMATION);
      for (const change of [
        { kind: "put", key: resourceKey("clusterinformations", { name: "default" }), value: information } as const,
        ...(datastore === "etcd" ? NODES.map((name) => nodeChange(name)) : []),
        poolChange("pods", "10.10.0.0/24", { blockSize: 29, keepAddresses: true }),
        listChange("web", ["10.10.0.200"]),
        configurationChange({ cooldownSeconds: COOLDOWN }),
      ]) {
        await store.commit([change]);
      }
    });
    afterAll(async () => {
      await store?.close();
      await cluster?.stop();
    });

    const agentImages = async () => {
      const pods: readonly AnyObject[] = await cluster.objects.list("/api/v1/namespaces/kube-system/pods");
      const agents = pods.filter(({ metadata }) => metadata.name.startsWith(`${identity.nodeAgent}-`));
      const running = agents.filter(({ status }) => status.phase === "Running");
      return running.map(({ spec }): string => spec.containers[0].image.split(":").at(-1));
    };
    const allocator = () =>
      openAllocator(store, means({ now: () => new Date(), wait: (milliseconds) => Bun.sleep(milliseconds) }));
    const handleOf = (pod: string) => keepHandle({ network: "net", namespace: "shop", identity: `pod/${pod}` });
    const addKept = async (pod: string, containerId: string, node: (typeof NODES)[number]) => {
      const keep = {
        handle: handleOf(pod),
        containerId,
        when: "if its pool does",
        title: `pod "shop/${pod}"`,
      } as const;
      const more = { network: "net", interface: "eth0", node, attributes: { pod, namespace: "shop" }, keep };
      return textsOf(await allocator().assign(request(`net.${containerId}`, more))).join();
    };
    const endUse = (pod: string, containerId: string, node: (typeof NODES)[number]) =>
      allocator().releaseHandle({
        ...{ handle: `net.${containerId}`, network: "net", interface: "eth0", node },
        kept: { containerId, handle: handleOf(pod) },
      });
    const records = async () => {
      const { answers } = await store.read(RECORDS);
      return new Map(answers.flat().map(({ key, value }) => [key, value]));
    };

    test("leaves kept addresses, waiting ones and those that rest as they were", async () => {
      const used = await addKept("db-0", "c0", "one");
      const waiting = await addKept("db-1", "c1", "one");
      await endUse("db-1", "c1", "one");
      const resting = await addKept("db-2", "c2", "one");
      await endUse("db-2", "c2", "one");
      const restingAddress = parseAddress(resting) ?? expect.unreachable();
      await allocator().releaseAddresses([{ address: restingAddress, how: "for good" }]);
      const before = await records();

      using tool = openUpgradeTool(cluster);
      // Nothing says what the stock manifest was: it was applied on the server.
      await tool.succeed("plan", "--on-conflict=mine", "--lock-time=1s");
      await tool.succeed("apply");
      expect(await agentImages()).toEqual(NODES.map(() => VERSION));
      expect(Object.fromEntries(await records())).toEqual(Object.fromEntries(before));
      const { blocks } = await readAllRecords(store);
      expect(blocks.flatMap(({ attributes }) => attributes.flatMap((each) => keptOf(each)?.pod ?? []))).toEqual([
        "db-0",
        "db-1",
      ]);
      expect(Object.keys(blocks[0]?.released ?? {})).toHaveLength(1);

      expect(await addKept("db-1", "c3", "two")).toBe(waiting);
      expect(await rejectionOf(() => addKept("db-0", "c4", "two"))).toBeInstanceOf(KeptInUse);
      await endUse("db-0", "c0", "one");
      expect(await addKept("db-0", "c4", "two")).toBe(used);
      const refusal = await rejectionOf(() =>
        allocator().assign(
          request("net.c5", {
            ...{ network: "net", node: "one", attributes: { pod: "a", namespace: "bank" } },
            addressRequests: [{ kind: "given", address: restingAddress }],
          }),
        ),
      );
      expect(refusal).toMatchObject({ kind: "try-again-later", message: expect.stringContaining("rests") });
      expect(findProblems(await readAllRecords(store))).toEqual([]);
    });
  },
);
