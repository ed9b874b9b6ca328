import { describe, expect, test } from "bun:test";
import { type SitePlan, StepCluster } from "../../../../test/support/step-site.ts";
import { API_VERSION, identity } from "../../../identity.ts";
import { CREATED_BY_LABEL } from "../../../model/automatic-host-endpoint.ts";
import { GLOBAL_NETWORK_POLICY, HOST_ENDPOINT, KUBE_CONTROLLERS_CONFIGURATION, NODE } from "../../../model/kinds.ts";
import type { StepPlan } from "../../engine/step.ts";
import { hostEndpointsStep as step } from "./step.ts";

const CONFIGURATION = KUBE_CONTROLLERS_CONFIGURATION.key({ name: "default" });

/** Nodes n1 (role=edge comes from its host endpoint) and n2, without one. */
async function cluster(plan: SitePlan = {}): Promise<StepCluster> {
  const made = new StepCluster(plan);
  for (const name of ["n1", "n2"]) {
    await made.objects.create("/api/v1/nodes", {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: objectName(made, name), labels: { zone: "a" } },
    });
    if (made.facts.datastore === "etcd") {
      const orchRefs = [{ orchestrator: "k8s", nodeName: objectName(made, name) }];
      await put(made, NODE.key({ name }), "Node", { name, labels: { zone: "a" } }, { orchRefs });
    }
  }
  await endpoint(made, "edge-of-n1", { role: "edge" });
  await policy(made, "edge", "role == 'edge'");
  made.whileWaiting = () => controllers(made);
  return made;
}

/** On etcd the orchestrator's nodes have other names than ours. */
const objectName = ({ facts }: StepCluster, node: string) => (facts.datastore === "etcd" ? `host-${node}` : node);

const put = (on: StepCluster, key: string, kind: string, metadata: object, spec: object) =>
  on.store.commit([{ kind: "create", key, value: JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec }) }]);

const endpoint = (on: StepCluster, name: string, labels: object, spec: object = {}) =>
  put(
    on,
    HOST_ENDPOINT.key({ name }),
    "HostEndpoint",
    { name, labels, ...(on.facts.datastore === "etcd" ? { uid: `uid-of-${name}` } : {}) },
    { node: "n1", interfaceName: "*", ...spec },
  );

const policy = (on: StepCluster, name: string, selector: string, spec: object = {}) =>
  put(
    on,
    GLOBAL_NETWORK_POLICY.key({ name }),
    "GlobalNetworkPolicy",
    { name },
    {
      selector,
      types: ["Ingress", "Egress"],
      ...spec,
    },
  );

// biome-ignore lint/suspicious/noExplicitAny: a record has the fields that its test expects.
async function record(on: StepCluster, key: string): Promise<any> {
  const text = (await on.store.read([{ kind: "key", key }])).answers[0]?.[0]?.value;
  return text === undefined ? undefined : JSON.parse(text);
}

/** What the controllers do: copy labels on etcd, keep automatic host endpoints. */
async function controllers(on: StepCluster): Promise<void> {
  const { spec } = (await record(on, CONFIGURATION)) ?? { spec: {} };
  for (const name of ["n1", "n2"]) {
    const object = on.api.object(`/api/v1/nodes/${objectName(on, name)}`)?.metadata["labels"] as object;
    const own = await record(on, NODE.key({ name }));
    if (on.facts.datastore === "etcd" && !Bun.deepEquals(own.metadata.labels, object)) {
      const value = JSON.stringify({ ...own, metadata: { ...own.metadata, labels: object } });
      await on.store.commit([{ kind: "put", key: NODE.key({ name }), value }]);
    }
    const key = HOST_ENDPOINT.key({ name: `${name}-auto-hep` });
    const [entry] = (await on.store.read([{ kind: "key", key }])).answers[0] ?? [];
    if (spec.controllers?.node?.hostEndpoint?.autoCreate !== "Enabled") {
      if (entry !== undefined) await on.store.commit([{ kind: "delete", key, revision: entry.revision }]);
      continue;
    }
    const labels = { ...object, [CREATED_BY_LABEL]: identity.controllers };
    const value = HOST_ENDPOINT.codec.write(
      HOST_ENDPOINT.codec.make(
        { name: `${name}-auto-hep`, labels },
        { node: name, interfaceName: "*", profiles: [`${identity.product}-default-allow`] },
      ),
    );
    await on.store.commit([
      entry === undefined ? { kind: "create", key, value } : { kind: "update", key, value, revision: entry.revision },
    ]);
  }
}

