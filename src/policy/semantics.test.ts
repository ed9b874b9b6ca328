/** Cases at the edge of the semantics: the compiled table and the judge agree, and both say what the name of the test says. */

import { describe, expect, test } from "bun:test";
import { globalPolicy } from "../../test/support/global-policy.ts";
import { interpret } from "../../test/support/interpret/interpret.ts";
import { packetBytes } from "../../test/support/interpret/packet-bytes.ts";
import { changesBetween, NO_RESOURCES } from "../../test/support/policy-changes.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { parseAddress } from "../ip/address.ts";
import { encodeBatch } from "../linux/nftables/batch-writer.ts";
import { globalNetworkSet } from "../model/global-network-set.ts";
import { GLOBAL_NETWORK_POLICY, NETWORK_POLICY, TIER } from "../model/kinds.ts";
import { networkPolicy } from "../model/network-policy.ts";
import { networkProfileSpec } from "../model/network-profile.ts";
import { networkSet } from "../model/network-set.ts";
import { profile } from "../model/profile.ts";
import { tier } from "../model/tier.ts";
import { UPGRADE_POLICY } from "../model/upgrade-policy.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../model/workload-endpoint.ts";
import { PolicyCompiler } from "./compile/compiler.ts";
import { judge } from "./judge/judge.ts";
import type { Packet } from "./judge/packet.ts";
import type { PolicyResources } from "./judge/resources.ts";
import { tableBatches } from "./table/table-changes.ts";

const NODE = "here";
const TABLE = { family: "inet", name: "policy" } as const;

interface PodOptions {
  readonly address?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly interfaceName?: string;
  readonly node?: string;
  readonly ports?: WorkloadEndpoint["spec"]["ports"];
}

function pod(name: string, options: PodOptions = {}): WorkloadEndpoint {
  const { address = "10.0.0.1", namespace = "red", node = NODE, labels = {}, ports = [] } = options;
  return workloadEndpoint.make(
    {
      name: `${node}-k8s-${name}-eth0`,
      namespace,
      labels: { ...labels, [`${identity.labelPrefix}namespace`]: namespace },
    },
    {
      node,
      orchestrator: "k8s",
      pod: name,
      endpoint: "eth0",
      ipNetworks: [`${address}/${address.includes(":") ? 128 : 32}`],
      profiles: [`kns.${namespace}`],
      interfaceName: options.interfaceName ?? `${identity.interfacePrefix}${name}`,
      ports,
    },
  );
}

const allowing = (name: string, labels: Readonly<Record<string, string>> = {}) =>
  profile.make(
    { name: `kns.${name}` },
    { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }], labelsToApply: labels },
  );

const namespaced = (name: string, spec: object, namespace = "red") =>
  networkPolicy.make({ name, namespace }, { tier: "default", ...spec } as never);

const SUBJECT = pod("subject");
const BASE: PolicyResources = { ...NO_RESOURCES, endpoints: [SUBJECT], profiles: [allowing("red"), allowing("blue")] };

function packet(options: Partial<Packet> & { readonly from?: string; readonly to?: string } = {}): Packet {
  const { from = "10.0.0.9", to = "10.0.0.1", protocol = 6, ...rest } = options;
  const source = parseAddress(from);
  const destination = parseAddress(to);
  if (source === undefined || destination === undefined) throw new RangeError("not an address");
  return { source, destination, protocol, sourcePort: 4_000, destinationPort: 80, ...rest };
}

function compiled(resources: PolicyResources): PolicyCompiler {
  const compiler = new PolicyCompiler({ node: NODE });
  compiler.update(changesBetween(NO_RESOURCES, resources));
  return compiler;
}

/** What the table says about a packet to the subject. */
function interpreted(compiler: PolicyCompiler, to = SUBJECT, given = packet()): "allow" | "deny" {
  const passage = { hook: "forward", oifname: to.spec.interfaceName ?? "", packet: packetBytes(given) } as const;
  return interpret(compiler.table, passage).verdict === "accept" ? "allow" : "deny";
}

