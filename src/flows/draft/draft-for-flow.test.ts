import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { proofSize } from "../../../test/support/proof-size.ts";
import { clusters, configurations, packets } from "../../../test/support/random-cluster.ts";
import { recordedFlow } from "../../../test/support/recorded-flow.ts";
import { endpointLabels } from "../../model/endpoint-labels.ts";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import { type NetworkPolicySpec, networkPolicy } from "../../model/network-policy.ts";
import { nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { namespaceProfile } from "../../model/orchestrator-profile.ts";
import { OWNER_ANNOTATION } from "../../model/pod-owner.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import { profile } from "../../model/profile.ts";
import { tier } from "../../model/tier.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import type { FlowRecord } from "../flow-record.ts";
import { flowReplay } from "../replay-flows.ts";
import { draftForFlow } from "./draft-for-flow.ts";
import { draftText } from "./draft-text.ts";

const settingsOf = (node: string) => nodeAgentSettings([], node);

function pod(name: string, address: string, labels: Readonly<Record<string, string>>, profiles = ["kns.shop"]) {
  const metadata = {
    ...{ name: `n1-k8s-${name.replaceAll("-", "--")}-eth0`, namespace: "shop" },
    labels: endpointLabels(labels, { namespace: "shop", orchestrator: "k8s" }),
    annotations: { [OWNER_ANNOTATION]: `Deployment/${labels["app"]}` },
  };
  const spec = {
    orchestrator: "k8s",
    node: "n1",
    pod: name,
    endpoint: "eth0",
    ipNetworks: [`${address}/32`],
    profiles,
  };
  return workloadEndpoint.make(metadata, spec);
}

const SHOP: PolicyResources = {
  endpoints: [pod("web-1", "10.0.0.1", { app: "web" }), pod("db-1", "10.0.0.2", { app: "db" })],
  ...{ containerLabels: [], hostEndpoints: [], networkSets: [], globalNetworkSets: [], tiers: [], nodes: [] },
  ...{ networkPolicies: [], globalNetworkPolicies: [] },
  profiles: [namespaceProfile({ metadata: { name: "shop" } })],
};

const FLOW: FlowRecord = {
  ...{ id: "n1-7", node: "n1", family: 4, protocol: 6, direction: "both", verdict: "denied", state: "denied" },
  source: {
    ...{ kind: "pod", namespace: "shop", name: "web-1", address: "10.0.0.1", port: 4321 },
    labels: { app: "web" },
    node: "n1",
  },
  destination: {
    ...{ kind: "pod", namespace: "shop", name: "db-1", address: "10.0.0.2", port: 5432 },
    labels: { app: "db" },
    node: "n1",
  },
  ...{ decisions: [], start: 1, end: 2, sent: { packets: 1, bytes: 1 }, received: { packets: 0, bytes: 0 } },
};

function policy(name: string, spec: Partial<NetworkPolicySpec>) {
  return networkPolicy.make({ name, namespace: "shop" }, { tier: "default", ...spec });
}

function draft(changes: Partial<PolicyResources>, flow = FLOW) {
  const resources = { ...SHOP, ...changes };
  const drafted = draftForFlow(flow, { resources, settingsOf });
  return { ...drafted, text: draftText({ ...drafted, sets: [] }, "enforced") };
}

const CLOSED = policy("default-deny", { selector: "all()", types: ["Ingress", "Egress"] });
const DENY: PolicyRule = { action: "Deny" };

describe("draftForFlow()", () => {
  test("allows it at both ends where policies close them, and nothing else", () => {
    const { text, verdict, notes } = draft({ networkPolicies: [CLOSED] });

    expect([verdict, notes]).toEqual(["allowed", []]);
    expect(text).toMatchInlineSnapshot(`
      "# Allows connection n1-7 of Deployment shop/web
      apiVersion: vendor.org/v3
      kind: NetworkPolicy
      metadata:
        name: allow-web-to-db
        namespace: shop
      spec:
        selector: app == 'web'
        types:
          - Egress
        egress:
          # to Deployment shop/db (1 flow)
          - action: Allow
            protocol: TCP
            destination:
              selector: app == 'db'
              ports:
                - 5432
      ---
      # Allows connection n1-7 of Deployment shop/db
      apiVersion: vendor.org/v3
      kind: NetworkPolicy
      metadata:
        name: allow-db-from-web
        namespace: shop
      spec:
        selector: app == 'db'
        types:
          - Ingress
        ingress:
          # from Deployment shop/web (1 flow)
          - action: Allow
            protocol: TCP
            source:
              selector: app == 'web'
            destination:
              ports:
                - 5432
      "
    `);
  });

  test("drafts nothing for what is allowed now", () => {
    expect(draft({})).toMatchObject({ policies: [], verdict: "allowed", notes: [expect.stringContaining("of now")] });
  });

  test("comes right before a policy of the namespace that denies it by a rule, and says so", () => {
    const denying = policy("no-web", {
      order: 40,
      types: ["Ingress"],
      ingress: [{ ...DENY, source: { selector: "app == 'web'" } }],
    });
    const { policies, verdict, notes } = draft({ networkPolicies: [denying] });

    expect([verdict, policies.map(({ order }) => order)]).toEqual(["allowed", [39]]);
    expect(notes.join()).toContain("NetworkPolicy shop/no-web denies it on purpose");
  });

  test.each([
    ["a global policy", { globalNetworkPolicies: [global({})] }, "GlobalNetworkPolicy no-db is not of this namespace"],
    [
      "the end of another tier",
      {
        tiers: [tier.make({ name: "security" }, { order: 1, defaultAction: "Deny" })],
        globalNetworkPolicies: [global({ tier: "security", ingress: [] }, "security.db")],
      },
      'tier "security" is evaluated before',
    ],
  ] as const)("does not overrule %s, and names it", (_, changes, note) => {
    const { policies, verdict, notes } = draft(changes);

    expect([policies, verdict]).toEqual([[], "denied"]);
    expect(notes.join()).toContain(note);
  });

  test("names what else denies it", () => {
    const { policies, verdict, notes } = draft({ networkPolicies: [CLOSED], globalNetworkPolicies: [global({})] });

    expect([policies.length, verdict]).toEqual([1, "denied"]);
    expect(notes.join()).toContain("still denied (ingress of shop/db-1)");
  });

  test("leaves to profiles what they decide now", () => {
    const own = profile.make(
      { name: "net" },
      { ingress: [{ action: "Allow", source: { selector: "app == 'db'" } }], egress: [{ action: "Allow" }] },
    );
    const endpoints = [
      pod("web-1", "10.0.0.1", { app: "web" }, ["net"]),
      pod("db-1", "10.0.0.2", { app: "db" }, ["net"]),
      pod("db-2", "10.0.0.3", { app: "db" }, ["net"]),
    ];
    const { policies, verdict } = draft({ endpoints, profiles: [own] });
    const [rule, pass] = policies[0]?.ingress ?? [];

    expect([verdict, policies.length, rule?.rule.action, pass?.rule]).toEqual([
      "allowed",
      1,
      "Allow",
      { action: "Pass" },
    ]);
    // One of them is closed by others: to pass on would open it.
    const closed = policy("close", { selector: "role == 'spare'", types: ["Ingress"] });
    const spare = pod("db-3", "10.0.0.4", { app: "db", role: "spare" }, ["net"]);
    const refused = draft({ endpoints: [...endpoints, spare], profiles: [own], networkPolicies: [closed] });
    expect([refused.policies, refused.verdict]).toEqual([[], "denied"]);
    expect(refused.notes.join()).toContain("shop/db-3, which policies close");
  });

  test("warns of workloads that it would close", () => {
    const closed = policy("close", { selector: "role == 'main'", types: ["Ingress"] });
    const endpoints = [
      ...SHOP.endpoints.slice(0, 1),
      pod("db-1", "10.0.0.2", { app: "db", role: "main" }),
      pod("db-2", "10.0.0.3", { app: "db" }),
    ];
    const flow = { ...FLOW, destination: { ...FLOW.destination, labels: { app: "db", role: "main" } } };
    const { notes, verdict } = draft({ endpoints, networkPolicies: [closed] }, flow);

    expect(verdict).toBe("allowed");
    expect(notes.join()).toContain("no ingress policy applies to shop/db-2 yet");
  });

  test("has another name than policies that exist", () => {
    const [first] = draft({ networkPolicies: [CLOSED] }).policies;
    const taken = policy(first?.name ?? "", { selector: "app == 'nothing'" });
    const names = draft({ networkPolicies: [CLOSED, taken] }).policies.map(({ name }) => name);

    expect(names[0]).toBe(`${first?.name}-2`);
  });

  test("says why it cannot: no label, an end that is hidden", () => {
    const bare = [pod("web-1", "10.0.0.1", {}), pod("db-1", "10.0.0.2", {})];
    const { labels: _, ...source } = FLOW.source;
    const { labels: __, ...destination } = FLOW.destination;
    const unlabelled = draft({ endpoints: bare, networkPolicies: [CLOSED] }, { ...FLOW, source, destination });
    expect(unlabelled.verdict).toBe("denied");
    expect(unlabelled.notes.join()).toContain("no label selects");
    const hidden = draft({ networkPolicies: [CLOSED] }, { ...FLOW, source: { kind: "hidden", address: "10.0.0.1" } });
    expect(hidden.verdict).toBe("depends");
    expect(hidden.notes.join()).toContain("hidden from you");
  });
});

function global(spec: object, name = "no-db") {
  const own = {
    doNotTrack: false,
    preDNAT: false,
    applyOnForward: false,
    tier: "default",
    types: ["Ingress" as const],
  };
  return globalNetworkPolicy.make({ name }, { ...own, selector: "app == 'db'", ingress: [DENY], ...spec });
}

/** In clusters at random: the verdict is that of the judge, and no other connection is decided otherwise than before, unless a note says so. */
test("changes nothing that it is not about, in any cluster", () => {
  let [drafted, others] = [0, 0];
  const some = fc.array(packets, { minLength: 2, maxLength: 8 });
  fc.assert(
    fc.property(clusters, configurations, some, (resources, configuration, sent) => {
      const flows = sent.map((packet) => recordedFlow(packet, resources, configuration).flow);
      const [flow, ...rest] = flows.toSorted((left, right) => right.verdict.localeCompare(left.verdict));
      if (flow === undefined) return;
      const { policies, verdict, notes } = draftForFlow(flow, { resources, settingsOf });
      const text = draftText({ policies, sets: [] }, "enforced");
      const applied =
        text === "" ? [] : text.split(/^---\n/m).map((each) => networkPolicy.decode(Bun.YAML.parse(each)));
      const networkPolicies = applied.map((each) => {
        if (!each.ok) throw new Error(JSON.stringify(each));
        return each.value;
      });
      const after = { ...resources, networkPolicies: [...resources.networkPolicies, ...networkPolicies] };
      const [judgedBefore, judgedAfter] = [resources, after].map((each) => flowReplay(each, { settingsOf }));
      const verdictAfter = judgedAfter?.(flow).verdict;
      expect(verdict).toBe(verdictAfter === undefined || verdictAfter === "not judged" ? "depends" : verdictAfter);
      if (policies.length === 0) return;
      drafted += 1;
      const closes = notes.some((note) => note.startsWith("warning: "));
      for (const other of rest) {
        const [before, now] = [judgedBefore?.(other).verdict, judgedAfter?.(other).verdict];
        others += 1;
        if (before === "allowed" && !closes) expect(now).toBe("allowed");
      }
    }),
    { numRuns: proofSize({ everyDay: 60, soak: 10_000 }) },
  );
  expect(Math.min(drafted, others)).toBeGreaterThan(5);
});
