import { describe, expect, test } from "bun:test";
import { derivedUid } from "./derived-uid.ts";
import { networkPolicy } from "./network-policy.ts";
import { convertPolicy, NOT_CONVERTED_ANNOTATION } from "./orchestrator-policy.ts";

const POD = "vendor.org/orchestrator == 'k8s'";
const UID = "c1d9bb67-2d7c-4d4e-93a2-0d9c1b0f7a11";

function convert(spec: object) {
  return convertPolicy({ metadata: { name: "web", namespace: "red", uid: UID }, spec });
}

/** Of a policy that isolates both directions. */
const ingressOf = (rule: object) => convert({ podSelector: {}, ingress: [rule] }).spec.ingress;
const egressOf = (rule: object) => convert({ podSelector: {}, policyTypes: ["Egress"], egress: [rule] }).spec.egress;
const problemOf = (spec: object) => convert(spec).metadata.annotations?.[NOT_CONVERTED_ANNOTATION];

describe("convertPolicy()", () => {
  test("makes a policy of the default tier in the same namespace, with a UID of its own", () => {
    expect(convert({ podSelector: {} })).toEqual({
      apiVersion: "vendor.org/v3",
      kind: "NetworkPolicy",
      metadata: { name: "knp.default.web", namespace: "red", uid: derivedUid(UID) },
      spec: { tier: "default", order: 1000, selector: POD, types: ["Ingress"], ingress: [] },
    });
  });

  test.each([
    [{}, []],
    [{ matchLabels: { b: "2", a: "1" } }, ["a == '1'", "b == '2'"]],
    [{ matchExpressions: [{ key: "a", operator: "In", values: ["1", "2"] }] }, ["a in {'1', '2'}"]],
    [{ matchExpressions: [{ key: "a", operator: "NotIn", values: ["1"] }] }, ["a not in {'1'}"]],
    [{ matchExpressions: [{ key: "a", operator: "Exists" }] }, ["has(a)"]],
    [{ matchExpressions: [{ key: "a", operator: "DoesNotExist", values: null }] }, ["! has(a)"]],
    [
      { matchLabels: { "app.kubernetes.io/name": "x" }, matchExpressions: [{ key: "b", operator: "Exists" }] },
      ["app.kubernetes.io/name == 'x'", "has(b)"],
    ],
    [{ matchLabels: null, matchExpressions: null }, []],
    [{ matchLabels: { a: "" } }, ["a == ''"]],
  ])("selects the pods of %j", (podSelector, terms) => {
    expect(convert({ podSelector }).spec.selector).toBe([POD, ...terms].join(" && "));
  });

  test.each([
    [undefined, ["Ingress"]],
    [[], ["Ingress"]],
    [["Ingress"], ["Ingress"]],
    [["Egress"], ["Egress"]],
    [
      ["Egress", "Ingress"],
      ["Ingress", "Egress"],
    ],
  ])("isolates the directions of %j", (policyTypes, types) => {
    const { spec } = convert({ podSelector: {}, policyTypes, ingress: [{}], egress: [{}] });

    expect(spec.types).toEqual(types as ("Ingress" | "Egress")[]);
    expect(["Ingress", "Egress"].filter((type) => type.toLowerCase() in spec)).toEqual(types);
  });

  test.each([
    ["everything", {}, [{ action: "Allow" }]],
    ["nothing but empty lists", { from: [], ports: [] }, [{ action: "Allow" }]],
    ["absent lists", { from: null, ports: null }, [{ action: "Allow" }]],
    [
      "a port, TCP by default",
      { ports: [{ port: 80 }] },
      [{ action: "Allow", protocol: "TCP", destination: { ports: [80] } }],
    ],
    [
      "ports of one protocol, merged into ranges, and names",
      { ports: [{ port: 82 }, { port: "web" }, { port: 80, endPort: 81 }, { port: 443 }, { port: 443 }] },
      [{ action: "Allow", protocol: "TCP", destination: { ports: ["80:82", 443, "web"] } }],
    ],
    [
      "each protocol",
      { ports: [{ port: 53, protocol: "UDP" }, { port: 53 }, { port: 9, protocol: "SCTP" }] },
      [
        { action: "Allow", protocol: "UDP", destination: { ports: [53] } },
        { action: "Allow", protocol: "TCP", destination: { ports: [53] } },
        { action: "Allow", protocol: "SCTP", destination: { ports: [9] } },
      ],
    ],
    [
      "all ports of a protocol",
      { ports: [{ protocol: "UDP", port: 53 }, { protocol: "UDP" }] },
      [{ action: "Allow", protocol: "UDP" }],
    ],
    ["pods of the own namespace", { from: [{ podSelector: {} }] }, [{ action: "Allow", source: { selector: POD } }]],
    [
      "pods of all namespaces",
      { from: [{ namespaceSelector: {} }] },
      [{ action: "Allow", source: { selector: POD, namespaceSelector: "all()" } }],
    ],
    [
      "some pods of some namespaces",
      { from: [{ podSelector: { matchLabels: { a: "1" } }, namespaceSelector: { matchLabels: { n: "2" } } }] },
      [{ action: "Allow", source: { selector: `${POD} && a == '1'`, namespaceSelector: "n == '2'" } }],
    ],
    [
      "a block without exceptions; host bits have no meaning",
      { from: [{ ipBlock: { cidr: "10.0.0.7/8" } }] },
      [{ action: "Allow", source: { nets: ["10.0.0.0/8"] } }],
    ],
    [
      "a block with exceptions",
      { from: [{ ipBlock: { cidr: "fd00::/16", except: ["fd00:1::/32", "fd00:2::1/32"] } }] },
      [{ action: "Allow", source: { nets: ["fd00::/16"], notNets: ["fd00:1::/32", "fd00:2::/32"] } }],
    ],
    [
      "each peer with each protocol",
      { from: [{ podSelector: {} }, { ipBlock: { cidr: "10.0.0.0/8" } }], ports: [{ port: 1 }, { protocol: "UDP" }] },
      [
        { action: "Allow", protocol: "TCP", source: { selector: POD }, destination: { ports: [1] } },
        { action: "Allow", protocol: "TCP", source: { nets: ["10.0.0.0/8"] }, destination: { ports: [1] } },
        { action: "Allow", protocol: "UDP", source: { selector: POD } },
        { action: "Allow", protocol: "UDP", source: { nets: ["10.0.0.0/8"] } },
      ],
    ],
  ])("allows ingress: %s", (_, rule, rules) => {
    expect(ingressOf(rule)).toEqual(rules as typeof rules & ReturnType<typeof ingressOf>);
  });

  test("allows egress to peers and their ports", () => {
    expect(egressOf({ to: [{ ipBlock: { cidr: "10.0.0.0/8" } }], ports: [{ port: "web" }] })).toEqual([
      { action: "Allow", protocol: "TCP", destination: { nets: ["10.0.0.0/8"], ports: ["web"] } },
    ]);
    expect(egressOf({ ports: [{ protocol: "UDP", port: 53 }] })).toEqual([
      { action: "Allow", protocol: "UDP", destination: { ports: [53] } },
    ]);
  });

  test.each([
    ["an empty peer", { from: [{}] }, "a peer is empty"],
    ["a block with a selector", { from: [{ ipBlock: { cidr: "10.0.0.0/8" }, podSelector: {} }] }, "an ipBlock and"],
    ["a block that is none", { from: [{ ipBlock: { cidr: "ten" } }] }, '"ten" is not a CIDR'],
    ["an exception that is none", { from: [{ ipBlock: { cidr: "10.0.0.0/8", except: ["10.0.0.1"] } }] }, "not a CIDR"],
    ["a mapped block", { from: [{ ipBlock: { cidr: "::ffff:10.0.0.0/104" } }] }, "is an IPv4-mapped network"],
    ["an unknown operator", { from: [{ podSelector: { matchExpressions: [{ key: "a", operator: "Gt" }] } }] }, '"Gt"'],
    ["an unknown criterion of the rule", { fromNodes: [] }, 'unknown field "fromNodes"'],
    [
      "an unknown criterion of a peer",
      { from: [{ podSelector: {}, nodeSelector: {} }] },
      'unknown field "nodeSelector"',
    ],
    ["an unknown criterion of a port", { ports: [{ port: 1, flags: "SYN" }] }, 'unknown field "flags"'],
    ["an unknown protocol", { ports: [{ protocol: "ICMP" }] }, '"ICMP" is not a protocol with ports'],
    ["a range that ends before it begins", { ports: [{ port: 80, endPort: 79 }] }, '"80:79" is not a port'],
    ["a range of a name", { ports: [{ port: "web", endPort: 79 }] }, '"web:79" is not a port'],
    ["an end without a port", { ports: [{ endPort: 79 }] }, "an endPort has no port"],
    ["a port that is too large", { ports: [{ port: 65_536 }] }, "65536 is not a port"],
    ["a name of digits", { ports: [{ port: "80" }] }, '"80" is not a port'],
  ])("leaves out a rule with %s, keeps the others and says so", (_, rule, reason) => {
    const spec = { podSelector: {}, ingress: [{ ports: [{ port: 1 }] }, rule] };

    expect(convert(spec).spec.ingress).toHaveLength(1);
    expect(problemOf(spec)).toStartWith("ingress[1]: ");
    expect(problemOf(spec)).toContain(reason);
  });

  test("isolates more if it does not understand whom or what to isolate", () => {
    const selector = { podSelector: { matchLabels: { "a b": "c" } } };
    expect(convert(selector).spec.selector).toBe(POD);
    expect(problemOf(selector)).toContain("all pods of the namespace are selected");

    const types = { podSelector: {}, policyTypes: ["Forward"] };
    expect(convert(types).spec.types).toEqual(["Ingress", "Egress"]);
    expect(problemOf(types)).toContain('"Forward"');
  });

  test("makes policies that are valid, and are read as they are written", () => {
    const rule = {
      from: [{ podSelector: { matchLabels: { a: "it's" } }, namespaceSelector: {} }, { ipBlock: { cidr: "::/0" } }],
      ports: [
        { port: 1, endPort: 9 },
        { port: "web", protocol: "UDP" },
      ],
    };
    const policy = convert({ podSelector: {}, policyTypes: ["Ingress", "Egress"], ingress: [rule], egress: [{}] });

    expect(networkPolicy.decode(policy)).toEqual({ ok: true, value: policy });
    expect(networkPolicy.read(JSON.stringify(policy), "key")).toEqual(policy);
  });
});

describe("derivedUid()", () => {
  test("reverses bits, keeps version and variant, and is its own inverse", () => {
    expect(derivedUid("01020304-0506-4708-8901-0203040506ff")).toBe("8040c020-a060-4710-8980-40c020a060ff");
    expect(derivedUid(derivedUid(UID))).toBe(UID);
    expect(derivedUid("not a UID")).toBe("not a UID");
  });
});
