import { describe, expect, test } from "bun:test";
import { objectTable } from "../../../../test/support/object-table.ts";
import { rejectionOf } from "../../../../test/support/thrown-by.ts";
import { upgradeSite } from "../../../../test/support/upgrade-site.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { identity } from "../../../identity.ts";
import { FORMER_INFORMATION } from "../../former-storage/lock.ts";
import { remainingNodesStep } from "../remaining-nodes/step.ts";
import { rolloutStep } from "./step.ts";

const OWNED = { ownerReferences: [{ uid: "agents" }] };
const LONG_AGO = "2020-01-01T00:00:00Z";

const node = (name: string, ready: object = {}) => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name },
  status: { conditions: [{ type: "Ready", status: "True", ...ready }] },
});
const pod = (name: string, metadata: object = {}, status: object = { phase: "Running" }) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: `pod-${name}`, namespace: "kube-system", ...OWNED, ...metadata },
  spec: { nodeName: name, containers: [] },
  status,
});
const PINNED = "registry.example/node@sha256:0123";

function daemonSet(spec: object = {}, version = "v3.26.1", image = `registry.example/node:${version}`) {
  const containers = [{ name: identity.nodeAgent, image }];
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: identity.nodeAgent, namespace: "kube-system", uid: "agents" },
    spec: { selector: { matchLabels: {} }, template: { spec: { containers } }, ...spec },
    status: { observedGeneration: 1 },
  };
}
const planOf = (...items: readonly object[]) => rolloutStep.plan(upgradeSite({ objects: objectTable(items).objects }));
const messages = async (...items: readonly object[]) =>
  (await planOf(...items))?.obstacles.map(({ message, remedy }) => `${message}: ${remedy}`);

describe("the plan on an orchestrator with PodSecurityPolicies", () => {
  const RBAC = "rbac.authorization.k8s.io/v1";
  const policy = (name: string, spec: object = { privileged: true, hostNetwork: true }) => ({
    apiVersion: "policy/v1beta1",
    kind: "PodSecurityPolicy",
    metadata: { name },
    spec,
  });
  /** A role that may use the policy, bound to the subject. */
  const permission = (role: string, policyName: string, subject: object) => [
    {
      apiVersion: RBAC,
      kind: "ClusterRole",
      metadata: { name: role },
      rules: [
        { apiGroups: ["policy"], resources: ["podsecuritypolicies"], resourceNames: [policyName], verbs: ["use"] },
      ],
    },
    {
      apiVersion: RBAC,
      kind: "ClusterRoleBinding",
      metadata: { name: role },
      roleRef: { kind: "ClusterRole", name: role },
      subjects: [subject],
    },
  ];
  const AGENT = { kind: "ServiceAccount", namespace: "kube-system", name: identity.nodeAgent };
  const enforced = pod("one", { annotations: { "kubernetes.io/psp": "wide" } });
  const findings = async (agent: object, items: readonly object[], orchestratorVersion = "v1.24.17") => {
    const { objects, paths } = objectTable([daemonSet(), node("one"), agent, ...items]);
    const plan = await rolloutStep.plan(upgradeSite({ objects, facts: { orchestratorVersion } }));
    return { notes: plan?.notes, obstacles: plan?.obstacles, paths };
  };

  test("has a note with accounts and command if nothing shows that they are enforced", async () => {
    const { notes, obstacles } = await findings(pod("one"), [policy("wide")]);
    const accounts = `ServiceAccount kube-system/${identity.nodeAgent}, ServiceAccount kube-system/${identity.controllers}`;

    expect(obstacles).toEqual([]);
    expect(notes).toEqual([expect.stringContaining(`permit ${accounts} a privileged one first`)]);
    expect(notes?.[0]).toContain(
      `kubectl create clusterrole ${identity.product}-pod-security --verb=use --resource=podsecuritypolicies.policy --resource-name=wide && `,
    );
    expect(notes?.[0]).toEndWith(
      `--serviceaccount=kube-system:${identity.nodeAgent} --serviceaccount=kube-system:${identity.controllers}`,
    );
  });

  test.each<[string, readonly object[]]>([
    ["nothing permits one", []],
    ["only the role of the earlier release does", permission(identity.nodeAgent, "wide", AGENT)],
    [
      "only a restricted one is permitted",
      permission("all", "narrow", { kind: "Group", name: "system:authenticated" }),
    ],
    ["another account may use it", permission("mine", "wide", { ...AGENT, namespace: "shop" })],
    ["the permitted one is deleted", permission("mine", identity.nodeAgent, AGENT)],
  ])("has an obstacle if they are enforced and %s", async (_, permitted) => {
    const policies = [policy("wide"), policy("narrow", { privileged: false }), policy(identity.nodeAgent)];
    const { notes, obstacles } = await findings(enforced, [...policies, ...permitted]);

    expect(notes).toEqual([]);
    expect(obstacles).toEqual([
      {
        message: expect.stringContaining(
          `ServiceAccount kube-system/${identity.nodeAgent}: new pods would not be created`,
        ),
        remedy: expect.stringContaining("--resource-name=wide && kubectl create clusterrolebinding"),
      },
    ]);
  });

  test.each<[string, readonly object[]]>([
    ["the account may use a privileged one", permission("mine", "wide", AGENT)],
    ["all accounts may", permission("mine", "wide", { kind: "Group", name: "system:serviceaccounts" })],
  ])("has nothing to say if %s", async (_, permitted) => {
    const { notes, obstacles } = await findings(enforced, [policy("wide"), ...permitted]);
    expect({ notes, obstacles }).toEqual({ notes: [], obstacles: [] });
  });

  test("does not look for them where the API has none", async () => {
    const { paths, notes } = await findings(enforced, [policy("wide")], "v1.25.0");
    expect(notes).toEqual([]);
    expect(paths.filter((path) => path.includes("podsecuritypolicies"))).toEqual([]);
  });

  test("asks for a policy if there is no privileged one that stays", async () => {
    const { obstacles } = await findings(enforced, [policy(identity.nodeAgent)]);
    expect(obstacles?.[0]?.remedy).toStartWith("create a privileged PodSecurityPolicy; kubectl create clusterrole");
  });
});

