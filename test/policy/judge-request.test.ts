import { describe, expect, test } from "bun:test";
import type { IncomingRequest } from "../../src/alp/judge/request-judge.ts";
import { identity } from "../../src/identity.ts";
import { type Address, parseAddress } from "../../src/ip/address.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { accountProfile, namespaceProfile } from "../../src/model/orchestrator-profile.ts";
import type { EntityRule, PolicyRule } from "../../src/model/policy-rule.ts";
import { SIDECAR_ANNOTATION } from "../../src/model/sidecar-annotation.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { judge } from "../../src/policy/judge/judge.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";
import { judgeRequest } from "../support/judge-request.ts";
import { NO_RESOURCES } from "../support/policy-changes.ts";

function address(text: string): Address {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
}

function pod(name: string, namespace: string, ip: string, labels: Readonly<Record<string, string>> = {}) {
  return workloadEndpoint.make(
    {
      name: `here-k8s-${name}-eth0`,
      namespace,
      labels: { ...labels, [`${identity.labelPrefix}namespace`]: namespace },
    },
    { node: "here", pod: name, ipNetworks: [`${ip}/32`], profiles: [`kns.${namespace}`] },
  );
}

const SERVER = pod("server", "red", "10.0.0.1");
const CLIENT = pod("client", "red", "10.0.0.2", { app: "client" });

function resourcesWith(...rules: readonly Partial<PolicyRule>[]): PolicyResources {
  return {
    ...NO_RESOURCES,
    endpoints: [SERVER, CLIENT],
    profiles: [
      ...["red", "blue"].map((name) => namespaceProfile({ metadata: { name, labels: { color: name } } })),
      ...["red", "blue"].map((namespace) =>
        accountProfile({ metadata: { name: "web", namespace, labels: { role: "front" } } }),
      ),
    ],
    networkPolicies: [
      networkPolicy.make(
        { name: "server", namespace: "red" },
        { tier: "default", ingress: rules.map((rule) => ({ action: "Allow", ...rule })) },
      ),
    ],
  };
}

const REQUEST: IncomingRequest = {
  source: address("10.0.0.2"),
  destinationPort: 80,
  http: { method: "GET", path: "/a/b?c" },
};

function verdictOf(rule: Partial<PolicyRule>, request: Partial<IncomingRequest> = {}, trustDomain?: string) {
  const context = {
    resources: resourcesWith(rule),
    ...(trustDomain === undefined ? {} : { trustDomain }),
  };
  return judgeRequest({ ...REQUEST, ...request }, SERVER, context).verdict;
}

describe("judgeRequest()", () => {
  test.each<readonly [PolicyRule["http"], "allow" | "deny"]>([
    [{}, "allow"],
    [{ methods: ["GET"], paths: [{ prefix: "/a/" }] }, "allow"],
    [{ methods: ["POST"] }, "deny"],
    [{ paths: [{ exact: "/a" }] }, "deny"],
  ])("compares method and path: %j", (http, verdict) => {
    expect(verdictOf({ http } as Partial<PolicyRule>)).toBe(verdict);
  });

  test("a connection that is not HTTP matches no rule with http", () => {
    const { http: _, ...connection } = REQUEST;
    const judged = (rule: Partial<PolicyRule>) =>
      judgeRequest(connection, SERVER, { resources: resourcesWith(rule) }).verdict;

    expect(judged({ http: {} })).toBe("deny");
    expect(judged({ destination: { ports: [80] }, protocol: "TCP" })).toBe("allow");
  });

  const RED = "spiffe://cluster.local/ns/red/sa/web";
  const BLUE = "spiffe://cluster.local/ns/blue/sa/web";
  test.each<readonly [string, EntityRule, string, "allow" | "deny"]>([
    ["nothing about the source", {}, BLUE, "allow"],
    ["addresses", { nets: ["10.0.0.0/24"] }, BLUE, "allow"],
    ["labels of the own namespace", { selector: "app == 'client'" }, RED, "allow"],
    ["labels of the own namespace", { selector: "app == 'client'" }, BLUE, "deny"],
    ["labels of any namespace", { selector: "app == 'client'", namespaceSelector: "all()" }, BLUE, "allow"],
    ["a namespace", { namespaceSelector: "color == 'red'" }, RED, "allow"],
    ["a namespace", { namespaceSelector: "color == 'red'" }, BLUE, "deny"],
    ["a namespace, and the identity is none", { namespaceSelector: "all()" }, "CN=web", "deny"],
    ["a namespace of an unknown account", { namespaceSelector: "all()" }, `${RED}x`, "deny"],
    ["a namespace of another trust domain", { namespaceSelector: "all()" }, "spiffe://other/ns/red/sa/web", "deny"],
    ["what not to select", { notSelector: "app == 'x'" }, BLUE, "deny"],
  ])("a rule about %s: %j, client %s", (_, source, principal, verdict) => {
    expect(verdictOf({ source }, { principal })).toBe(verdict);
  });

  test("the address must match too: a stolen identity is not enough", () => {
    const stranger = { source: address("10.9.9.9"), principal: RED };
    expect(verdictOf({ source: { namespaceSelector: "color == 'red'" } }, stranger)).toBe("deny");
  });

  test.each(["Deny", "Pass", "Allow"] as const)(
    "of a rule with action %s: only Deny does not ask the identity",
    (action) => {
      const source = { namespaceSelector: "color == 'red'" };
      const rules = [
        { action, source },
        { action: "Allow" as const, source: { nets: ["10.0.0.0/24"] } },
      ];
      const judged = (principal: string) =>
        judgeRequest({ ...REQUEST, principal }, SERVER, { resources: resourcesWith(...rules) }).reason;

      expect(judged(BLUE)).toMatchObject({ kind: "rule", index: action === "Deny" ? 0 : 1 });
    },
  );

  test("identities are of the configured trust domain, or of any", () => {
    const rule = { source: { namespaceSelector: "all()" } };
    const principal = "spiffe://example.org/ns/red/sa/web";

    expect(verdictOf(rule, { principal }, "example.org")).toBe("allow");
    expect(verdictOf(rule, { principal }, "*")).toBe("allow");
    expect(verdictOf(rule, { principal: RED }, "example.org")).toBe("deny");
  });

  test("an IPv4-mapped source is an IPv4 source", () => {
    const rule = { source: { nets: ["192.0.2.0/24"] } };

    expect(verdictOf(rule, { source: address("::ffff:192.0.2.1") })).toBe("allow");
  });

  test("a client of a family that the pod has no address of is denied", () => {
    expect(verdictOf({}, { source: address("fd00::1") })).toBe("deny");
  });
});

describe("judge()", () => {
  const packet = { source: address("10.0.0.2"), destination: address("10.0.0.1"), protocol: 6, destinationPort: 80 };
  const reporting = {
    ...SERVER,
    metadata: { ...SERVER.metadata, annotations: { [SIDECAR_ANNOTATION]: "1.0.0" } },
  };

  test("lets packets through for a rule with http if the sidecar reports", () => {
    const resources = resourcesWith({ http: { methods: ["GET"] } });

    expect(judge(packet, SERVER, "ingress", resources).verdict).toBe("deny");
    expect(judge(packet, reporting, "ingress", resources).verdict).toBe("allow");
    expect(judge({ ...packet, protocol: 17 }, reporting, "ingress", resources).verdict).toBe("deny");
  });
});
