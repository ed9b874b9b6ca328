/** What is refused in policies and what they refer to. The API server refuses the same: test/kube/crds.test.ts. */
import { describe, expect, test } from "bun:test";
import { BAD_POLICIES, GOOD_POLICIES } from "../../test/support/bad-policies.ts";
import { API_VERSION } from "../identity.ts";
import { findKind, PUBLIC_KINDS } from "./kinds.ts";
import { networkPolicy } from "./network-policy.ts";
import { nodeAgentConfiguration, nodeAgentSettings } from "./node-agent-configuration.ts";
import { unknownCriterion } from "./policy-rule.ts";
import { typesOf } from "./policy-spec.ts";
import { profile } from "./profile.ts";

function decode(kind: string, name: string, spec: object) {
  const codec = findKind(PUBLIC_KINDS, kind)?.codec;
  if (codec === undefined) throw new Error(`no kind ${kind}`);
  const metadata = codec.namespaced ? { name, namespace: "red" } : { name };
  return codec.decode({ apiVersion: API_VERSION, kind, metadata, spec });
}

function problemsOf(kind: string, name: string, spec: object) {
  const decoded = decode(kind, name, spec);
  return decoded.ok ? [] : decoded.problems;
}

describe("kinds of policies", () => {
  test.each(BAD_POLICIES.map((bad) => [`${bad.kind} with ${bad.what}`, bad] as const))("refuse a %s", (_, bad) => {
    const problems = problemsOf(bad.kind, bad.name ?? "bad", bad.spec);

    expect(problems.map(({ path }) => path)).toEqual([bad.path]);
    expect(problems[0]?.message).toContain(bad.message);
    expect(problems[0]?.message).toMatch(/[;:?]/);
  });

  test.each(GOOD_POLICIES.map((good) => [`${good.kind} ${good.name}`, good] as const))("accept %s", (_, good) => {
    expect(problemsOf(good.kind, good.name ?? "good", good.spec)).toEqual([]);
  });
});

describe("profile", () => {
  const rules = (rule: object) => problemsOf("Profile", "p", { ingress: [{ action: "Allow" }], egress: [rule] });

  test("has no Pass: it is evaluated after all tiers", () => {
    expect(rules({ action: "Pass" })).toMatchObject([{ path: "spec.egress[0].action", value: "Pass" }]);
  });

  test("has the checks of rules", () => {
    expect(rules({ action: "Allow", http: {} })).toMatchObject([{ path: "spec.egress[0].http" }]);
    expect(rules({ action: "Deny", destination: { services: { name: "dns" } } })).toMatchObject([
      { path: "spec.egress[0].destination.services" },
    ]);
  });
});

describe("a criterion without a value", () => {
  const read = (rule: object) => {
    const value = {
      apiVersion: API_VERSION,
      kind: "NetworkPolicy",
      metadata: { name: "web" },
      spec: { ingress: [rule] },
    };
    return () => networkPolicy.read(JSON.stringify(value), "key");
  };

  test.each([
    [{ http: null }, "spec.ingress[0].http: is empty; use {} for every HTTP request, or remove it to allow every"],
    [{ http: { paths: [{ exact: "/" }], methods: null } }, "spec.ingress[0].http.methods: is empty"],
    [{ source: { selector: null } }, "spec.ingress[0].source.selector: is empty"],
  ])("makes the stored rule %j unreadable, so that its policy denies", (criterion, expected) => {
    expect(read({ action: "Allow", ...criterion })).toThrow(expected);
  });

  test.each([
    ["http", { http: null }, "is empty; use {} for every HTTP request, or remove it to allow every connection"],
    ["http.methods", { http: { methods: null } }, "is empty; add methods, or remove it for every method"],
    ["http.paths", { http: { paths: null } }, "is empty; add paths, or remove it for every path"],
    ["source", { source: null }, "is empty; give it a value, or remove it"],
    ["protocol", { protocol: null }, "is empty; give it a value, or remove it"],
    ["source.serviceAccounts.names", { source: { serviceAccounts: { names: null } } }, "is empty; give it a value"],
  ])("is refused: %s", (field, criterion, message) => {
    const problems = problemsOf("GlobalNetworkPolicy", "web", { ingress: [{ action: "Allow", ...criterion }] });

    expect(problems.map(({ path }) => path)).toEqual([`spec.ingress[0].${field}`]);
    expect(problems[0]?.message).toContain(message);
  });

  test("is not confused with other fields", () => {
    expect(read({ action: "Allow", http: {}, metadata: { annotations: null } })().spec.ingress).toEqual([
      { action: "Allow", http: {}, metadata: {} },
    ]);
  });
});