describe("the plan of the rolling update", () => {
  test("has no obstacle if all nodes can be updated", async () => {
    expect(await messages(daemonSet(), node("one"), pod("one"))).toEqual([]);
  });

  test.each<[string, readonly object[], RegExp]>([
    [
      "a node that is down",
      [node("two", { status: "Unknown", reason: "NodeStatusUnknown" }), pod("two")],
      /^Node two cannot be updated: the Node is not ready \(NodeStatusUnknown\).*: repair the node, or delete the Node two/,
    ],
    ["a node without a pod", [node("two")], /^Node two cannot be updated: it has no pod of the DaemonSet/],
    [
      "a pod that does not end",
      [node("two"), pod("two", { deletionTimestamp: LONG_AGO })],
      /^Node two cannot be updated: pod pod-two does not end/,
    ],
    [
      "a pod without room",
      [
        node("two"),
        pod("two", {}, { conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable" }] }),
      ],
      /^Node two cannot be updated: pod pod-two: it is not scheduled \(Unschedulable\)/,
    ],
  ])("names %s", async (_, items, message) => {
    expect(await messages(daemonSet(), node("one"), pod("one"), ...items)).toEqual([expect.stringMatching(message)]);
  });

  test.each<[string, readonly object[]]>([
    [
      "whose network plugin does not work, which the update may repair",
      [
        daemonSet(),
        node("one", { status: "False", message: "container runtime: reason:NetworkPluginNotReady" }),
        pod("one"),
      ],
    ],
    ["when the update has begun", [daemonSet({}, "v3.29.0"), node("one", { status: "Unknown" })]],
  ])("accepts a node %s", async (_, items) => {
    expect(await messages(...items)).toEqual([]);
  });

  test("says who replaces the pods with OnDelete", async () => {
    const plan = await planOf(daemonSet({ updateStrategy: { type: "OnDelete" } }), node("one"), pod("one"));

    expect(plan?.notes).toEqual([expect.stringMatching(/OnDelete: while this step waits, delete its pods/)]);
  });
});

describe("the time of the rolling update", () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `node-${index}`);
  const planFor = (count: number, given: { storage?: "former"; maxUnavailable?: string; spec?: object }) => {
    const { objects } = objectTable([daemonSet(given.spec), node("one"), pod("one")]);
    const { storage = "current", maxUnavailable } = given;
    const options = maxUnavailable === undefined ? {} : { maxUnavailable };
    return rolloutStep.plan(upgradeSite({ objects, facts: { nodes: names(count), storage }, options }));
  };

  test.each<[string, number, Parameters<typeof planFor>[1], string, number]>([
    ["as the DaemonSet says", 100, {}, "100 nodes, one at a time, about 20 s each", 2_000],
    [
      "a tenth at once while the datastore is locked",
      5_000,
      { storage: "former" },
      "5000 nodes, the first one alone, then 500 at once, about 20 s each",
      220,
    ],
    ["at least one", 3, { storage: "former" }, "3 nodes, one at a time, about 20 s each", 60],
    [
      "as the option says",
      100,
      { storage: "former", maxUnavailable: "50%" },
      "100 nodes, the first one alone, then 50 at once, about 20 s each",
      60,
    ],
    [
      "as the DaemonSet says, if that is more",
      100,
      { storage: "former", spec: { updateStrategy: { rollingUpdate: { maxUnavailable: 33 } } } },
      "100 nodes, the first one alone, then 33 at once, about 20 s each",
      80,
    ],
    [
      "one at a time by hand",
      100,
      { storage: "former", spec: { updateStrategy: { type: "OnDelete" } } },
      "100 nodes, one at a time, about 20 s each",
      2_000,
    ],
  ])("is planned: %s", async (_, count, given, what, seconds) => {
    const plan = await planFor(count, given);

    expect(plan?.changes.map((change) => change.what)).toEqual([
      `DaemonSet kube-system/${identity.nodeAgent}: ${what}`,
    ]);
    expect(plan?.estimatedSeconds).toBe(seconds);
  });
});