/** What both say about a packet to the subject. */
function verdict(resources: PolicyResources, given: Packet = packet(), to = SUBJECT): "allow" | "deny" {
  const judged = judge(given, to, "ingress", resources).verdict;
  expect(interpreted(compiled(resources), to, given)).toBe(judged);
  return judged;
}

describe("tiers", () => {
  const tierOf = (name: string, order?: number, defaultAction: "Deny" | "Pass" = "Deny") =>
    tier.make({ name }, { defaultAction, ...(order === undefined ? {} : { order }) });
  const inTier = (name: string, action: string) => globalPolicy(`${name}.x`, { tier: name, ingress: [{ action }] });

  test("Pass from the last tier leads to the profiles", () => {
    const globalNetworkPolicies = [inTier("last", "Pass")];
    const tiers = [tierOf("last", 2_000_000)];
    expect(verdict({ ...BASE, tiers, globalNetworkPolicies })).toBe("allow");
    expect(verdict({ ...BASE, tiers, globalNetworkPolicies, profiles: [] })).toBe("deny");
  });

  test("tiers of equal order are evaluated by name", () => {
    const tiers = [tierOf("b", 5), tierOf("a", 5)];
    const policies = (first: string, second: string) => [inTier("a", first), inTier("b", second)];
    expect(verdict({ ...BASE, tiers, globalNetworkPolicies: policies("Allow", "Deny") })).toBe("allow");
    expect(verdict({ ...BASE, tiers, globalNetworkPolicies: policies("Deny", "Allow") })).toBe("deny");
  });

  test("a tier without an order is evaluated after the default tier", () => {
    const globalNetworkPolicies = [inTier("late", "Deny"), globalPolicy("x", { ingress: [{ action: "Allow" }] })];
    expect(verdict({ ...BASE, tiers: [tierOf("late")], globalNetworkPolicies })).toBe("allow");
  });

  test("the default tier has its order also if it is stored without one", () => {
    const globalNetworkPolicies = [inTier("late", "Deny"), globalPolicy("x", { ingress: [{ action: "Allow" }] })];
    const tiers = [tierOf("late", 2_000_000), tierOf("default")];
    expect(verdict({ ...BASE, tiers, globalNetworkPolicies })).toBe("allow");
  });

  test("a tier that does not exist is evaluated last and denies by default", () => {
    const globalNetworkPolicies = [globalPolicy("none.x", { tier: "none", types: ["Ingress"] })];
    expect(verdict({ ...BASE, globalNetworkPolicies })).toBe("deny");
    const allow = globalPolicy("x", { ingress: [{ action: "Allow" }] });
    expect(verdict({ ...BASE, globalNetworkPolicies: [...globalNetworkPolicies, allow] })).toBe("allow");
  });

  test("a tier whose default is Pass leaves the packet to the next", () => {
    const globalNetworkPolicies = [globalPolicy("first.x", { tier: "first", types: ["Ingress"] })];
    expect(verdict({ ...BASE, tiers: [tierOf("first", 1, "Pass")], globalNetworkPolicies })).toBe("allow");
    expect(verdict({ ...BASE, tiers: [tierOf("first", 1)], globalNetworkPolicies })).toBe("deny");
  });

  test("a policy that moves to another tier is evaluated there", () => {
    const tiers = [tierOf("first", 1), tierOf("last", 2_000_000)];
    const other = globalPolicy("x", { ingress: [{ action: "Allow" }] });
    const before = { ...BASE, tiers, globalNetworkPolicies: [other, inTier("first", "Deny")] };
    const after = { ...BASE, tiers, globalNetworkPolicies: [other, inTier("last", "Deny")] };
    const compiler = compiled(before);
    expect(interpreted(compiler)).toBe("deny");
    compiler.update(changesBetween(before, after));
    expect(interpreted(compiler)).toBe(verdict(after));
    expect(verdict(after)).toBe("allow");
  });
});

