import { describe, expect, test } from "bun:test";
import { authoredPolicy, convertClusterPolicy } from "./cluster-network-policy.ts";
import { clusterPolicyStatusOf, conditionsWith } from "./cluster-policy-status.ts";
import { derivedUid } from "./derived-uid.ts";
import { globalNetworkPolicy } from "./global-network-policy.ts";
import { NOT_CONVERTED_ANNOTATION } from "./orchestrator-policy.ts";

const POD = "vendor.org/orchestrator == 'k8s'";
const UID = "c1d9bb67-2d7c-4d4e-93a2-0d9c1b0f7a11";
const ALL_PODS = { selector: POD, namespaceSelector: "all()" };
const EVERYBODY = [{ namespaces: {} }];

const BASE = { tier: "Admin", priority: 10, subject: { namespaces: {} } };
const convert = (spec: object) =>
  convertClusterPolicy({ metadata: { name: "web", uid: UID }, spec: { ...BASE, ...spec } });
const ingressOf = (rule: object) => convert({ ingress: [{ action: "Accept", ...rule }] }).spec.ingress;
const egressOf = (rule: object) => convert({ egress: [{ action: "Accept", ...rule }] }).spec.egress;
const problemOf = (spec: object) => convert(spec).metadata.annotations?.[NOT_CONVERTED_ANNOTATION];

describe("convertClusterPolicy()", () => {
  test("makes a policy of the tier, with the priority as its order", () => {
    const policy = convert({ tier: "Baseline", priority: 0, ingress: [{ action: "Pass", from: EVERYBODY }] });

    expect(policy).toEqual({
      apiVersion: "vendor.org/v3",
      kind: "GlobalNetworkPolicy",
      metadata: { name: "kcnp.web", uid: derivedUid(UID) },
      spec: {
        ...{ tier: "kube-baseline", order: 0, ...ALL_PODS },
        types: ["Ingress"],
        ingress: [{ action: "Pass", source: ALL_PODS }],
        ...{ doNotTrack: false, preDNAT: false, applyOnForward: false },
      },
    });
    expect(globalNetworkPolicy.read(JSON.stringify(policy), "key")).toEqual(policy);
  });

  test.each([
    [{ namespaces: {} }, ALL_PODS],
    [{ namespaces: { matchLabels: { a: "1" } } }, { selector: POD, namespaceSelector: "a == '1'" }],
    [
      { pods: { namespaceSelector: {}, podSelector: { matchLabels: { b: "2" } } } },
      { selector: `${POD} && b == '2'`, namespaceSelector: "all()" },
    ],
    // The definition does not require it; without it: all namespaces.
    [
      { pods: { podSelector: { matchLabels: { b: "2" } } } },
      { selector: `${POD} && b == '2'`, namespaceSelector: "all()" },
    ],
  ])("selects the pods of %j", (subject, selected) => {
    expect(convert({ subject }).spec).toMatchObject(selected);
    expect(ingressOf({ from: [subject] })).toEqual([{ action: "Allow", source: selected }]);
    expect(egressOf({ to: [subject] })).toEqual([{ action: "Allow", destination: selected }]);
  });

  test("concerns only the directions that it has rules for", () => {
    const types = (spec: object) => convert(spec).spec.types;

    expect(types({ ingress: [{ action: "Deny", from: EVERYBODY }] })).toEqual(["Ingress"]);
    expect(types({ egress: [{ action: "Deny", to: EVERYBODY }] })).toEqual(["Egress"]);
    expect(types({})).toEqual([]);
  });

  test.each([
    [{ networks: ["10.0.0.1/8", "::/0"] }, { nets: ["10.0.0.0/8", "::/0"] }],
    [
      { nodes: { matchLabels: { "kubernetes.io/os": "linux" } } },
      { selector: "has(pcno.vendor.org/node) && pcno.kubernetes.io/os == 'linux'" },
    ],
    [{ nodes: {} }, { selector: "has(pcno.vendor.org/node)" }],
  ])("has a rule to %j", (peer, destination) => {
    expect(egressOf({ to: [peer] })).toEqual([{ action: "Allow", destination }]);
  });

  test.each([
    [{ tcp: { destinationPort: { number: 80 } } }, [["TCP", [80]]]],
    [{ udp: { destinationPort: { range: { start: 1, end: 9 } } } }, [["UDP", ["1:9"]]]],
    [{ sctp: {} }, [["SCTP", undefined]]],
    [
      { destinationNamedPort: "web" },
      [
        ["TCP", ["web"]],
        ["UDP", ["web"]],
        ["SCTP", ["web"]],
      ],
    ],
  ])("has a rule for %j", (protocol, expected) => {
    const rules = ingressOf({ from: EVERYBODY, protocols: [protocol] }) ?? [];

    expect(rules.map((rule) => [rule.protocol, rule.destination?.ports]) as unknown).toEqual(expected);
  });

  test("keeps the name of a rule", () => {
    const [rule] = ingressOf({ name: "allow all", from: EVERYBODY }) ?? [];

    expect(rule?.metadata).toEqual({ annotations: { "vendor.org/rule": "allow all" } });
  });

  test("a peer with domain names allows nothing, and the others of its rule stay", () => {
    const names = { domainNames: ["example.org"] };
    const spec = { egress: [{ action: "Accept", to: [names, { networks: ["10.0.0.0/8"] }] }] };

    expect(convert(spec).spec.egress).toEqual([{ action: "Allow", destination: { nets: ["10.0.0.0/8"] } }]);
    expect(egressOf({ to: [names] })).toEqual([]);
    expect(problemOf(spec)).toBe("egress[0]: domainNames is not supported, so that this peer allows nothing");
  });

  describe.each([
    [{ to: [{ domainNames: ["example.org"] }] }],
    [{ to: [{}] }],
    [{ to: [{ somethingNew: {} }] }],
    [{ to: [] }],
    [{ to: [{ networks: [] }] }],
    [{ to: [{ networks: ["here"] }] }],
    [{ to: EVERYBODY, somethingNew: 1 }],
    // Only the experimental definition refuses these.
    [{ to: [{ networks: ["10.0.0.0/8"] }], protocols: [{ destinationNamedPort: "web" }] }],
    [{ to: [...EVERYBODY, { nodes: {} }], protocols: [{ tcp: {} }, { destinationNamedPort: "web" }] }],
    [{ to: EVERYBODY, protocols: [{}] }],
    [{ to: EVERYBODY, protocols: [{ icmp: {} }] }],
    [{ to: EVERYBODY, protocols: [{ tcp: { destinationPort: {} } }] }],
    [{ to: EVERYBODY, protocols: [{ tcp: { destinationPort: { number: "web" } } }] }],
  ])("of a rule that cannot be carried out: %j", (rule) => {
    test("Accept matches nothing, Deny and Pass deny everything", () => {
      expect(egressOf(rule)).toEqual([]);
      for (const action of ["Deny", "Pass"]) expect(egressOf({ ...rule, action })).toEqual([{ action: "Deny" }]);
      expect(problemOf({ egress: [{ action: "Pass", ...rule }] })).toEndWith("so that it denies everything");
    });
  });

  test("a rule with an unknown action denies everything", () => {
    expect(egressOf({ action: "Shout", to: EVERYBODY })).toEqual([{ action: "Deny" }]);
  });

  test.each([
    [{ subject: {} }],
    [{ subject: { other: {} } }],
    [{ tier: "Middle" }],
    [{ priority: "high" }],
    [{ somethingNew: {} }],
  ])("of a policy with %j only the Deny rules count, for all pods if it is unknown for whom", (spec) => {
    const rules = ["Accept", "Deny", "Pass"].map((action) => ({ action, from: EVERYBODY }));
    const { tier, selector, ingress } = convert({ ...spec, ingress: rules }).spec;

    expect({ tier, selector }).toEqual({ tier: "kube-admin", selector: POD });
    expect(ingress).toEqual([{ action: "Deny", source: ALL_PODS }]);
    expect(problemOf(spec)).toBeDefined();
  });
});