describe("a stored method in the wrong case", () => {
  test("is readable, so that only its rule does not match", () => {
    const spec = { ingress: [{ action: "Allow", http: { methods: ["Get"] } }] };
    const stored = { apiVersion: API_VERSION, kind: "NetworkPolicy", metadata: { name: "web" }, spec };

    expect(networkPolicy.readObject(stored, "key").spec.ingress?.[0]?.http).toEqual({ methods: ["Get"] });
  });
});

describe("typesOf()", () => {
  const RULES = [{ action: "Allow" }] as const;

  test.each([
    [{}, ["Ingress"]],
    [{ ingress: [], egress: [] }, ["Ingress"]],
    [{ ingress: [...RULES] }, ["Ingress"]],
    [{ egress: [...RULES] }, ["Egress"]],
    [{ ingress: [], egress: [...RULES] }, ["Egress"]],
    [{ ingress: [...RULES], egress: [...RULES] }, ["Ingress", "Egress"]],
    [{ types: [], egress: [...RULES] }, ["Egress"]],
    [{ types: ["Egress" as const] }, ["Egress"]],
    [{ types: ["Ingress" as const], egress: [...RULES] }, ["Ingress"]],
  ])("of %j", (spec, types) => {
    expect(typesOf({ tier: "default", ...spec })).toEqual(types as ("Ingress" | "Egress")[]);
  });
});

describe("unknownCriterion()", () => {
  const stored = (rule: object) =>
    profile.readObject({ kind: "Profile", metadata: { name: "p" }, spec: { ingress: [rule] } }, "key").spec
      .ingress?.[0];

  test.each([
    [{ action: "Allow", protocol: "TCP", source: { nets: [] } }, undefined],
    [{ action: "Allow", domains: [] }, "domains"],
    [{ action: "Allow", destination: { domains: ["example.org"] } }, "destination.domains"],
    [{ action: "Allow", source: { services: { name: "a", port: 80 } } }, "source.services.port"],
  ])("of the stored rule %j", (rule, path) => {
    const read = stored(rule);
    expect(read && unknownCriterion(read)).toBe(path);
  });
});

describe("nodeAgentSettings()", () => {
  const configuration = (name: string, spec: object) => nodeAgentConfiguration.make({ name }, spec);

  test("are those of the node, then those of all nodes, then the built-in ones", () => {
    const settings = nodeAgentSettings(
      [
        configuration("node.here", { healthPort: 1 }),
        configuration("default", { healthPort: 2, defaultEndpointToHostAction: "Drop" }),
        configuration("node.there", { healthPort: 3, healthHost: "0.0.0.0" }),
      ],
      "here",
    );

    expect(settings).toMatchObject({
      healthPort: 1,
      defaultEndpointToHostAction: "Drop",
      healthHost: "localhost",
      tablesRefreshInterval: "180s",
      namespacePolicyLists: 4_000,
    });
    expect(settings.failsafeInboundHostPorts).toContainEqual({ protocol: "TCP", port: 22 });
    expect(settings).toMatchObject({ vxlanPort: 4789, vxlanVNI: 4096, vxlanChecksumOffload: "Auto" });
  });
});