describe("the order of policies", () => {
  test("is that of their orders, then that of namespace and name; a policy without an order is last", () => {
    const allow = (name: string, order?: number) => namespaced(name, { order, ingress: [{ action: "Allow" }] });
    const deny = (name: string, order?: number) => globalPolicy(name, { order, ingress: [{ action: "Deny" }] });
    const both = (one: ReturnType<typeof allow>, two: ReturnType<typeof deny>) => ({
      ...BASE,
      networkPolicies: [one],
      globalNetworkPolicies: [two],
    });
    expect(verdict(both(allow("a", 1), deny("b", 2)))).toBe("allow");
    expect(verdict(both(allow("a", 2), deny("b", 1)))).toBe("deny");
    expect(verdict(both(allow("a", 1), deny("b")))).toBe("allow");
    // "red/a" is before "z", and after "q".
    expect(verdict(both(allow("a", 1), deny("z", 1)))).toBe("allow");
    expect(verdict(both(allow("a", 1), deny("q", 1)))).toBe("deny");
  });
});

describe("a second family", () => {
  const SECOND = workloadEndpoint.make(SUBJECT.metadata, {
    ...SUBJECT.spec,
    ipNetworks: [...(SUBJECT.spec.ipNetworks ?? []), "fd00::1/128"],
  });
  const ipv6 = packet({ from: "fd00::9", to: "fd00::1" });
  const to = (rule: object) => {
    const globalNetworkPolicies = [globalPolicy("x", { ingress: [rule, { action: "Deny", ipVersion: 4 }] })];
    const resources = { ...BASE, endpoints: [SECOND], globalNetworkPolicies };
    return { ipv4: verdict(resources, packet(), SECOND), ipv6: verdict(resources, ipv6, SECOND) };
  };

  test("is not open because a rule allows all IPv4 addresses but some", () => {
    expect(to({ action: "Allow", source: { notNets: ["10.1.0.0/16"] } })).toEqual({ ipv4: "allow", ipv6: "deny" });
    expect(to({ action: "Allow", source: { notNets: ["10.1.0.0/16", "fd01::/16"] } }).ipv6).toBe("allow");
  });

  test("is closed by a rule that denies all IPv4 addresses but some", () => {
    const rule = { action: "Deny", source: { notNets: ["10.0.0.0/8"] } };
    const globalNetworkPolicies = [globalPolicy("x", { ingress: [rule, { action: "Allow" }] })];
    const resources = { ...BASE, endpoints: [SECOND], globalNetworkPolicies };
    expect(verdict(resources, packet(), SECOND)).toBe("allow");
    expect(verdict(resources, ipv6, SECOND)).toBe("deny");
  });
});