test("a policy is shown under the name that its author knows", () => {
  expect(authoredPolicy(convert({}))).toEqual({ kind: "ClusterNetworkPolicy", name: "web" });
  expect(authoredPolicy({ kind: "GlobalNetworkPolicy", metadata: { name: "web" } })).toEqual({
    kind: "GlobalNetworkPolicy",
    name: "web",
  });
});

describe("the condition of a ClusterNetworkPolicy", () => {
  const object = (spec: object, status?: object) => ({ metadata: { name: "web", generation: 3 }, spec, status });

  test("says whether all of it is enforced, and why not", () => {
    expect(clusterPolicyStatusOf(object(BASE)).wanted).toMatchObject({
      ...{ type: "Accepted", status: "True", observedGeneration: 3 },
    });
    const names = { ...BASE, egress: [{ action: "Deny", to: [{ domainNames: ["a.b"] }] }] };
    expect(clusterPolicyStatusOf(object(names)).wanted).toMatchObject({
      ...{ status: "False", reason: "NotSupported" },
      message: "egress[0]: domainNames is not supported, so that it denies everything",
    });
  });

  test("leaves those of others, and keeps its time while it stays the same", () => {
    const { wanted } = clusterPolicyStatusOf(object(BASE));
    const other = { type: "Ready", status: "True" };
    const [first, second] = [new Date("2026-01-01T00:00:00.5Z"), new Date("2026-02-01T00:00:00Z")];
    const conditions = conditionsWith({ conditions: [other] }, wanted, first);

    expect(conditions).toEqual([other, { ...wanted, lastTransitionTime: "2026-01-01T00:00:00Z" }]);
    expect(conditionsWith({ conditions }, { ...wanted, observedGeneration: 4 }, second)).toEqual([
      other,
      { ...wanted, observedGeneration: 4, lastTransitionTime: "2026-01-01T00:00:00Z" },
    ]);
    expect(clusterPolicyStatusOf(object(BASE, { conditions })).present).toEqual(wanted);
  });
});