describe("a node that is down when the datastore is locked", () => {
  const image = "registry.example/node:v3.29.0";
  const running = (name: string, metadata: object = {}) => {
    const container = { name: identity.nodeAgent, image };
    const status = { phase: "Running", containerStatuses: [{ ...container, ready: true }] };
    return { ...pod(name, metadata, status), spec: { nodeName: name, containers: [container] } };
  };
  const siteWith = (...items: readonly object[]) => {
    const { objects } = objectTable([daemonSet({}, "", image), ...items]);
    const facts = { storage: "former", nodes: ["one", "two"] } as const;
    return upgradeSite({ objects, store: openMemory(), facts, options: { stallSeconds: 600 } });
  };
  const PLAN = { step: "rollout", changes: [], obstacles: [], notes: [], estimatedSeconds: 0, data: {} };
  const DOWN = [
    node("two", { status: "Unknown", reason: "NodeStatusUnknown" }),
    running("two", { deletionTimestamp: LONG_AGO }),
  ];

  test("does not hold the lock: the update ends without it, and remembers it", async () => {
    const site = siteWith(node("one"), running("one"), ...DOWN);
    await rolloutStep.act(site, PLAN);

    expect(await rolloutStep.remaining(site, PLAN)).toEqual([]);
    expect(await site.notes.read()).toEqual({
      enoughForRunOf: site.begunAt.toISOString(),
      left: { two: expect.stringContaining("the Node is not ready (NodeStatusUnknown)") },
    });
    expect(site.lines).toContainEqual(
      expect.stringMatching(/^Node two: .* It is not updated after 300 s.*follows no change.*cordon/),
    );
  });

  test("a node that has joined since the lock is not waited for, as the backups say", async () => {
    const site = siteWith(node("one"), running("one"), node("two"), {
      ...running("two"),
      status: { phase: "Running" },
    });
    const began = site.now().getTime();
    await site.backups.save("nodes-at-the-lock", '["one"]');
    await rolloutStep.act(site, PLAN);

    expect(site.now().getTime()).toBe(began);
  });

  test.each<[string, readonly object[]]>([
    ["a node that joins", [node("one"), running("one"), node("new")]],
    ["an agent that restarts", [node("one"), { ...running("one"), status: { phase: "Running" } }]],
  ])("the update is not undone by %s after its last look, as long as the step runs", async (_, items) => {
    const site = siteWith(node("one"), running("one"));
    await rolloutStep.act(site, PLAN);
    const later = { ...site, objects: siteWith(...items).objects };

    expect(await rolloutStep.remaining({ ...later, stateOf: () => "running" }, PLAN)).toEqual([]);
    expect(await rolloutStep.remaining({ ...later, stateOf: () => "done" }, PLAN)).toHaveLength(1);
    // Continued by another run of the tool: all agents may crash by now.
    const continued = { ...later, stateOf: () => "running" as const, begunAt: new Date("2026-01-03T00:00:00Z") };
    expect(await rolloutStep.remaining(continued, PLAN)).toHaveLength(1);
    // A former agent is never enough.
    const former = {
      ...running("one"),
      spec: { nodeName: "one", containers: [{ name: identity.nodeAgent, image: "old" }] },
    };
    const back = { ...site, objects: siteWith(node("one"), former).objects, stateOf: () => "running" as const };
    expect(await rolloutStep.remaining(back, PLAN)).toEqual([expect.stringContaining("Node one: ")]);
  });

  test("is waited for if the plan has no step that does it later, as plans of earlier builds", async () => {
    const site = siteWith(node("one"), running("one"), ...DOWN);
    const failure = await rejectionOf(() => rolloutStep.act({ ...site, stateOf: () => undefined }, PLAN));

    expect(failure.message).toMatch(/no progress for 600 s: Node two/);
  });

  test("is waited for afterwards: it is named, with what to do", async () => {
    const site = siteWith(node("one"), running("one"), ...DOWN);
    const failure = await rejectionOf(() => remainingNodesStep.act(site, PLAN));

    expect(await remainingNodesStep.remaining(site, PLAN)).toEqual([expect.stringContaining("Node two: ")]);
    expect(failure).toMatchObject({
      kind: "not-ready",
      message: expect.stringMatching(/^The datastore is unlocked, but not all nodes are updated.*Node two: /),
      details: expect.stringMatching(
        /former storage stays locked.*follows no change.*cordon.*Repair each node, or delete its Node.*apply again/,
      ),
    });
  });

  const FORMER_GROUP = `crd.${identity.apiGroup}`;
  test.each([
    ["rollout", rolloutStep],
    ["remaining-nodes", remainingNodesStep],
  ])("while the step %s waits for it, the former storage is locked again if somebody unlocks it", async (_, step) => {
    const metadata = { name: "default" };
    const kind = { apiVersion: `${FORMER_GROUP}/v1`, kind: "ClusterInformation" };
    const site = siteWith(node("one"), running("one"), ...DOWN, { ...kind, metadata, spec: { datastoreReady: true } });
    const patched: unknown[] = [];
    const patch = async (path: string, change: object) => {
      patched.push([path, change]);
      return {};
    };
    await rejectionOf(() => step.act({ ...site, objects: { ...site.objects, patch } }, PLAN));

    expect(patched).toContainEqual([FORMER_INFORMATION, { spec: { datastoreReady: false } }]);
  });

  test("has nothing to be waited for when it is updated", async () => {
    const site = siteWith(node("one"), running("one"), node("two"), running("two"));

    expect(await remainingNodesStep.remaining(site, PLAN)).toEqual([]);
    expect(await remainingNodesStep.plan(upgradeSite({ objects: site.objects }))).toBeUndefined();
  });
});