describe("what cannot be carried out fails closed", () => {
  const failure = new PluginError("config-invalid", "spec.ingress is not a list");
  const unreadable = (key: string) => ({ kind: "unreadable" as const, key, failure, previous: undefined });
  const none = changesBetween(NO_RESOURCES, NO_RESOURCES);
  const other = pod("other", { namespace: "blue", address: "10.0.0.2" });

  test("an unreadable policy denies everything in its namespace, until it can be read", () => {
    const compiler = compiled({ ...BASE, endpoints: [SUBJECT, other] });
    const key = NETWORK_POLICY.key({ name: "broken", namespace: "red" });
    compiler.update({ ...none, networkPolicies: [unreadable(key)] });

    expect(interpreted(compiler)).toBe("deny");
    expect(interpreted(compiler, other)).toBe("allow");
    expect(compiler.problems).toEqual([
      { title: "red/broken", reason: failure.message, effect: "denies more than it says" },
    ]);

    compiler.update({ ...none, networkPolicies: [{ kind: "delete", key, previous: undefined }] });
    expect(interpreted(compiler)).toBe("allow");
    expect(compiler.problems).toEqual([]);
  });

  test("an unreadable global policy denies everything", () => {
    const compiler = compiled({ ...BASE, endpoints: [SUBJECT, other] });
    compiler.update({ ...none, globalNetworkPolicies: [unreadable(GLOBAL_NETWORK_POLICY.key({ name: "broken" }))] });

    expect([interpreted(compiler), interpreted(compiler, other)]).toEqual(["deny", "deny"]);
  });

  test("the name of an unreadable policy cannot make a comment or a log line longer than the kernel takes", () => {
    const logging = globalPolicy("é".repeat(80), { ingress: [{ action: "Log" }] });
    const compiler = new PolicyCompiler({ node: NODE, dropGroup: 7 });
    compiler.update(changesBetween(NO_RESOURCES, { ...BASE, globalNetworkPolicies: [logging] }));
    const key = GLOBAL_NETWORK_POLICY.key({ name: "é".repeat(110) });
    compiler.update({ ...none, globalNetworkPolicies: [unreadable(key)] });

    const rules = [...compiler.table.chains.values()].flatMap((chain) => chain.rules);
    const prefixes = rules.flatMap(({ expressions }) =>
      expressions.flatMap((each) => (each.kind === "log" ? [each.prefix] : [])),
    );
    const comments = rules.flatMap(({ comment }) => (comment === undefined ? [] : [comment]));
    expect(Math.max(...[...prefixes, ...comments].map((text) => Buffer.byteLength(text)))).toBeWithin(100, 128);
    for (const text of [...prefixes, ...comments]) expect(text.isWellFormed() && !text.includes("\ufffd")).toBe(true);
    expect(comments).toContainEqual(expect.stringMatching(/^~[0-9a-f]{10}~é+ ingress 0$/));
    expect(prefixes).toContainEqual(expect.stringMatching(/ é+ ingress rule 1: $/));
  });

  test("Log of the temporary policy of an upgrade has a limit that loses no peer of a busy host", () => {
    const rateOf = (name: string) => {
      const compiler = compiled({
        ...BASE,
        globalNetworkPolicies: [globalPolicy(name, { ingress: [{ action: "Log" }] })],
      });
      const rules = [...compiler.table.chains.values()].flatMap((chain) => chain.rules);
      return rules.flatMap(({ expressions }) => expressions).find((each) => each.kind === "limit")?.rate;
    };
    expect(["x", UPGRADE_POLICY, `default.${UPGRADE_POLICY}`].map(rateOf)).toEqual([10n, 1_000n, 1_000n]);
  });

  test("an unreadable policy denies also what a policy of an earlier tier allows", () => {
    const early = tier.make({ name: "early" }, { order: 1, defaultAction: "Deny" });
    const allow = globalPolicy("early.x", { tier: "early", ingress: [{ action: "Allow" }] });
    const compiler = compiled({ ...BASE, tiers: [early], globalNetworkPolicies: [allow] });
    expect(interpreted(compiler)).toBe("allow");
    compiler.update({ ...none, globalNetworkPolicies: [unreadable(GLOBAL_NETWORK_POLICY.key({ name: "broken" }))] });

    expect(interpreted(compiler)).toBe("deny");
  });

  test("the policies of a tier that could never be read deny, whatever others allow", () => {
    const allow = { ingress: [{ action: "Allow" }] };
    const policies = [globalPolicy("early.x", { tier: "early", ...allow }), globalPolicy("x", allow)];
    const key = TIER.key({ name: "early" });
    const compiler = new PolicyCompiler({ node: NODE });
    const first = changesBetween(NO_RESOURCES, { ...BASE, globalNetworkPolicies: policies });
    compiler.update({ ...first, tiers: [unreadable(key)] });

    expect(interpreted(compiler)).toBe("deny");
    const effect = expect.stringContaining("its policies deny everything");
    expect(compiler.problems).toEqual([{ title: "early", reason: failure.message, effect }]);

    const readable = tier.make({ name: "early" }, { order: 1, defaultAction: "Deny" });
    compiler.update({ ...none, tiers: [{ kind: "put", key, value: readable, previous: undefined }] });
    expect(interpreted(compiler)).toBe("allow");
    compiler.update({ ...none, tiers: [unreadable(key)] });
    expect(interpreted(compiler)).toBe("allow");
  });

  test("so do those of a built-in tier that passes, whose record may say that it denies", () => {
    const verdicts = ["kube-admin", "default"].map((name) => {
      const policy = globalPolicy(`${name}.x`, { tier: name, ingress: [{ action: "Allow" }] });
      const compiler = compiled({ ...BASE, globalNetworkPolicies: [policy] });
      const key = TIER.key({ name });
      compiler.update({ ...none, tiers: [unreadable(key)] });
      const unread = interpreted(compiler);
      compiler.update({ ...none, tiers: [{ kind: "delete", key, previous: undefined }] });
      return [unread, interpreted(compiler)];
    });
    expect(verdicts).toEqual([
      ["deny", "allow"],
      ["allow", "allow"],
    ]);
  });

  test("a policy with a rule that is not supported denies what it selects, in both directions", () => {
    const allow = { action: "Allow" };
    const broken = namespaced("broken", { selector: "has(app)", egress: [allow, { ...allow, http: {} }] });
    const selected = pod("selected", { labels: { app: "a" }, address: "10.0.0.3" });
    const compiler = compiled({ ...BASE, endpoints: [SUBJECT, selected], networkPolicies: [broken] });

    expect([interpreted(compiler), interpreted(compiler, selected)]).toEqual(["allow", "deny"]);
    expect(compiler.problems.map(({ title }) => title)).toEqual(["red/broken"]);
  });

  test.each([
    ["an ICMP code without a type", { protocol: "ICMP", icmp: { code: 1 } }],
    ["ports without a protocol", { destination: { ports: [80] } }],
    ["ports of a protocol without ports", { protocol: "ICMP", destination: { notPorts: [80] } }],
    ["ICMP types without the protocol", { icmp: { type: 4_000 >> 8 } }],
    ["ICMP types of another protocol", { protocol: "TCP", notICMP: { type: 1 } }],
    ["a service without a namespace", { destination: { services: { name: "web" } } }],
  ])("so does %s", (_, criteria) => {
    const compiler = compiled({
      ...BASE,
      globalNetworkPolicies: [globalPolicy("broken", { ingress: [{ action: "Allow", ...criteria }] })],
    });
    expect(interpreted(compiler)).toBe("deny");
    expect(compiler.problems).toHaveLength(1);
  });

  test("a network set that cannot be read any more keeps its networks", () => {
    const set = globalNetworkSet.make({ name: "bad", labels: { bad: "yes" } }, { nets: ["10.0.0.9"] });
    const deny = globalPolicy("deny", {
      ingress: [{ action: "Deny", source: { selector: "has(bad)" } }, { action: "Allow" }],
    });
    const resources = { ...BASE, globalNetworkSets: [set], globalNetworkPolicies: [deny] };
    const compiler = compiled(resources);
    const [change] = changesBetween(NO_RESOURCES, resources).globalNetworkSets;
    compiler.update({ ...none, globalNetworkSets: [unreadable(change?.key ?? "")] });

    expect(interpreted(compiler)).toBe("deny");
    const effect = expect.stringContaining("if it never could, it has no effect");
    expect(compiler.problems).toEqual([{ title: "bad", reason: failure.message, effect }]);
  });
});