async function planned(on: StepCluster): Promise<StepPlan> {
  const plan = await step.plan(on.site());
  if (plan === undefined) throw new Error("nothing is planned");
  return plan;
}

const messages = ({ obstacles }: StepPlan) => obstacles.map(({ message }) => message).join("\n");

/** Everything that the step is about, without what differs from run to run. */
async function state(on: StepCluster): Promise<unknown> {
  const nodes = ["n1", "n2"].map((name) => on.api.object(`/api/v1/nodes/${objectName(on, name)}`)?.metadata["labels"]);
  const entries = (await on.store.read([{ kind: "prefix", prefix: HOST_ENDPOINT.prefix() }])).answers[0] ?? [];
  const endpoints = entries.map(({ key, value }) => HOST_ENDPOINT.codec.read(value, key));
  return {
    nodes,
    endpoints: endpoints.map(({ metadata: { name, labels }, spec }) => ({ name, labels, spec })),
    switch: (await record(on, CONFIGURATION))?.spec.controllers.node.hostEndpoint,
  };
}

describe.each(["kubernetes", "etcd"] as const)("the step host-endpoints on %s", (datastore) => {
  test("labels nodes, switches, waits, and deletes what was replaced; again it writes nothing", async () => {
    const on = await cluster({ datastore });
    const plan = await planned(on);
    expect(messages(plan)).toBe("");
    expect(plan.changes.map(({ action, what }) => `${action} ${what}`)).toEqual([
      `update Node ${objectName(on, "n1")}`,
      "create KubeControllersConfiguration default",
      "delete HostEndpoint edge-of-n1",
    ]);
    expect(plan.changes[0]?.diff).toBe("+role=edge");
    expect(plan.notes).toContain("GlobalNetworkPolicy edge (ingress) selects n1 before and after");

    await on.run(step, plan);
    const { nodes, endpoints } = (await state(on)) as { nodes: unknown; endpoints: { name: string; labels: object }[] };
    expect(nodes).toEqual([{ zone: "a", role: "edge" }, { zone: "a" }]);
    expect(endpoints.map(({ name }) => name)).toEqual(["n1-auto-hep", "n2-auto-hep"]);
    expect(endpoints[0]?.labels).toMatchObject({ role: "edge" });
    expect(Object.keys((await record(on, CONFIGURATION)).spec.controllers)).toHaveLength(5);

    on.writes.length = 0;
    await on.run(step, plan);
    expect(on.writes).toEqual([]);
    expect(await step.plan(on.site())).toBeUndefined();
  });

  test("killed at any write and started again, it ends as if it had not been; so does going back", async () => {
    const undisturbed = await cluster({ datastore });
    const before = await state(undisturbed);
    const plan = await planned(undisturbed);
    await undisturbed.run(step, plan);
    const after = await state(undisturbed);

    let write = 0;
    for (let isKilled = true; isKilled; ) {
      const on = await cluster({ datastore });
      write += 1;
      isKilled = await on.killedAt(write, () => on.run(step, plan));
      await on.run(step, plan);
      expect(await state(on)).toEqual(after);
    }
    // A backup, a label, the switch, a deletion; the last run is not killed.
    expect(write).toBe(5);
    for (write = 1; write <= 4; write += 1) {
      const on = await cluster({ datastore });
      await on.run(step, plan);
      const rollback = () => step.rollback?.(on.site(), plan) ?? Promise.resolve();
      expect(await on.killedAt(write, rollback)).toBe(write < 4);
      await rollback();
      await controllers(on);
      expect(await state(on)).toEqual({ ...(before as object), switch: undefined });
    }
  });

  test("keeps other settings of the controllers, and their value for going back", async () => {
    const on = await cluster({ datastore });
    const spec = {
      controllers: { policy: {}, node: { leakGracePeriod: "5m", hostEndpoint: { autoCreate: "Disabled" } } },
    };
    await put(on, CONFIGURATION, "KubeControllersConfiguration", { name: "default" }, spec);
    const plan = await planned(on);

    await on.run(step, plan);
    const switched = { leakGracePeriod: "5m", hostEndpoint: { autoCreate: "Enabled" } };
    expect((await record(on, CONFIGURATION)).spec).toEqual({ controllers: { policy: {}, node: switched } });
    await step.rollback?.(on.site(), plan);
    expect((await record(on, CONFIGURATION)).spec).toEqual(spec);
  });

  test("stops before anything is deleted if no automatic host endpoint appears", async () => {
    const on = await cluster({ datastore });
    on.whileWaiting = async () => {};
    await expect(on.run(step, await planned(on))).rejects.toMatchObject({ kind: "try-again-later" });

    expect(await record(on, HOST_ENDPOINT.key({ name: "edge-of-n1" }))).toBeDefined();
  });

  test("does not delete a host endpoint that was created again, nor go on with one that is new", async () => {
    const on = await cluster({ datastore });
    const plan = await planned(on);
    const key = HOST_ENDPOINT.key({ name: "edge-of-n1" });
    on.whileWaiting = async () => {
      await controllers(on);
      const [entry] = (await on.store.read([{ kind: "key", key }])).answers[0] ?? [];
      await on.store.commit([{ kind: "delete", key, revision: entry?.revision ?? "" }]);
      await put(on, key, "HostEndpoint", { name: "edge-of-n1", uid: "another" }, { node: "n1", interfaceName: "*" });
    };
    await expect(on.run(step, plan)).rejects.toMatchObject({ kind: "resource-changed" });
    expect(await record(on, key)).toBeDefined();

    await endpoint(on, "late", {});
    await expect(on.run(step, plan)).rejects.toThrow(/late/);
  });

  test("does not delete if a policy selects only the host endpoint that would go", async () => {
    const on = await cluster({ datastore });
    const plan = await planned(on);
    on.whileWaiting = async () => {
      await controllers(on);
      await policy(on, "late", "!has(zone)");
    };
    await expect(on.run(step, plan)).rejects.toThrow(/GlobalNetworkPolicy late/);

    expect(await record(on, HOST_ENDPOINT.key({ name: "edge-of-n1" }))).toBeDefined();
  });
});