describe("the rolling update", () => {
  const NEXT = PINNED.replace("0123", "4567");
  const TAGGED = "registry.example/node:v3.26.1@sha256:0123";
  const siteWith = (image: string, version?: string) => {
    const container = { name: identity.nodeAgent, image };
    const status = { phase: "Running", containerStatuses: [{ ...container, ready: true }] };
    const running = { ...pod("one", {}, status), spec: { nodeName: "one", containers: [container] } };
    const { objects } = objectTable([daemonSet({}, "", image), node("one"), running]);
    return upgradeSite({ objects, facts: version === undefined ? {} : { version } });
  };

  test.each([PINNED, TAGGED])("is planned although the image %s does not tell its release", async (image) => {
    expect(await rolloutStep.plan(siteWith(image))).toMatchObject({ step: "rollout" });
  });

  test("is not planned in a cluster of this release", async () => {
    expect(await rolloutStep.plan(siteWith(PINNED, "v3.29.0"))).toBeUndefined();
  });

  test("is not complete while the DaemonSet has the image of the plan", async () => {
    const plan = await rolloutStep.plan(siteWith(PINNED));
    if (plan === undefined) throw new Error("nothing is planned");

    expect(await rolloutStep.remaining(siteWith(PINNED), plan)).toEqual([expect.stringContaining(PINNED)]);
    expect(await rolloutStep.remaining(siteWith(NEXT), plan)).toEqual([]);
  });
});