describe("labels of namespaces and service accounts", () => {
  const policy = (source: object) => namespaced("x", { ingress: [{ action: "Allow", source }] });
  const profiles = [allowing("red"), allowing("blue", { "pcns.team": "tenants" })];
  const labels = { "pcns.team": "admins", "pcsa.role": "root" };

  test("are not those that a pod gives itself", () => {
    const endpoints = [SUBJECT, pod("tenant", { namespace: "blue", address: "10.0.0.9", labels })];
    const allowed = (source: object) => verdict({ ...BASE, endpoints, profiles, networkPolicies: [policy(source)] });

    expect(allowed({ namespaceSelector: "team == 'admins'" })).toBe("deny");
    expect(allowed({ namespaceSelector: "team == 'tenants'" })).toBe("allow");
    expect(allowed({ namespaceSelector: "all()", serviceAccounts: { selector: "has(role)" } })).toBe("deny");
  });

  test("are not those that a network set gives itself", () => {
    const networkSets = [networkSet.make({ name: "set", namespace: "blue", labels }, { nets: ["10.0.0.9"] })];
    const networkPolicies = [policy({ namespaceSelector: "team == 'admins'" })];
    expect(verdict({ ...BASE, profiles, networkSets, networkPolicies })).toBe("deny");
  });
});