describe("the plan of the step host-endpoints", () => {
  test("is none without the option", async () => {
    expect(await step.plan((await cluster({ options: { automaticHostEndpoints: false } })).site())).toBeUndefined();
  });

  test("names conflicting labels; the option replaces them, and going back restores the former value", async () => {
    const on = await cluster();
    await endpoint(on, "other", { zone: "b" });
    expect(messages(await planned(on))).toContain(
      'Node "n1" has label "zone" with value "a"; its host endpoint has "b"',
    );

    on.options = { ...on.options, overwriteLabels: true };
    const plan = await planned(on);
    expect(messages(plan)).toBe("");
    expect(plan.changes[0]?.diff).toBe("+role=edge\n-zone=a\n+zone=b");
    await on.run(step, plan);
    expect(on.api.object("/api/v1/nodes/n1")?.metadata["labels"]).toEqual({ zone: "b", role: "edge" });
    await step.rollback?.(on.site(), plan);
    expect(on.api.object("/api/v1/nodes/n1")?.metadata["labels"]).toEqual({ zone: "a" });
  });

  test.each([
    ["endpoints that disagree", { role: "core" }, {}, 'disagree about label "role"'],
    ["an unknown node", {}, { node: "n9" }, 'node "n9", which does not exist'],
    ["a value that no label of the orchestrator can have", { note: "two words" }, {}, '"two words"'],
    ["profiles", {}, { profiles: ["own"] }, "has the profiles own"],
    ["a named port that rules use", {}, { ports: [{ name: "web", port: 80, protocol: "TCP" }] }, 'Port "web"'],
  ] as const)("refuses %s", async (_, labels, spec, message) => {
    const on = await cluster();
    await policy(on, "named", "has(zone)", {
      ingress: [{ action: "Allow", protocol: "TCP", destination: { ports: ["web"] } }],
    });
    await endpoint(on, "other", labels, spec);

    expect(messages(await planned(on))).toContain(message);
  });

  test("refuses to open a host, unless that is accepted", async () => {
    const on = await cluster();
    const key = GLOBAL_NETWORK_POLICY.key({ name: "edge" });
    const edge = await record(on, key);
    const [entry] = (await on.store.read([{ kind: "key", key }])).answers[0] ?? [];
    const value = JSON.stringify({ ...edge, spec: { ...edge.spec, types: ["Ingress"] } });
    await on.store.commit([{ kind: "update", key, value, revision: entry?.revision ?? "" }]);
    expect(messages(await planned(on))).toContain(
      'Host "n1" would become open: no policy decides about all its egress',
    );

    on.options = { ...on.options, acceptDefaultAllow: true };
    const plan = await planned(on);
    expect(plan.obstacles).toEqual([]);
    expect(plan.notes.join("\n")).toContain('Host "n1" would become open');
  });

  test("counts a tier that passes on as one that leaves the host open", async () => {
    const on = await cluster();
    await put(
      on,
      GLOBAL_NETWORK_POLICY.key({ name: "first.all" }),
      "GlobalNetworkPolicy",
      { name: "first.all" },
      {
        tier: "first",
        selector: "has(other)",
        types: ["Ingress", "Egress"],
        ingress: [{ action: "Pass" }],
      },
    );
    await endpoint(on, "of-n2", { other: "yes" }, { node: "n2" });

    const { obstacles } = await planned(on);
    expect(obstacles.map(({ message }) => message)).toEqual([
      'Host "n2" would become open: no policy decides about all its ingress traffic, and an automatic host endpoint allows the rest',
    ]);
  });

  test("names policies that begin to apply to hosts, and what else selects the nodes", async () => {
    const on = await cluster();
    await policy(on, "all", "all()");
    await put(
      on,
      `/${identity.product}/resources/v3/${identity.apiGroup}/ippools/edge`,
      "IPPool",
      { name: "edge" },
      {
        cidr: "10.0.0.0/16",
        nodeSelector: "role == 'edge'",
      },
    );
    await on.objects.create("/apis/apps/v1/namespaces/shop/daemonsets", {
      metadata: { name: "probe", namespace: "shop" },
      spec: { template: { spec: { containers: [], nodeSelector: { role: "edge" } } } },
    });
    const term = { matchExpressions: [{ key: "role", operator: "DoesNotExist" }] };
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } };
    await on.objects.create("/api/v1/namespaces/shop/pods", {
      metadata: { name: "alone", namespace: "shop" },
      spec: { containers: [], affinity: { nodeAffinity } },
    });

    expect((await planned(on)).notes).toEqual(
      expect.arrayContaining([
        "GlobalNetworkPolicy all (ingress) begins to apply to n2 (without a host endpoint so far)",
        "nodeSelector of IPPool edge selects n1 too",
        "nodeSelector or affinity of DaemonSet shop/probe selects n1 too",
        "nodeSelector or affinity of Pod shop/alone no longer selects n1",
      ]),
    );
  });

  test("refuses policies that begin to apply to hosts without failsafe ports", async () => {
    const on = await cluster();
    await policy(on, "all", "all()");
    await put(
      on,
      `/${identity.product}/resources/v3/${identity.apiGroup}/nodeagentconfigurations/default`,
      "NodeAgentConfiguration",
      { name: "default" },
      { failsafeInboundHostPorts: [] },
    );

    expect(messages(await planned(on))).toContain("no failsafe ports");
  });

  test("reads the resources of an earlier release before they are moved", async () => {
    const on = new StepCluster({ storage: "former" });
    const former = (plural: string, name: string, kind: string, labels: object, spec: object) =>
      on.objects.create(`/apis/crd.${identity.apiGroup}/v1/${plural}`, {
        kind,
        metadata: { name, annotations: { [`${identity.labelPrefix}metadata`]: JSON.stringify({ labels }) } },
        spec,
      });
    await on.objects.create("/api/v1/nodes", { metadata: { name: "n1", labels: {} } });
    await former("hostendpoints", "edge", "HostEndpoint", { role: "edge" }, { node: "n1", interfaceName: "*" });
    await former(
      "globalnetworkpolicies",
      "default.edge",
      "GlobalNetworkPolicy",
      {},
      {
        selector: "role == 'edge'",
        types: ["Ingress", "Egress"],
      },
    );

    const plan = await planned(on);
    expect(messages(plan)).toBe("");
    expect(plan.notes).toContain("GlobalNetworkPolicy edge (egress) selects n1 before and after");
  });
});
