import { describe, expect, test } from "bun:test";
import { NODE_TOKENS } from "./admission/node-policies.ts";
import { policiesOf } from "./admission/policies.ts";
import { bindingObject, policyObject } from "./admission/policy-objects.ts";
import type { KubeObject } from "./kube-object.ts";
import { notesForServer, servedBy } from "./older-servers.ts";

const ROLE: KubeObject = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "one" } };
const POLICIES = [policyObject("one", {}), bindingObject("one")];

const RULES = {
  plain: { rule: "self >= 0", message: "is negative" },
  elsewhere: { rule: "!has(self.a) || has(self.b)", message: "has no b", fieldPath: ".a" },
  computed: { rule: "self == self.upperAscii()", message: "is lower", messageExpression: "'use %s'.format([self])" },
  selector: {
    rule: "self.matches('^a') && self.findAll('[(]').size() == self.findAll('[)]').size()",
    message: "is wrong",
  },
  parts: { rule: "!self.split(',').exists(part, part == 'lo')", message: "is loopback" },
  address: { rule: "isIP(self)", message: "is not an address" },
  unchanged: { rule: "self == oldSelf || (isCIDR(self) && cidr(self) == cidr(oldSelf))", message: "cannot change" },
};

function definition(rules: readonly object[]): KubeObject {
  const field = { type: "string", ...(rules.length === 0 ? {} : { "x-kubernetes-validations": rules }) };
  const schema = { openAPIV3Schema: { type: "object", properties: { list: { type: "array", items: field } } } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "ones.example.org" },
    spec: { versions: [{ name: "v1", schema }] },
  };
}

const WHOLE = definition(Object.values(RULES));

describe("servedBy()", () => {
  test.each(["v1.32.0", "v1.32.0-rc.1", "v1.37.0+k3s1", "unknown"])("leaves out nothing for %s", (version) => {
    expect(servedBy(version, [ROLE, WHOLE, ...POLICIES])).toEqual([ROLE, WHOLE, ...POLICIES]);
  });

  test.each([
    ["v1.24.17", []],
    ["v1.25.0", ["plain", { ...RULES.elsewhere, fieldPath: undefined }, "computed", "selector", "unchanged"]],
    ["v1.28.3-eks-1", ["plain", RULES.elsewhere, "computed", "selector", "unchanged"]],
  ] as const)("gives %s rules that it compiles, with a constant message", (version, expected) => {
    const shortened = {
      plain: RULES.plain,
      computed: { rule: RULES.computed.rule, message: RULES.computed.message },
      selector: { rule: "self.matches('^a')", message: "is wrong" },
      unchanged: { rule: "self == oldSelf", message: "cannot change" },
    };
    const rules = expected.map((each) => (typeof each === "string" ? shortened[each] : each));
    expect(JSON.parse(JSON.stringify(servedBy(version, [ROLE, WHOLE])))).toEqual(
      JSON.parse(JSON.stringify([ROLE, definition(rules)])),
    );
  });

  test("gives v1.30 admission policies, and all rules that do not read addresses", () => {
    const { plain, elsewhere, computed, selector, parts } = RULES;
    const unchanged = { rule: "self == oldSelf", message: "cannot change" };
    expect(servedBy("v1.30.14", [WHOLE, ...POLICIES])).toEqual([
      definition([plain, elsewhere, computed, selector, parts, unchanged]),
      ...POLICIES,
    ]);
  });

  test("gives v1.31 all rules that do not compare CIDRs", () => {
    const { unchanged: _, ...others } = RULES;
    const unchanged = { rule: "self == oldSelf", message: "cannot change" };
    const hostBits = { rule: "!isCIDR(self) || cidr(self) == cidr(self).masked()", message: "has host bits" };
    expect(servedBy("v1.31.14", [definition([...Object.values(RULES), hostBits]), ...POLICIES])).toEqual([
      definition([...Object.values(others), unchanged]),
      ...POLICIES,
    ]);
  });

  test("gives v1.30, which cannot bind tokens to Nodes, no policy that demands it", () => {
    const all = policiesOf("nodeAccounts");
    const names = (version: string) => servedBy(version, all).map(({ metadata }) => metadata.name);

    expect(names("v1.31.0")).toEqual(all.map(({ metadata }) => metadata.name));
    expect(names("v1.30.14")).toEqual(names("v1.31.0").filter((name) => name !== NODE_TOKENS));
    expect(names("v1.30.14")).toHaveLength(all.length - 2);
    expect(notesForServer("v1.30.14", all)).toEqual([expect.stringContaining(NODE_TOKENS)]);
    expect(notesForServer("v1.31.0", all)).toEqual([]);
  });

  test("gives earlier ones no admission policies", () => {
    expect(servedBy("v1.29.9", [ROLE, ...POLICIES])).toEqual([ROLE]);
  });
});

describe("notesForServer()", () => {
  test("says how many rules are missing, and what nothing prevents without the policies", () => {
    expect(notesForServer("v1.32.0", [WHOLE, ...POLICIES])).toEqual([]);
    expect(notesForServer("v1.30.0", [WHOLE, ...POLICIES])).toEqual([expect.stringContaining("1 validation rule ")]);
    expect(notesForServer("v1.24.0", [WHOLE, ...POLICIES])).toEqual([
      expect.stringContaining("7 validation rules"),
      expect.stringContaining("has no admission policies"),
    ]);
    expect(notesForServer("v1.24.0", [ROLE])).toEqual([]);
  });
});