describe("networks", () => {
  const withSet = (...nets: readonly string[]): PolicyResources => ({
    ...BASE,
    globalNetworkSets: [globalNetworkSet.make({ name: "set", labels: { set: "yes" } }, { nets: [...nets] })],
    globalNetworkPolicies: [globalPolicy("x", { ingress: [{ action: "Allow", source: { selector: "has(set)" } }] })],
  });

  test("a network set with all addresses of a family", () => {
    expect(verdict(withSet("0.0.0.0/0"))).toBe("allow");
    expect(verdict(withSet("::/0"))).toBe("deny");
    expect(verdict(withSet("0.0.0.0/0"), packet({ from: "255.255.255.255" }))).toBe("allow");
  });

  test("networks of a set that overlap", () => {
    const resources = withSet("10.0.0.0/24", "10.0.0.8/29", "10.0.0.9", "10.0.0.0/25");
    expect(verdict(resources)).toBe("allow");
    expect(verdict(resources, packet({ from: "10.0.1.0" }))).toBe("deny");
  });

  test("more than 1,000 networks and ports in one rule", () => {
    const nets = Array.from({ length: 1_500 }, (_, index) => `10.${index >> 8}.${index & 255}.0/25`);
    const ports = Array.from({ length: 1_500 }, (_, index) => index * 2);
    const rule = { action: "Allow", protocol: "TCP", source: { nets }, destination: { ports } };
    const resources = { ...BASE, globalNetworkPolicies: [globalPolicy("x", { ingress: [rule] })] };
    expect(verdict(resources)).toBe("allow");
    expect(verdict(resources, packet({ destinationPort: 81 }))).toBe("deny");
    expect(verdict(resources, packet({ from: "10.5.200.127" }))).toBe("allow");
    expect(verdict(resources, packet({ from: "10.5.200.128" }))).toBe("deny");
  });
});

