/** The controllers with the orchestrator's API as the datastore, under their own role: host endpoints and leaked addresses. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { API_VERSION, identity } from "../../src/identity.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { readAllRecords } from "../../src/ipam/all-records.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { allocationsIn } from "../../src/ipam/leaks/allocations.ts";
import { keptIn } from "../../src/ipam/leaks/waiting-addresses.ts";
import { clusterInformation } from "../../src/model/cluster-information.ts";
import { keepHandle } from "../../src/model/kept-address.ts";
import { CLUSTER_INFORMATION } from "../../src/model/kinds.ts";
import { POD_IPS } from "../../src/model/pod-addresses.ts";
import { permissionsOf, roleName, roleObject } from "../../src/release/roles/role-files.ts";
import { type Controllers, startControllers } from "../support/controllers.ts";
import { freePorts } from "../support/etcd.ts";
import { searchHostOf } from "../support/host-search.ts";
import {
  addressedNodeChange,
  letRest,
  means,
  podRequest,
  poolChange,
  request,
  seed,
  textsOf,
} from "../support/ipam.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import type { Audit } from "../support/kube-audit.ts";
import { installCrds } from "../support/kube-crds.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { isForbidden, unusedPermissions } from "../support/role-use.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
const ROLE = "controllers-kubernetes";
const TOOL = join(import.meta.dir, "../../dist/bin", identity.adminTool);

const DEFAULT = { name: "default" };
const INFORMATION_KEY = CLUSTER_INFORMATION.key(DEFAULT);

let server: ApiServer;
let store: Datastore;
let controllers: Controllers;
let audit: Audit;
let healthPort: number;
let metricsPort: number;
const user = `system:serviceaccount:kube-system:${identity.controllers}`;

beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  await installCrds(server);
  await server.apply(
    await Bun.file(join(import.meta.dir, `../../deploy/rbac/${roleName(ROLE, identity)}.yaml`)).text(),
  );
  const token = await server.kubectl(["create", "token", identity.controllers, "--namespace=kube-system"]);
  const kubeconfig = server.credentials.writeKubeconfig("controllers", { token: token.trim() });
  store = await openDatastore({ kind: "orchestrator", access: { kubeconfigs: [server.adminKubeconfig] } });
  await seed(
    store,
    poolChange("blue", "10.7.0.0/24", { blockSize: 29 }),
    poolChange("green", "fd07::/120", { blockSize: 125 }),
    { kind: "put", key: INFORMATION_KEY, value: clusterInformation.write(clusterInformation.make(DEFAULT, {})) },
  );
  for (const name of ["n1", "n2"]) await applyNode(name, "a");
  await server.createNamespace("red");
  audit = server.startAudit();
  [healthPort = 0, metricsPort = 0] = await freePorts(2);
  controllers = startControllers({
    KUBECONFIG: kubeconfig,
    DATASTORE_TYPE: "kubernetes",
    HEALTH_PORT: `${healthPort}`,
  });
}, 120_000);
afterAll(async () => {
  await controllers?.kill();
  await store?.close();
  await server?.stop();
});

const applyNode = (name: string, zone: string) =>
  server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name, labels: { zone } } }));

const configure = (node: object) =>
  server.apply(
    JSON.stringify({
      apiVersion: API_VERSION,
      kind: "KubeControllersConfiguration",
      metadata: { name: "default" },
      spec: { prometheusMetricsPort: metricsPort, controllers: { policy: {}, node } },
    }),
  );

/** Assigns an address as the plugin does; the pod need not exist. */
async function assign(pod: string, node: string, at = new Date()): Promise<readonly string[]> {
  const allocator = openAllocator(store, means({ now: () => at }));
  return textsOf(await allocator.assign(podRequest(pod, { pod, node })));
}

async function recorded(): Promise<readonly string[]> {
  const { blocks } = await readAllRecords(store);
  return blocks.flatMap(allocationsIn).map(({ address }) => formatAddress(address));
}

