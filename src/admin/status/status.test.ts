import { describe, expect, test } from "bun:test";
import { type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { fakeCluster } from "../../../test/support/fake-cluster.ts";
import { nodeChange, poolChange, seed } from "../../../test/support/ipam.ts";
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import { NODE } from "../../model/kinds.ts";
import { node as nodeKind } from "../../model/node.ts";
import { ROUTING_STATE_ANNOTATION } from "../../model/routing-state.ts";
import { ETCD_SECRET_HASH } from "../../release/workloads/names.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

const { systemNamespace: SYSTEM, nodeAgent, controllers, console: webConsole, operator, product } = identity;
const OPERATOR_PATH = `/apis/${apiVersionOf(OPERATOR_API)}`;
const AGENTS = `/apis/apps/v1/namespaces/${SYSTEM}/daemonsets/${nodeAgent}`;

type Objects = Readonly<Record<string, object>>;

function condition(type: string, status: "True" | "False", message = "") {
  return { type, status, reason: type, message };
}

const WELL = [condition("Available", "True"), condition("Progressing", "False"), condition("Degraded", "False")];

function workload(namespace: string, name: string, ready = 2): object {
  const containers = [{ name, image: `registry.example/${product}:v9` }];
  const status = name === nodeAgent ? { desiredNumberScheduled: 2, numberReady: ready } : { readyReplicas: ready };
  return { metadata: { namespace, name }, spec: { replicas: 2, template: { spec: { containers } } }, status };
}

function node(name: string, ready: "True" | "False" = "True"): object {
  const conditions = [{ type: "Ready", status: ready, message: "cni plugin not initialized" }];
  return { metadata: { name }, status: { conditions, addresses: [{ type: "InternalIP", address: "192.0.2.1" }] } };
}

function agentPod(name: string, onNode: string, status: object = {}): object {
  const ready = { podIPs: [{ ip: "192.0.2.1" }], conditions: [{ type: "Ready", status: "True" }] };
  const spec = { nodeName: onNode, containers: [{ name: nodeAgent, image: `registry.example/${product}:v9` }] };
  return {
    metadata: { namespace: SYSTEM, name },
    spec,
    status: { phase: "Running", containerStatuses: [{ restartCount: 3 }], ...ready, ...status },
  };
}

const WELL_CLUSTER: Objects = {
  "/api/v1/nodes/one": node("one"),
  "/api/v1/nodes/two": node("two"),
  [`${OPERATOR_PATH}/installations/default`]: {
    metadata: { name: "default" },
    status: { conditions: [condition("Ready", "True")] },
  },
  [`${OPERATOR_PATH}/${product}statuses/node`]: { metadata: { name: "node" }, status: { conditions: WELL } },
  [`/apis/apps/v1/namespaces/${operator}/deployments/${operator}`]: workload(operator, operator),
  [AGENTS]: workload(SYSTEM, nodeAgent),
  [`/apis/apps/v1/namespaces/${SYSTEM}/deployments/${controllers}`]: workload(SYSTEM, controllers),
  [`/api/v1/namespaces/${SYSTEM}/pods/a`]: agentPod("a", "one"),
  [`/api/v1/namespaces/${SYSTEM}/pods/b`]: agentPod("b", "two"),
};

async function status(objects: Objects, more: AdminSurroundings = {}, ...args: readonly string[]) {
  const store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/24"), nodeChange("one"), nodeChange("two"));
  const { client } = fakeCluster({ objects });
  return runInside(["status", ...args], {
    env: { KUBECONFIG: "/config" },
    openKubeClient: async () => client,
    store,
    ...more,
  });
}

function without(...paths: readonly string[]): Objects {
  return Object.fromEntries(Object.entries(WELL_CLUSTER).filter(([path]) => !paths.includes(path)));
}

describe("status", () => {
  test("shows components, nodes, pools and versions, and that all is well", async () => {
    const { code, stdout } = await status(WELL_CLUSTER);

    expect(code).toBe(EXIT_OK);
    expect(stdout).toContain(`Installed:   by ${operator}\n`);
    expect(stdout).toMatch(/^node +Available +2\/2 /m);
    expect(stdout).toMatch(/^one +yes +ready +v9 +3 +192\.0\.2\.1$/m);
    expect(stdout).toMatch(/^blue +10\.0\.0\.0\/24 +256 +0 +256 +enabled$/m);
    expect(stdout).toEndWith("\nEverything is well.\n");
  });

  test("says that nothing is installed, and how to install", async () => {
    const { code, stdout } = await status({ "/api/v1/nodes/one": node("one") }, { store: openMemory() });

    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toContain(`what to do: ${identity.adminTool} install\n`);
  });

  test("works for a manifest, which has no Installation and no operator", async () => {
    const manifest = `/apis/apps/v1/namespaces/kube-system/daemonsets/${nodeAgent}`;
    const objects = {
      "/api/v1/nodes/one": node("one"),
      [manifest]: workload("kube-system", nodeAgent),
      "/api/v1/namespaces/kube-system/pods/a": agentPod("a", "one"),
    };
    const { code, stdout } = await status(objects);

    expect(stdout).toContain("Installed:   by a manifest, in namespace kube-system\n");
    expect(code).toBe(EXIT_OK);
  });

  test("shows the console if there is one, and that it is not ready", async () => {
    const objects = {
      ...WELL_CLUSTER,
      [`/apis/apps/v1/namespaces/${SYSTEM}/deployments/${webConsole}`]: workload(SYSTEM, webConsole, 0),
    };
    const { code, stdout } = await status(objects);

    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toMatch(/^console +Progressing +0\/2 /m);
    expect(stdout).toContain(`failed: ${webConsole}: 0 of 2 pods are ready`);
    expect((await status(WELL_CLUSTER)).stdout).not.toMatch(/^console/m);
  });

  test("finds the pods of an earlier release by the labels that its DaemonSet selects", async () => {
    const former = `/apis/apps/v1/namespaces/kube-system/daemonsets/${nodeAgent}`;
    const workloadOf = workload("kube-system", nodeAgent) as { spec: object };
    const selector = { matchLabels: { "k8s-app": nodeAgent } };
    const objects = {
      "/api/v1/nodes/one": node("one"),
      [former]: { ...workloadOf, spec: { ...workloadOf.spec, selector } },
      "/api/v1/namespaces/kube-system/pods/a": agentPod("a", "one"),
    };
    const { client } = fakeCluster({ objects });
    const selectors: unknown[] = [];
    const openKubeClient: AdminSurroundings["openKubeClient"] = async () => ({
      ...client,
      request: (request) => {
        if (request.path.endsWith("/pods")) selectors.push(request.query?.["labelSelector"]);
        return client.request(request);
      },
    });
    await status(objects, { openKubeClient });

    expect(selectors).toEqual([`k8s-app=${nodeAgent}`]);
  });

  test.each<[string, Objects, string]>([
    [
      "a degraded Installation",
      {
        ...WELL_CLUSTER,
        [`${OPERATOR_PATH}/installations/default`]: {
          metadata: { name: "default" },
          status: { conditions: [condition("Degraded", "True", 'spec.mtu "x" is not an MTU')] },
        },
      },
      'failed: Installation default: spec.mtu "x" is not an MTU',
    ],
    [
      "a component that is rolled out",
      {
        ...WELL_CLUSTER,
        [`${OPERATOR_PATH}/${product}statuses/node`]: {
          metadata: { name: "node" },
          status: { conditions: [condition("Progressing", "True", "1 of 2 pods are updated")] },
        },
      },
      "failed: component node: in progress: 1 of 2 pods are updated",
    ],
    [
      "a node that is not Ready",
      { ...WELL_CLUSTER, "/api/v1/nodes/two": node("two", "False") },
      "failed: node two: not Ready: cni plugin not initialized",
    ],
    ["a node without an agent", without(`/api/v1/namespaces/${SYSTEM}/pods/b`), "failed: node two: it has no pod of"],
    [
      "an agent that is not ready",
      {
        ...WELL_CLUSTER,
        [`/api/v1/namespaces/${SYSTEM}/pods/b`]: agentPod("b", "two", {
          conditions: [{ type: "PodScheduled", status: "True" }],
          containerStatuses: [
            { restartCount: 0, state: { waiting: { reason: "ImagePullBackOff", message: "no such image" } } },
          ],
        }),
      },
      `failed: node two: ${nodeAgent} is not ready: ImagePullBackOff: no such image`,
    ],
    [
      "controllers without a ready pod",
      {
        ...WELL_CLUSTER,
        [`/apis/apps/v1/namespaces/${SYSTEM}/deployments/${controllers}`]: workload(SYSTEM, controllers, 0),
      },
      `failed: ${controllers}: 0 of 2 pods are ready`,
    ],
    [
      "an Installation without an operator",
      without(`/apis/apps/v1/namespaces/${operator}/deployments/${operator}`),
      "failed: operator: there is an Installation, but no operator that follows it",
    ],
  ])("reports %s", async (_, objects, line) => {
    const { code, stdout } = await status(objects);

    expect(stdout).toContain(line);
    expect(code).toBe(EXIT_FAILED);
  });

  test("warns of a cluster without a pool, and of a datastore that cannot be read", async () => {
    const none = await status(WELL_CLUSTER, { store: openMemory() });
    expect(none.stdout).toContain("warning: IP pools: there is no enabled IP pool");

    const failing = () => Promise.reject(new PluginError("datastore-unavailable", "Cannot use etcd"));
    const unread = await status(WELL_CLUSTER, { openDatastore: failing });
    expect(unread.stdout).toContain("warning: datastore: pools and releases are unknown: Cannot use etcd");
    expect(unread.code).toBe(EXIT_OK);
  });

  test("reads the datastore that the installed network config names, unless options name another", async () => {
    const config = { plugins: [{ type: product, etcd_endpoints: "http://10.0.0.1:2379" }] };
    const objects = (text: object) => ({
      ...WELL_CLUSTER,
      [`/api/v1/namespaces/${SYSTEM}/configmaps/cni-config`]: { data: { config: JSON.stringify(text) } },
    });
    const opened: DatastoreSettings[] = [];
    const openDatastore = async (settings: DatastoreSettings) => {
      opened.push(settings);
      return openMemory();
    };
    await status(objects(config), { openDatastore });
    const manifest = {
      ...objects({ plugins: [{ type: product, datastore_type: "etcdv3" }] }),
      [`/api/v1/namespaces/${SYSTEM}/configmaps/${product}-config`]: {
        data: { etcd_endpoints: "http://10.0.0.2:2379" },
      },
    };
    await status(manifest, { openDatastore });
    await status(objects(config), { openDatastore }, "--datastore-type=kubernetes", "--kubeconfig=/config");
    await status(WELL_CLUSTER, { openDatastore }, "--context=other");
    const secure = { plugins: [{ type: product, etcd_endpoints: "https://10.0.0.1:2379" }] };
    const { stdout } = await status(objects(secure), { openDatastore });

    expect(opened).toEqual([
      { kind: "etcd", source: { kind: "endpoints", endpoints: ["http://10.0.0.1:2379"] } },
      { kind: "etcd", source: { kind: "endpoints", endpoints: ["http://10.0.0.2:2379"] } },
      { kind: "orchestrator", access: { kubeconfigs: ["/config"] } },
      { kind: "orchestrator", access: { kubeconfigs: ["/config"], context: "other" } },
    ]);
    expect(stdout).toContain("--etcd-ca-cert-file");
  });

  test("reads etcd that is found by its domain, and asks for certificates if the cluster has some", async () => {
    const domain = "etcd.example.org";
    const objects = (plugin: object, more: Objects = {}) => {
      const config = JSON.stringify({ plugins: [{ type: product, etcd_discovery_srv: domain, ...plugin }] });
      return { ...WELL_CLUSTER, [`/api/v1/namespaces/${SYSTEM}/configmaps/cni-config`]: { data: { config } }, ...more };
    };
    const settings = (data: object) => ({ [`/api/v1/namespaces/${SYSTEM}/configmaps/${product}-config`]: { data } });
    const annotated = { metadata: { annotations: { [ETCD_SECRET_HASH]: "5ec2e7" } }, spec: { containers: [] } };
    const opened: DatastoreSettings[] = [];
    const openDatastore = async (each: DatastoreSettings) => {
      opened.push(each);
      return openMemory();
    };
    await status(objects({}, settings({ etcd_ca: "" })), { openDatastore });
    expect(opened.splice(0)).toEqual([{ kind: "etcd", source: { kind: "discovery", domain } }]);

    for (const secure of [
      objects({ etcd_ca_cert_file: "/etc/ca" }),
      objects({}, settings({ etcd_cert: `/etc/${product}-etcd-secrets/etcd-cert` })),
      objects({}, { [AGENTS]: { ...workload(SYSTEM, nodeAgent), spec: { template: annotated } } }),
    ]) {
      const { stdout } = await status(secure, { openDatastore });
      expect(stdout).toContain(`the datastore is etcd at domain ${domain}, which needs certificates`);
      expect(stdout).toContain("add --datastore-type etcdv3, --etcd-discovery-srv, --etcd-ca-cert-file");
    }
    expect(opened).toEqual([]);
  });

  describe("of what agents say of their routing", () => {
    const DOWN = {
      ...{ address: "10.0.0.9", asNumber: 64513, peer: "router", state: "Active" },
      ...{ since: "2026-01-02T03:00:00.000Z", lastError: "Socket: Connection refused" },
    };
    const LINE =
      "node one: 1 of 4 BGP sessions is not established: 10.0.0.9 (AS 64513, router) is Active, down since 2026-01-02T03:00:00Z, last error: Socket: Connection refused";

    async function statusWith(said: string | object, objects: Objects = WELL_CLUSTER, ...args: readonly string[]) {
      const store = openMemory();
      const text = typeof said === "string" ? said : JSON.stringify(said);
      const made = nodeKind.make({ name: "one", annotations: { [ROUTING_STATE_ANNOTATION]: text } }, {});
      const change = { kind: "put", key: NODE.key({ name: "one" }), value: nodeKind.write(made) } as const;
      await seed(store, poolChange("blue", "10.0.0.0/24"), change, nodeChange("two"));
      return status(objects, { store }, ...args);
    }

    const said = (sessions: object | undefined, more: object = {}) => ({
      ...{ at: "2026-01-02T03:04:05.000Z", down: [], problems: [] },
      ...(sessions === undefined ? {} : { sessions }),
      ...more,
    });

    test("shows how many sessions are established, and names those that are not", async () => {
      const { code, stdout } = await statusWith(said({ wanted: 4, established: 3 }, { down: [DOWN] }));

      expect(stdout).toMatch(/^one .* 3 of 4 sessions established$/m);
      expect(stdout).toContain(`warning: ${LINE}\n  what to do: run on the node: ${identity.adminTool} node status\n`);
      expect(code).toBe(EXIT_OK);
      const none = await statusWith(said({ wanted: 7, established: 0 }, { down: Array(5).fill(DOWN) }));
      expect(none.stdout).toContain("failed: node one: 7 of 7 BGP sessions are not established: 10.0.0.9");
      expect(none.stdout).toContain("; and 2 more\n");
      expect(none.code).toBe(EXIT_FAILED);
    });

    test("names tunnels that do not work", async () => {
      const problems = [{ state: "failed", message: "Cannot set up the VXLAN tunnel: no module" }];
      const { code, stdout } = await statusWith(said(undefined, { problems }));

      expect(stdout).toContain("failed: node one: Cannot set up the VXLAN tunnel: no module\n");
      expect(stdout).not.toContain("BGP");
      expect(code).toBe(EXIT_FAILED);
    });

    test.each([
      [
        "the agent is not ready",
        agentPod("a", "one", { conditions: [{ type: "Ready", status: "False" }] }),
        node("one"),
      ],
      ["the node is not ready", agentPod("a", "one"), node("one", "False")],
    ])("says of when it is if %s", async (_, pod, nodeOne) => {
      const objects = {
        ...WELL_CLUSTER,
        "/api/v1/nodes/one": nodeOne,
        [`/api/v1/namespaces/${SYSTEM}/pods/a`]: pod,
      };
      const { stdout } = await statusWith(said({ wanted: 4, established: 3 }, { down: [DOWN] }), objects);

      expect(stdout).toMatch(/^one .* 3 of 4 sessions established \(as of 2026-01-02T03:04:05Z\)$/m);
      expect(stdout).toContain(`${LINE}; as of 2026-01-02T03:04:05Z, its ${nodeAgent} does not run now\n`);
    });

    test("shows nothing of agents that say nothing, as those of earlier releases", async () => {
      const { stdout } = await status(WELL_CLUSTER);

      expect(stdout).not.toContain("BGP");
      expect(stdout).toEndWith("\nEverything is well.\n");
    });

    test.each(["garbage", "{}", "[]", `{"at":"\u001b[2J"}`])("does not count %j, and says so", async (text) => {
      const { code, stdout } = await statusWith(text);

      expect(stdout).toContain(`warning: node one: what the annotation "${ROUTING_STATE_ANNOTATION}" says`);
      expect(stdout).toMatch(/^one +yes +ready +v9 +3 +192\.0\.2\.1$/m);
      expect(code).toBe(EXIT_OK);
    });

    test("is in the JSON for scripts", async () => {
      const { stdout } = await statusWith(said({ wanted: 4, established: 4 }), WELL_CLUSTER, "-o", "json");

      expect(JSON.parse(stdout).nodes).toMatchObject([
        { name: "one", bgp: "4 of 4 sessions established" },
        { name: "two", bgp: "" },
      ]);
    });
  });

  test("prints JSON and YAML for scripts", async () => {
    const json = await status(WELL_CLUSTER, {}, "-o", "json");
    const yaml = await status(WELL_CLUSTER, {}, "-o", "yaml");

    expect(JSON.parse(json.stdout)).toMatchObject({
      ok: true,
      installedBy: "operator",
      nodes: [{ name: "one", agent: "ready" }, { name: "two" }],
      pools: [{ name: "blue", size: "256", used: "0" }],
    });
    expect(Bun.YAML.parse(yaml.stdout)).toEqual(JSON.parse(json.stdout));
  });
});