describe("protocols and ports", () => {
  const allowing1 = (rule: object): PolicyResources => ({
    ...BASE,
    globalNetworkPolicies: [globalPolicy("x", { ingress: [{ action: "Allow", ...rule }] })],
  });
  const icmp = (type: number): Packet => {
    const { source, destination } = packet();
    return { source, destination, protocol: 1, icmp: { type, code: 0 } };
  };

  test("ICMP without a type is every type", () => {
    expect(verdict(allowing1({ protocol: "ICMP" }), icmp(8))).toBe("allow");
    expect(verdict(allowing1({ protocol: "ICMP" }), icmp(0))).toBe("allow");
    expect(verdict(allowing1({ protocol: "ICMP" }))).toBe("deny");
  });

  test("a protocol number, also as a text", () => {
    const gre = { ...packet(), protocol: 47 };
    expect(verdict(allowing1({ protocol: 47 }), gre)).toBe("allow");
    expect(verdict(allowing1({ protocol: 6 }), gre)).toBe("deny");
    expect(verdict(allowing1({ notProtocol: 6 }), gre)).toBe("allow");
    expect(verdict(allowing1({ protocol: "tcp" }))).toBe("allow");
  });

  test("the first and the last port", () => {
    const to = (ports: readonly (number | string)[]) => allowing1({ protocol: "TCP", destination: { ports } });
    expect(verdict(to([0]), packet({ destinationPort: 0 }))).toBe("allow");
    expect(verdict(to([0]), packet({ destinationPort: 1 }))).toBe("deny");
    expect(verdict(to([65_535]), packet({ destinationPort: 65_535 }))).toBe("allow");
    expect(verdict(to(["0:65535"]), packet({ destinationPort: 65_535 }))).toBe("allow");
    expect(verdict(to(["65000:65535", 1]), packet({ destinationPort: 65_535 }))).toBe("allow");
    expect(verdict(to(["65000:65535", 1]), packet({ destinationPort: 64_999 }))).toBe("deny");
  });

  test("named ports that are not wanted, beside numbers", () => {
    const subject = pod("subject", { ports: [{ name: "web", protocol: "TCP", port: 80 }] });
    const resources = {
      ...allowing1({ protocol: "TCP", destination: { notPorts: ["web", 443] } }),
      endpoints: [subject],
    };
    expect(verdict(resources, packet(), subject)).toBe("deny");
    expect(verdict(resources, packet({ destinationPort: 443 }), subject)).toBe("deny");
    expect(verdict(resources, packet({ destinationPort: 81 }), subject)).toBe("allow");
  });

  test("many names of ports, beside networks and ports that combine with them", () => {
    const names = (beginning: string) => Array.from({ length: 40 }, (_, index) => `${beginning}${index}`);
    const nets = Array.from({ length: 8 }, (_, index) => `10.0.${index * 2}.0/24`);
    const rule = (destination: object) => ({
      action: "Allow",
      protocol: "TCP",
      source: { nets, ports: [4_000, ...names("client")] },
      destination: { nets, ...destination },
    });
    const ports = [{ name: "server39", protocol: "TCP", port: 80 }] as const;
    const subject = pod("subject", { ports: [...ports] });
    const decide = (destination: object, given = packet()) =>
      verdict(
        { ...BASE, endpoints: [subject], globalNetworkPolicies: [globalPolicy("x", { ingress: [rule(destination)] })] },
        given,
        subject,
      );

    expect(decide({ ports: names("server") })).toBe("allow");
    expect(decide({ ports: names("server") }, packet({ destinationPort: 81 }))).toBe("deny");
    expect(decide({ notPorts: names("server") })).toBe("deny");
    expect(decide({ notPorts: names("server") }, packet({ destinationPort: 81 }))).toBe("allow");
  });

  test("a named port of another protocol matches nothing", () => {
    const subject = pod("subject", { ports: [{ name: "web", protocol: "UDP", port: 80 }] });
    const resources = { ...allowing1({ protocol: "TCP", destination: { ports: ["web"] } }), endpoints: [subject] };
    expect(verdict(resources, packet(), subject)).toBe("deny");
  });
});

describe("names and selectors", () => {
  test("a selector whose value has a quote", () => {
    const peer = pod("peer", { address: "10.0.0.9", labels: { app: "it's" }, node: "there" });
    const resources = {
      ...BASE,
      endpoints: [SUBJECT, peer],
      globalNetworkPolicies: [
        globalPolicy("x", { ingress: [{ action: "Allow", source: { selector: `app == "it's"` } }] }),
      ],
    };
    expect(verdict(resources)).toBe("allow");
  });

  test("comments of a policy with a very long name are cut and keep the number of the rule", () => {
    const policy = globalPolicy("x".repeat(250), { ingress: [{ action: "Allow" }, { action: "Deny" }] });
    const { table } = compiled({ ...BASE, globalNetworkPolicies: [policy] });
    const comments = [...table.chains.values()].flatMap(({ rules }) => rules.flatMap(({ comment }) => comment ?? []));
    const own = comments.filter((comment) => comment.includes("xxx"));
    expect(own.map((comment) => comment.slice(-10))).toEqual([" ingress 0", " ingress 1"]);
    for (const comment of own) expect(comment.length).toBeLessThanOrEqual(128);
  });

  test("rules of policies whose long names differ at the beginning have different comments", () => {
    const policies = ["a", "b"].map((first) =>
      globalPolicy(`${first}${"x".repeat(200)}`, { ingress: [{ action: "Allow" }] }),
    );
    const { table } = compiled({ ...BASE, globalNetworkPolicies: policies });
    const comments = [...table.chains.values()].flatMap(({ rules }) => rules.flatMap(({ comment }) => comment ?? []));
    expect(new Set(comments.filter((comment) => comment.includes("xxx"))).size).toBe(2);
  });
});

