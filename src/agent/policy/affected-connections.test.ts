import { describe, expect, test } from "bun:test";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { globalNetworkSet } from "../../model/global-network-set.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import { profile } from "../../model/profile.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import {
  ALL_CONNECTIONS,
  affectedBy,
  bothOf,
  isNone,
  judgedAnew,
  NO_CONNECTIONS,
  underPolicies,
} from "./affected-connections.ts";

const pod = (labels: Readonly<Record<string, string>>, address = "10.0.0.1") =>
  workloadEndpoint.make({ name: "pod", namespace: "shop", labels }, { node: "one", ipNetworks: [`${address}/32`] });
const policy = (...ingress: readonly PolicyRule[]) =>
  networkPolicy.make({ name: "web", namespace: "shop" }, { tier: "default", ingress: [...ingress] });
const withPods = (...endpoints: PolicyResources["endpoints"]): PolicyResources => ({ ...NO_RESOURCES, endpoints });
const withPolicies = (...networkPolicies: PolicyResources["networkPolicies"]): PolicyResources => ({
  ...NO_RESOURCES,
  networkPolicies,
});
const affected = (before: PolicyResources, after: PolicyResources) => affectedBy(changesBetween(before, after));

describe("affectedBy()", () => {
  test("a NetworkPolicy concerns its namespace", () => {
    expect(affected(NO_RESOURCES, withPolicies(policy()))).toEqual({
      ...NO_CONNECTIONS,
      namespaces: new Set(["shop"]),
    });
  });

  test("a pod with other labels concerns its addresses, those of before too", () => {
    expect(affected(withPods(pod({ app: "a" })), withPods(pod({ app: "b" }, "10.0.0.2")))).toEqual({
      ...NO_CONNECTIONS,
      addresses: new Set(["10.0.0.1", "10.0.0.2"]),
    });
  });

  test("a pod that is only written again, or is gone, concerns nothing", () => {
    const again = { ...pod({}), metadata: { ...pod({}).metadata, annotations: { note: "new" } } };

    expect(isNone(affected(withPods(pod({})), withPods(again)))).toBe(true);
    expect(isNone(affected(withPods(pod({})), NO_RESOURCES))).toBe(true);
  });

  test("what many may depend on concerns all", () => {
    const sets = { globalNetworkSets: [globalNetworkSet.make({ name: "set" }, { nets: [] })] };

    expect(affected(NO_RESOURCES, { ...NO_RESOURCES, ...sets })).toEqual(ALL_CONNECTIONS);
    expect(affected(NO_RESOURCES, { ...NO_RESOURCES, profiles: [profile.make({ name: "kns.shop" }, {})] })).toEqual(
      ALL_CONNECTIONS,
    );
  });
});

describe("underPolicies()", () => {
  const arrived = affected(NO_RESOURCES, withPods(pod({})));
  const none = { ...NO_CONNECTIONS };
  const its = { ...NO_CONNECTIONS, addresses: new Set(["10.0.0.1"]) };

  test.each<readonly [title: string, rule: PolicyRule, expected: typeof none]>([
    ["an Allow rule with a selector", { action: "Allow", source: { selector: "all()" } }, none],
    ["a Deny rule for a network", { action: "Deny", source: { nets: ["10.0.0.0/8"] } }, none],
    ["a Deny rule with a selector", { action: "Deny", source: { selector: "has(app)" } }, its],
    ["a Pass rule with a namespace selector", { action: "Pass", source: { namespaceSelector: "all()" } }, its],
    ["a Deny rule with a named port", { action: "Deny", protocol: "TCP", destination: { ports: ["http"] } }, its],
    ["an Allow rule for unknown addresses", { action: "Allow", source: { notSelector: "has(app)" } }, its],
  ])("a new pod under %s", (_, rule, expected) => {
    expect(underPolicies(arrived, withPolicies(policy(rule)))).toEqual(expected);
  });

  test("endpoints of Services concern all, if a rule names a Service", () => {
    const services = { ...NO_CONNECTIONS, services: true };
    const naming = policy({ action: "Allow", source: { services: { name: "web" } } });

    expect(underPolicies(services, withPolicies(policy()))).toEqual(NO_CONNECTIONS);
    expect(underPolicies(services, withPolicies(naming))).toEqual(ALL_CONNECTIONS);
  });
});

describe("judgedAnew()", () => {
  test("a new pod concerns its addresses, whatever the rules are: one that allows may select it", () => {
    const allowing = policy({ action: "Allow", source: { selector: "all()" } });
    const arrived = affected(NO_RESOURCES, withPods(pod({})));

    expect(judgedAnew(arrived, withPolicies(allowing))).toEqual({
      ...NO_CONNECTIONS,
      addresses: new Set(["10.0.0.1"]),
    });
  });
});

describe("bothOf()", () => {
  test("concerns what either does", () => {
    const [one, other] = [affected(NO_RESOURCES, withPolicies(policy())), affected(NO_RESOURCES, withPods(pod({})))];

    expect(bothOf(one, other)).toEqual({
      ...NO_CONNECTIONS,
      ...{ namespaces: new Set(["shop"]), newAddresses: new Set(["10.0.0.1"]) },
    });
    expect(bothOf(one, ALL_CONNECTIONS)).toEqual(ALL_CONNECTIONS);
  });
});
