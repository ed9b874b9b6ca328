import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { ALLOWED, DENIED, WELL as FLOWS_WELL } from "../../../test/support/imitated-flows.ts";
import { nodeChange, poolChange, seed } from "../../../test/support/ipam.ts";
import { startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import {
  EVERYTHING,
  type ReadersCluster,
  type Role,
  type Rule,
  readersCluster,
} from "../../../test/support/readers.ts";
import { openKube } from "../../datastore/kube/open.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import { apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import { NODE } from "../../model/kinds.ts";
import { node as nodeKind } from "../../model/node.ts";
import { ROUTING_STATE_ANNOTATION } from "../../model/routing-state.ts";
import { alertGroups } from "../../release/alerts.ts";
import { healthSchema } from "../api/health.ts";
import { TokenRefused } from "../source.ts";
import { type ClusterSourceMeans, clusterSources } from "./cluster-source.ts";

const { systemNamespace: SYSTEM, nodeAgent, controllers, operator, product } = identity;
const NOW = new Date("2026-01-02T03:04:05Z");
const { signal } = new AbortController();

const OBJECTS: readonly (readonly [collection: string, object: object])[] = [
  ["/api/v1/namespaces", { metadata: { name: "shop" } }],
  ["/api/v1/namespaces", { metadata: { name: "bank" } }],
  ["/api/v1/nodes", node("one")],
  ["/api/v1/nodes", node("two")],
  [`/apis/apps/v1/namespaces/${SYSTEM}/daemonsets`, workload(nodeAgent, { desiredNumberScheduled: 2, numberReady: 2 })],
  [`/apis/apps/v1/namespaces/${SYSTEM}/deployments`, workload(controllers, { readyReplicas: 1 })],
  [`/apis/apps/v1/namespaces/${operator}/deployments`, workload(operator, { readyReplicas: 1 })],
  [
    `/apis/${apiVersionOf(OPERATOR_API)}/installations`,
    { metadata: { name: "default" }, status: { conditions: [ready()] } },
  ],
  [
    `/apis/${apiVersionOf(OPERATOR_API)}/${product}statuses`,
    { metadata: { name: "node" }, status: { conditions: [ready()] } },
  ],
  [`/api/v1/namespaces/${SYSTEM}/pods`, agentPod("a", "one")],
  [`/api/v1/namespaces/${SYSTEM}/pods`, agentPod("b", "two")],
];

function ready(): object {
  return { type: "Ready", status: "True", reason: "", message: "" };
}

function node(name: string): object {
  const conditions = [{ ...ready(), lastHeartbeatTime: "2026-01-02T03:00:00Z" }];
  return { metadata: { name }, status: { conditions, addresses: [{ type: "InternalIP", address: "192.0.2.1" }] } };
}

function workload(name: string, status: object): object {
  const template = { spec: { containers: [{ image: "registry.example/vendor:v9" }] } };
  return { metadata: { name, namespace: SYSTEM }, spec: { replicas: 1, template }, status };
}

function agentPod(name: string, nodeName: string): object {
  const status = {
    phase: "Running",
    podIPs: [{ ip: "192.0.2.1" }],
    conditions: [ready()],
    containerStatuses: [{ restartCount: 0 }],
  };
  const labels = { "app.kubernetes.io/name": nodeAgent };
  return {
    metadata: { name, namespace: SYSTEM, labels },
    spec: { nodeName, hostNetwork: true, containers: [{ image: "x:v9" }] },
    status,
  };
}

async function cluster(
  readers: Readonly<Record<string, Role>>,
  flows?: (path: string) => readonly FlowAnswer[],
  has: (path: string) => boolean = () => true,
) {
  const api = startFakeApi({ watchList: "refused" });
  for (const [path, object] of OBJECTS.filter(([path]) => has(path)))
    api.respond({ method: "POST", path, body: JSON.stringify(object) });
  const store = await openKube({}, { openClient: async () => api.connect() });
  await seed(store, poolChange("blue", "10.0.0.0/24"));
  return readersCluster(api, readers, flows);
}

function reader(...rules: readonly Rule[]): Role {
  return { user: "system:serviceaccount:shop:reader", rules };
}

const ADMIN: Role = { user: "admin", rules: EVERYTHING };

type More = Partial<Pick<ClusterSourceMeans, "etcd" | "alerts">>;

function open(readers: Pick<ReadersCluster, "openClient">, token = "reader", more: More = {}) {
  const { openClient } = readers;
  const means = {
    version: "v1.0.0",
    server: {},
    now: () => NOW,
    wait: (ms: number) => Bun.sleep(ms),
    uuid: () => "1",
    openClient,
    ...more,
  };
  return clusterSources(means)(token, signal);
}

describe("login", () => {
  test("is by a token that the API server accepts; it comes with every request and is in no message", async () => {
    const readers = await cluster({ reader: ADMIN });
    const source = await open(readers);

    expect(source.user).toBe("admin");
    await source.health(signal);
    expect(readers.requests.every((line) => line.startsWith("reader "))).toBe(true);
    const refused = open(readers, "not-a-token-of-anybody");
    await expect(refused).rejects.toBeInstanceOf(TokenRefused);
    await expect(refused).rejects.not.toThrow("not-a-token-of-anybody");
  });

  test("refuses what cannot be a token before it is sent", async () => {
    const readers = await cluster({});
    for (const text of ["", "two words", "line\nbreak", "x".repeat(20_000)])
      await expect(open(readers, text)).rejects.toBeInstanceOf(TokenRefused);
    expect(readers.requests).toEqual([]);
  });

  test("rights are another text if the reader may see less, and a token that was revoked is refused", async () => {
    const readers = await cluster({ reader: ADMIN });
    const source = await open(readers);
    const before = await source.rights(signal);

    expect(await source.rights(signal)).toBe(before);
    readers.roles.set("reader", { ...ADMIN, rules: [{ resources: ["nodes", "ippools"] }] });
    expect(await source.rights(signal)).not.toBe(before);
    readers.roles.delete("reader");
    await expect(source.rights(signal)).rejects.toBeInstanceOf(TokenRefused);
    await expect(source.health(signal)).rejects.toThrow();
  });
});

describe("rights", () => {
  const shop = (resources: readonly string[]): Role => ({
    user: "reader",
    rules: [{ resources: ["namespaces", "explanation"] }, { resources, namespaces: ["shop"] }],
  });

  test("are another text once if one in a namespace is taken away by which something was shown", async () => {
    const flow = { ...DENIED, destination: { ...DENIED.destination, labels: { app: "db" } } };
    const readers = await cluster({ reader: shop(["pods", "networkpolicies"]) }, () => [
      { explanation: { flow, missing: [] } },
    ]);
    const source = await open(readers);
    const before = await source.rights(signal);
    await source.draft("n2-9", signal);
    // What is asked about now was not taken away.
    expect(await source.rights(signal)).toBe(before);

    readers.roles.set("reader", shop(["pods"]));
    const after = await source.rights(signal);
    expect(after).not.toBe(before);
    expect(await source.rights(signal)).toBe(after);
  });
});

describe("health", () => {
  test("shows nodes, components, datastore and addresses to who may see all", async () => {
    const source = await open(await cluster({ reader: ADMIN }));
    const health = await source.health(signal);

    expect(v.parse(healthSchema, health)).toEqual(health);
    expect(health.hidden).toEqual([]);
    expect(health.parts.map(({ name, state, detail }) => [name, state, detail])).toEqual([
      ["operator", "ok", "1 of 1 ready"],
      ["installation", "ok", "ready"],
      ["controllers", "ok", "1 of 1 ready"],
      ["node", "ok", "2 of 2 ready"],
      ["datastore", "ok", "kubernetes"],
      ["addresses", "ok", "1 pool, 0 in use"],
      ["address records", "ok", "no leaks"],
    ]);
    expect(health.nodes.map(({ name, state, agent }) => [name, state, agent])).toEqual([
      ["one", "ok", "ready"],
      ["two", "ok", "ready"],
    ]);
  });

  test("of who may see one namespace has nothing of the cluster, not even a finding or a count", async () => {
    const source = await open(await cluster({ reader: reader({ resources: ["pods"], namespaces: ["shop"] }) }));
    const health = await source.health(signal);

    expect([health.nodes, health.problems, health.upgrade]).toEqual([[], [], undefined]);
    expect(health.parts.map(({ name }) => name)).toEqual(["datastore"]);
    expect(health.hidden).toContain("nodes");
    expect(health.hidden).toContain("IP pools");
    expect(JSON.stringify(health)).not.toMatch(/"(one|two|blue)"|10\.0\.0/);
  });

  test("does not take what is hidden for missing", async () => {
    const rules = [{ resources: ["nodes", "installations", `${product}statuses`] }];
    const { problems, nodes, hidden } = await (await open(await cluster({ reader: reader(...rules) }))).health(signal);

    expect(problems).toEqual([]);
    expect(nodes.map(({ state, agent }) => [state, agent])).toEqual([
      ["unknown", ""],
      ["unknown", ""],
    ]);
    expect(hidden).toContain("the operator");
  });

  test("of etcd, whose records the console reads itself, shows what the reader may list of each kind", async () => {
    const etcd = openMemory();
    await seed(etcd, poolChange("blue", "10.0.0.0/24"), nodeChange("one"));
    const few = await open(await cluster({ reader: reader({ resources: ["nodes"] }) }), "reader", { etcd });
    const health = await few.health(signal);

    expect(health.parts.map(({ name, detail }) => [name, detail])).toEqual([["datastore", "etcd"]]);
    expect(JSON.stringify(health)).not.toContain("blue");
    const all = await open(await cluster({ reader: ADMIN }), "reader", { etcd });
    expect((await all.health(signal)).parts.map(({ detail }) => detail)).toContain("1 pool, 0 in use");
  });
});

describe("alerts", () => {
  const SERVICE = { namespace: "monitoring", service: "prometheus", port: 9090 };
  const rules = alertGroups(identity).flatMap((group) => group.rules);
  const [full, overdue] = ["PoolFull", "AddressesOverdue"].map(
    (suffix) => rules.find(({ alert }) => alert.endsWith(suffix))?.alert ?? expect.unreachable(),
  );
  const firing = [
    { labels: { alertname: full }, state: "firing" },
    { labels: { alertname: overdue, node: "two" }, state: "firing" },
  ];

  /** The proxy of the API server refuses as for any other resource; otherwise Prometheus answers. */
  async function withPrometheus(role: Role) {
    const readers = await cluster({ reader: role });
    const openClient: ReadersCluster["openClient"] = async (access) => {
      const client = await readers.openClient(access);
      const request: typeof client.request = async (asked) => {
        const response = await client.request(asked);
        if (!asked.path.includes("/proxy/") || response.status === 403) return response;
        return { status: 200, text: JSON.stringify({ status: "success", data: { alerts: firing } }) };
      };
      return { ...client, request };
    };
    const asked = () => readers.requests.filter((line) => line.includes("/proxy/"));
    return { openClient, asked, roles: readers.roles };
  }

  test("are with the node that they are about, or with the cluster, and count for the state", async () => {
    const site = await withPrometheus(ADMIN);
    const health = await (await open(site, "reader", { alerts: SERVICE })).health(signal);

    expect(v.parse(healthSchema, health)).toEqual(health);
    expect([health.state, health.parts.at(-1)]).toMatchObject(["failed", { name: "alerts", detail: "2 alerts" }]);
    expect(health.problems.map(({ message }) => message)).toEqual([`Prometheus alert ${full}`]);
    expect(health.nodes.map(({ name, state, problems }) => [name, state, problems.length])).toEqual([
      ["one", "ok", 0],
      ["two", "warning", 1],
    ]);
  });

  test("are not asked for if no Prometheus is named", async () => {
    const site = await withPrometheus(ADMIN);
    const { parts, hidden } = await (await open(site)).health(signal);

    expect([parts.some(({ name }) => name === "alerts"), hidden, site.asked()]).toEqual([false, [], []]);
  });

  test("are gone as soon as the rights are those of a reader who may not ask", async () => {
    const site = await withPrometheus(ADMIN);
    const source = await open(site, "reader", { alerts: SERVICE });
    await source.rights(signal);
    await source.health(signal);
    site.roles.set("reader", reader({ resources: ["nodes"] }));
    await source.rights(signal);
    const health = await source.health(signal);

    expect(health.hidden).toContain("alerts of Prometheus (get of services/proxy in monitoring)");
    expect(JSON.stringify(health)).not.toContain("Prometheus alert");
    expect(site.asked()).toHaveLength(2);
  });
});

describe("what agents say of BGP sessions", () => {
  const state = (at: string) => ({
    ...{ at, sessions: { wanted: 4, established: 3 }, problems: [] },
    down: [
      { address: "198.51.100.9", asNumber: 64513, peer: "router", state: "Active", since: "2026-01-02T03:00:00Z" },
    ],
  });
  const change = (text: string) => {
    const made = nodeKind.make({ name: "one", annotations: { [ROUTING_STATE_ANNOTATION]: text } }, {});
    return { kind: "put", key: NODE.key({ name: "one" }), value: nodeKind.write(made) } as const;
  };
  const healthOf = async (text: string, role: Role) => {
    const etcd = openMemory();
    await seed(etcd, poolChange("blue", "10.0.0.0/24"), change(text));
    return (await open(await cluster({ reader: role }), "reader", { etcd })).health(signal);
  };

  test("is the BGP of the node, and a problem of it", async () => {
    const { nodes, problems } = await healthOf(JSON.stringify(state("2026-01-01T00:00:00Z")), ADMIN);

    expect(problems).toEqual([]);
    expect(nodes.map(({ name, state, bgp, knownAt }) => [name, state, bgp, knownAt])).toEqual([
      ["one", "warning", "3 of 4 sessions established", NOW.getTime()],
      ["two", "ok", "", NOW.getTime()],
    ]);
    expect(nodes[0]?.problems).toMatchObject([
      { state: "warning", message: expect.stringContaining("198.51.100.9 (AS 64513, router) is Active") },
    ]);
  });

  test("is as old as it was written if the agent does not run", async () => {
    const etcd = openMemory();
    await seed(etcd, change(JSON.stringify(state("2026-01-01T00:00:00Z"))));
    const api = await cluster({ reader: ADMIN }, undefined, (path) => !path.endsWith("/pods"));
    const { nodes } = await (await open(api, "reader", { etcd })).health(signal);

    expect(nodes[0]).toMatchObject({
      bgp: "3 of 4 sessions established (as of 2026-01-01T00:00:00Z)",
      knownAt: Date.parse("2026-01-01T00:00:00Z"),
    });
  });

  test("is not shown to who may not list the Nodes of this product", async () => {
    const rules = [{ resources: ["nodes"], groups: [""] }];
    const health = await healthOf(JSON.stringify(state("2026-01-01T00:00:00Z")), reader(...rules));

    expect(health.nodes.map(({ name, bgp, problems }) => [name, bgp, problems])).toEqual([
      ["one", "", []],
      ["two", "", []],
    ]);
    expect(JSON.stringify(health)).not.toContain("198.51.100.9");
    expect(health.hidden).toContain("nodes");
  });

  test("does not break the page if it cannot be read", async () => {
    const { nodes } = await healthOf("\u001b[2J{", ADMIN);

    expect(nodes.map(({ state, bgp }) => [state, bgp])).toEqual([
      ["warning", ""],
      ["ok", ""],
    ]);
  });
});

describe("flows", () => {
  const answers: readonly FlowAnswer[] = [{ flow: ALLOWED }, { flow: DENIED }, FLOWS_WELL];

  test("are those that the API of flows gives this reader", async () => {
    const paths: string[] = [];
    const readers = await cluster({ reader: ADMIN }, (path) => {
      paths.push(path);
      return answers;
    });
    const source = await open(readers);

    expect(await Array.fromAsync(source.flows({ last: 10 }, false, signal))).toEqual([...answers]);
    expect(await Array.fromAsync(source.explanation("n1-2", signal))).toEqual([...answers]);
    expect(paths.map((path) => path.split("/").at(-1))).toEqual(["flows", "explanation"]);
  });

  test("of who may not read all are asked for in the namespace of the question, or of the service account", async () => {
    const paths: string[] = [];
    const role = reader({ resources: ["flows"], namespaces: ["shop"] });
    const readers = await cluster({ reader: role }, (path) => {
      paths.push(path);
      return answers;
    });
    const source = await open(readers);

    await Array.fromAsync(source.flows({}, false, signal));
    await Array.fromAsync(source.flows({ namespace: "shop" }, true, signal));
    expect(paths.every((path) => path.endsWith("/namespaces/shop/flows"))).toBe(true);
    expect(paths.length).toBe(2);
    await expect(Array.fromAsync(source.flows({ namespace: "bank" }, false, signal))).rejects.toThrow("403");
  });
});