describe("the profile of a network", () => {
  const { spec, ...container } = SUBJECT;
  const web = { ...container, spec: { ...spec, profiles: ["pods"] } };
  const written = profile.make({ name: "pods" }, networkProfileSpec("pods"));
  const edited = { ...written, metadata: { ...written.metadata, labels: { closed: "yes" } } };
  const typo = namespaced("typo", { selector: "rol == 'web'", types: ["Ingress"] });
  const resources = { ...BASE, endpoints: [web], profiles: [written], networkPolicies: [typo] };

  test("as ADD wrote it does not close a container that no policy selects, to the outside either", () => {
    expect(verdict(resources, packet(), web)).toBe("allow");
  });

  test("does not open a container that a policy selects", () => {
    const closed = namespaced("closed", { selector: "all()", types: ["Ingress"] });
    expect(verdict({ ...resources, networkPolicies: [closed] }, packet(), web)).toBe("deny");
  });

  test("counts as it is written once somebody has edited it, also if only a label is new", () => {
    const other = pod("other", { address: "10.0.0.9" });
    const peer = { ...other, spec: { ...other.spec, profiles: ["pods"] } };
    expect(verdict({ ...resources, profiles: [edited] }, packet(), web)).toBe("deny");
    expect(verdict({ ...resources, profiles: [edited], endpoints: [web, peer] }, packet(), web)).toBe("allow");
    const compiler = compiled(resources);
    compiler.update(changesBetween(resources, { ...resources, profiles: [edited] }));
    expect(interpreted(compiler, web)).toBe("deny");
  });
});

describe("changes", () => {
  const messages = (compiler: PolicyCompiler) =>
    tableBatches(TABLE, compiler.table, compiler.takeDelta())
      .map((batch) => encodeBatch(batch, 1).changeOfMessage.length)
      .reduce((sum, count) => sum + count, 0);

  test("new labels of a namespace with 1,000 pods are a few messages, as with ten", () => {
    const counted = [10, 1_000].map((count) => {
      const pods = Array.from({ length: count }, (_, index) =>
        pod(`p${index}`, { namespace: "blue", node: "there", address: `10.1.${index >> 8}.${index & 255}` }),
      );
      const rule = { action: "Allow", source: { namespaceSelector: "env == 'x'" } };
      const before = {
        ...BASE,
        endpoints: [SUBJECT, ...pods],
        globalNetworkPolicies: [globalPolicy("x", { selector: "all()", ingress: [rule] })],
      };
      const after = { ...before, profiles: [allowing("red"), allowing("blue", { "pcns.env": "x" })] };
      const compiler = compiled(before);
      compiler.takeDelta();
      compiler.update(changesBetween(before, after));
      return messages(compiler);
    });
    expect(counted).toEqual([1, 1]);
  });

  test("of two endpoints with one interface the first by key has it, then the other", () => {
    const first = pod("a", { interfaceName: "vend1", labels: { open: "yes" } });
    const second = pod("b", { interfaceName: "vend1" });
    const deny = globalPolicy("deny", { selector: "!has(open)", types: ["Ingress"] });
    const both = { ...BASE, endpoints: [second, first], globalNetworkPolicies: [deny] };
    const compiler = compiled(both);
    expect(interpreted(compiler, first)).toBe("allow");
    compiler.update(changesBetween(both, { ...both, endpoints: [second] }));
    expect(interpreted(compiler, first)).toBe("deny");
  });

  test("an endpoint that gets another interface leaves nothing of the old one", () => {
    const before = { ...BASE, endpoints: [pod("subject", { interfaceName: "vend1" })] };
    const after = { ...BASE, endpoints: [pod("subject", { interfaceName: "vend2" })] };
    const compiler = compiled(before);
    compiler.update(changesBetween(before, after));
    const [one, two] = ["vend1", "vend2"].map((interfaceName) =>
      interpreted(compiler, pod("subject", { interfaceName })),
    );
    expect([one, two]).toEqual(["deny", "allow"]);
  });
});