const page = async (port: number, path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
const metrics = () => page(metricsPort, "/metrics");

interface HostEndpoints {
  readonly items: readonly { readonly metadata: { readonly name: string; readonly labels: Record<string, string> } }[];
}
const hostEndpoints = async () => (await server.get<HostEndpoints>("hostendpoints.vendor.org")).items;

interface Configuration {
  readonly status?: {
    readonly runningConfig: {
      readonly controllers: { readonly node: { readonly hostEndpoint: { readonly autoCreate: string } } };
    };
  };
}
async function runningAutoCreate(): Promise<string | undefined> {
  const { status } = await server.get<Configuration>("kubecontrollersconfigurations.vendor.org", "default");
  return status?.runningConfig.controllers.node.hostEndpoint.autoCreate;
}

/** Its addresses wait: the pod of a StatefulSet has used them. */
async function keep(
  pod: string,
  { network = "net", seconds = 86_400, owner = `StatefulSet/${pod.slice(0, pod.lastIndexOf("-"))}` } = {},
): Promise<void> {
  const allocator = openAllocator(store, means({ now: () => new Date() }));
  const { attributes, ...asked } = podRequest(pod, { pod, node: "n1" });
  const { addresses } = await allocator.assign({
    ...{ ...asked, network, handle: keepHandle({ network, namespace: "red", identity: `pod/${pod}` }) },
    attributes: { ...attributes, owner, kept: `${seconds}`, containerID: "c1" },
  });
  await allocator.releaseAddresses(addresses);
}

/** With one replica each. */
const applySets = (...names: readonly string[]) =>
  server.apply(
    JSON.stringify({
      apiVersion: "v1",
      kind: "List",
      items: names.map((name) => ({
        apiVersion: "apps/v1",
        kind: "StatefulSet",
        metadata: { name, namespace: "red" },
        spec: {
          ...{ replicas: 1, serviceName: name, selector: { matchLabels: { name } } },
          template: { metadata: { labels: { name } }, spec: { containers: [{ name: "c", image: "none" }] } },
        },
      })),
    }),
  );

/** More than the controllers ask for one by one. */
const MANY_SETS = Array.from({ length: 21 }, (_, index) => `many-${index}`);

const keptNow = async () => (await readAllRecords(store)).blocks.flatMap(keptIn);

/** The pods, or those of these, for which addresses wait; one with two families twice. */
async function waiting(...pods: readonly string[]): Promise<readonly string[]> {
  const names = (await keptNow()).map(({ kept: { pod = "" } }) => pod);
  return pods.length === 0 ? names : names.filter((name) => pods.includes(name));
}

async function freeKept(): Promise<void> {
  const kept = (await keptNow()).map(({ address }) => ({ address, how: "for good" }) as const);
  await openAllocator(store, means()).releaseAddresses(kept);
}

describe("the controllers on the orchestrator's API", () => {
  testServer("say once that there is nothing to copy", async () => {
    await controllers.untilLogged("are idle: with the Kubernetes API");
    await controllers.untilLogged("created the configuration");
  });

  testServer(
    "record to which cluster the datastore belongs",
    async () => {
      const uid = await server.kubectl(["get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}"]);
      const recorded = () =>
        server.kubectl(["get", "clusterinformation", "default", "--output=jsonpath={.spec.kubeSystemUID}"]);
      await pollUntil(async () => (await recorded()) === uid, "the UID of the cluster");
    },
    20_000,
  );

  testServer("keep a host endpoint of each node, which follows its labels", async () => {
    await configure({ leakGracePeriod: "2s" });
    const patch = JSON.stringify({ spec: { controllers: { node: { hostEndpoint: { autoCreate: "Enabled" } } } } });
    await server.kubectl(["patch", "kubecontrollersconfiguration", "default", "--type=merge", `--patch=${patch}`]);
    await pollUntil(async () => (await hostEndpoints()).length === 2, "two host endpoints");
    await applyNode("n1", "b");
    await pollUntil(
      async () => (await hostEndpoints()).some(({ metadata }) => metadata.labels["zone"] === "b"),
      "the new label",
    );
  });

  testServer(
    "release no address of a node that exists, and report those that its pods do not use after the grace period",
    async () => {
      const used = await assign("used", "n1");
      await server.apply(
        JSON.stringify({
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name: "used", namespace: "red" },
          spec: { nodeName: "n1", containers: [{ name: "c", image: "none" }] },
        }),
      );
      const leaked = await assign("leaked", "n1");
      const isReported = async () =>
        (await metrics()).includes('vendor_controllers_node_addresses_overdue{node="n1"} 2\n');
      await pollUntil(isReported, "the report of the overdue addresses");
      expect([...(await recorded())].toSorted()).toEqual([...used, ...leaked].toSorted());

      // As the agent of the node does, which sees that the container has no link.
      await searchHostOf(store, "n1", ["used"]);
      await pollUntil(async () => !(await isReported()), "the end of the report");
      expect(await recorded()).toEqual(used);
    },
    60_000,
  );

  testServer(
    "give back everything of a deleted node, as soon as its pods are deleted and its addresses have rested",
    async () => {
      await configure({ leakGracePeriod: "1h", hostEndpoint: { autoCreate: "Enabled" } });
      const addresses = await assign("gone", "n2");
      await server.apply(
        JSON.stringify({
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name: "gone", namespace: "red", annotations: { [POD_IPS]: addresses.join(",") } },
          spec: { nodeName: "n2", containers: [{ name: "c", image: "none" }] },
        }),
      );
      await server.kubectl(["delete", "node", "n2"]);
      await pollUntil(async () => (await hostEndpoints()).length === 1, "its host endpoint to go");
      expect(await recorded()).toEqual(expect.arrayContaining([...addresses]));
      await server.kubectl(["delete", "pod", "gone", "-n", "red", "--force", "--grace-period=0"]);
      const isReleased = async () => !(await recorded()).some((address) => addresses.includes(address));
      await pollUntil(isReleased, "the release of its addresses");
      await letRest(store);

      await pollUntil(async () => {
        const { affinities, blocks } = await readAllRecords(store);
        return ![...affinities, ...blocks].some((each) => JSON.stringify(each, bigints).includes("n2"));
      }, "the claims of the node to go");
    },
    60_000,
  );

  testServer("serve health, and metrics of queues, leaks, pools and nodes", async () => {
    expect([await page(healthPort, "/liveness"), await page(healthPort, "/readiness")]).toEqual(["live\n", "ready\n"]);
    const text = await metrics();
    expect(text).toContain("vendor_controllers_leader 1");
    expect(text).toContain('vendor_controllers_queue_depth{controller="host endpoints"} 0');
    expect(text).toContain('vendor_controllers_pool_addresses_in_use{pool="blue"} 1');
    expect(text).toContain('vendor_controllers_node_addresses_in_use{node="n1"} 2');
  });

  testServer(
    "leave to vendorctl ipam gc --cluster what an administrator releases, by the time of the assignment",
    async () => {
      const leaked = await assign("old", "n1", new Date(Date.now() - 3_600_000));
      const recent = await assign("recent", "n1");
      const environment = { DATASTORE_TYPE: "kubernetes", KUBECONFIG: server.adminKubeconfig };
      const { stdout } = await Bun.$`${TOOL} ipam gc --cluster --dead-node n1`.env(environment).quiet();
      const text = String(stdout);
      for (const address of leaked) expect(text).toContain(`released ${address} (pod red/old`);
      for (const address of recent) expect(text).toContain(`kept ${address} (pod red/recent`);
      expect(await recorded()).not.toEqual(expect.arrayContaining([...leaked]));
      expect(await recorded()).toEqual(expect.arrayContaining([...recent]));
      const check = await Bun.$`${TOOL} ipam check`.env(environment).quiet();
      expect(check.exitCode).toBe(0);
    },
    60_000,
  );

  testServer(
    "free addresses that wait for a pod whose StatefulSet is gone or smaller, or for too long, and no others",
    async () => {
      await configure({ leakGracePeriod: "6s", hostEndpoint: { autoCreate: "Enabled" } });
      await applySets("db", ...MANY_SETS);
      for (const pod of ["db-0", "db-1", "gone-0", ...MANY_SETS.map((set) => `${set}-0`)]) await keep(pod);
      await keep("db-0", { network: "late", seconds: 1 });
      await keep("virt-launcher-x", { owner: "VirtualMachineInstance/desktop", seconds: 0 });
      const looks = () =>
        audit.requests(user).filter(({ verb, resource }) => `${verb} ${resource}` === "list statefulsets").length;
      await pollUntil(() => looks() > 0, "a look");
      // Last: the others take a while, and it must not be without an owner for the grace period.
      await keep("again-0");
      const before = looks();
      await pollUntil(() => looks() > before, "another look");
      await applySets("again");
      await pollUntil(
        async () => (await waiting("db-1", "gone-0", "virt-launcher-x")).length === 0,
        "the end of those without an owner",
        40_000,
      );
      await pollUntil(async () => (await waiting("db-0")).length === 2, "the end of the one that is late");
      await Bun.sleep(8_000);

      const left = ["db-0", "again-0", ...MANY_SETS.map((set) => `${set}-0`)];
      expect(new Set(await waiting())).toEqual(new Set(left));
      expect(await metrics()).toContain('vendor_controllers_pool_addresses_kept{pool="blue",state="waiting"} 23');
      await controllers.untilLogged("(kept for pod red/gone-0): StatefulSet red/gone does not exist");
      await controllers.untilLogged("(kept for pod red/db-1): StatefulSet red/db has 1 replicas from ordinal 0");
      await freeKept();
    },
    120_000,
  );

  testServer(
    "have the same command on etcd, where it takes a kubeconfig",
    async () => {
      const etcd = await openDatastore({
        kind: "etcd",
        source: { kind: "endpoints", endpoints: [server.etcdEndpoint] },
      });
      const address = "172.19.0.1";
      const status = { addresses: [{ type: "InternalIP", address }] };
      await server.kubectl(["patch", "node", "n1", "--subresource=status", `--patch=${JSON.stringify({ status })}`]);
      await seed(
        etcd,
        poolChange("blue", "10.7.0.0/24", { blockSize: 29 }),
        addressedNodeChange("n1", `${address}/24`),
      );
      const owner = { network: "net", interface: "eth0", node: "n1", attributes: { pod: "old", namespace: "red" } };
      const anHourAgo = means({ now: () => new Date(Date.now() - 3_600_000) });
      await openAllocator(etcd, anHourAgo).assign(request("net.old", owner));
      await etcd.close();
      const environment = { DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: server.etcdEndpoint };
      const words = ["ipam", "gc", "--cluster", "--dead-node", "n1", "--kubeconfig", server.adminKubeconfig];
      const { stdout } = await Bun.$`${TOOL} ${words}`.env(environment).quiet();

      expect(String(stdout)).toMatch(
        /^released 10\.7\.\S+ \(pod red\/old, .* on node n1\): pod red\/old does not exist$/m,
      );
    },
    60_000,
  );

  testServer("remove the host endpoints if they are disabled", async () => {
    await configure({ hostEndpoint: { autoCreate: "Disabled" } });
    await pollUntil(async () => (await hostEndpoints()).length === 0, "no host endpoint");
    await pollUntil(async () => (await runningAutoCreate()) === "Disabled", "the status");
  });

  testServer(
    "write nothing but the Lease while nothing changes",
    async () => {
      const quiet = server.startAudit();
      await Bun.sleep(5_000);
      const writes = quiet.requests(user).filter(({ verb }) => !["get", "list", "watch"].includes(verb));
      expect([...new Set(writes.map(({ verb, resource }) => `${verb} ${resource}`))]).toEqual(["update leases"]);
    },
    20_000,
  );

  testServer("have exactly the permissions that they need", async () => {
    const asked = audit.requests(user);
    const unused = unusedPermissions(
      ROLE,
      asked.filter((request) => !isForbidden(request)),
    );
    // Needed after a lost response, for an object that was seen long ago, for a handle whose count a crash left too high,
    // and for a surplus block whose addresses rest.
    const ofHandles = ["list ipamhandles", "update ipamhandles"];
    const rare = ["get kubecontrollersconfigurations", "get hostendpoints", ...ofHandles, "create blockaffinities"];
    // The API has no definition of this kind: cluster-network-policy.test.ts.
    const ofClusterPolicies = ["get clusternetworkpolicies", "patch clusternetworkpolicies/status"];
    // Only if addresses wait for more than 20 of them.
    const ofMany = ["list virtualmachines", "list virtualmachineinstances", "list namespaces"];
    const isRare = ({ verb, resource }: (typeof unused)[number]) =>
      [...rare, ...ofClusterPolicies, ...ofMany].includes(`${verb} ${resource}`);
    expect(unused.filter((permission) => !isRare(permission))).toEqual([]);
    expect(asked.filter(({ status }) => status === 403).map(({ verb, resource }) => `${verb} ${resource}`)).toEqual([]);
  });

  testServer(
    "wait for keepFor if they may not read StatefulSets, and log that",
    async () => {
      const permitted = permissionsOf(ROLE).filter(({ resource }) => resource !== "statefulsets");
      await server.apply(JSON.stringify(roleObject(ROLE, identity, permitted)));
      await configure({ leakGracePeriod: "2s" });
      await keep("denied-0", { seconds: 20 });
      await controllers.untilLogged("freed only when their keepFor is over");
      await controllers.untilLogged('resources: ["statefulsets"]');
      expect(await waiting()).toEqual(["denied-0", "denied-0"]);

      await pollUntil(async () => (await waiting()).length === 0, "the end of keepFor", 60_000);
      await controllers.untilLogged("(kept for pod red/denied-0): it has waited since");
    },
    120_000,
  );
});

function bigints(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
