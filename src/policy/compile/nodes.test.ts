/** Rules that select nodes, as those of ClusterNetworkPolicies do: the compiled table and the judge agree. */
import { describe, expect, test } from "bun:test";
import { interpret } from "../../../test/support/interpret/interpret.ts";
import { packetBytes } from "../../../test/support/interpret/packet-bytes.ts";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { identity } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { convertClusterPolicy } from "../../model/cluster-network-policy.ts";
import type { GlobalNetworkPolicy } from "../../model/global-network-policy.ts";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import { NODE } from "../../model/kinds.ts";
import { type Node, node } from "../../model/node.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { judge } from "../judge/judge.ts";
import type { PolicyResources } from "../judge/resources.ts";
import { PolicyCompiler } from "./compiler.ts";

const INTERFACE = `${identity.interfacePrefix}0`;
const POD = workloadEndpoint.make(
  { name: "here-k8s-a-eth0", namespace: "red", labels: { "vendor.org/orchestrator": "k8s", "pcno.disk": "ssd" } },
  { node: "here", interfaceName: INTERFACE, ipNetworks: ["10.0.0.1/32"] },
);
const nodeWith = (name: string, address: string, labels: Record<string, string> = {}): Node =>
  node.make({ name, labels }, { addresses: [{ address, type: "InternalIP" }], bgp: { ipv4Address: `${address}/24` } });
const ONE = nodeWith("one", "192.0.2.1", { disk: "ssd" });
const TWO = nodeWith("two", "192.0.2.2");

/** The last rule allows: what is denied is what the first one matches. */
function clusterWith(rule: PolicyRule, nodes: readonly Node[]): PolicyResources {
  const options = { tier: "default", doNotTrack: false, preDNAT: false, applyOnForward: false };
  const policy: GlobalNetworkPolicy = globalNetworkPolicy.make(
    { name: "egress" },
    { ...options, egress: [rule, { action: "Allow" }] },
  );
  return { ...NO_RESOURCES, endpoints: [POD], globalNetworkPolicies: [policy], nodes };
}

function compiled(resources: PolicyResources, nodes: readonly Node[]): PolicyCompiler {
  const compiler = new PolicyCompiler({ node: "here" });
  const changes = nodes.map((value) => ({
    ...{ kind: "put" as const, key: NODE.key(value.metadata), value, previous: undefined },
  }));
  compiler.update({ ...changesBetween(NO_RESOURCES, resources), nodes: changes });
  return compiler;
}

function verdicts(compiler: PolicyCompiler, resources: PolicyResources, to: string): readonly string[] {
  const [source, destination] = ["10.0.0.1", to].map((text) => {
    const parsed = parseAddress(text);
    if (parsed === undefined) throw new Error(text);
    return parsed;
  });
  if (source === undefined || destination === undefined) throw new Error("no address");
  const packet = { source, destination, protocol: 6, sourcePort: 1, destinationPort: 80 };
  const { verdict } = interpret(compiler.table, { hook: "forward", iifname: INTERFACE, packet: packetBytes(packet) });
  return [verdict, judge(packet, POD, "egress", resources).verdict];
}

const DENIED = ["drop", "deny"];
const ALLOWED = ["accept", "allow"];

const peer = (nodes: object): PolicyRule => {
  const spec = {
    tier: "Admin",
    priority: 1,
    subject: { namespaces: {} },
    egress: [{ action: "Deny", to: [{ nodes }] }],
  };
  const [rule] = convertClusterPolicy({ metadata: { name: "a" }, spec }).spec.egress ?? [];
  if (rule === undefined) throw new Error("no rule");
  return rule;
};

describe("a rule that selects nodes", () => {
  test.each([
    [{}, [DENIED, DENIED]],
    [{ matchLabels: { disk: "ssd" } }, [DENIED, ALLOWED]],
    [{ matchExpressions: [{ key: "disk", operator: "DoesNotExist" }] }, [ALLOWED, DENIED]],
  ])("matches the addresses of those with %j, and of no pod", (selector, expected) => {
    const resources = clusterWith(peer(selector), [ONE, TWO]);
    const compiler = compiled(resources, [ONE, TWO]);

    expect(["192.0.2.1", "192.0.2.2"].map((to) => verdicts(compiler, resources, to))).toEqual(expected);
    expect(["10.0.0.1", "192.0.2.3"].map((to) => verdicts(compiler, resources, to))).toEqual([ALLOWED, ALLOWED]);
  });

  test("matches their external addresses too", () => {
    const addresses = ["192.0.2.1", "198.51.100.1"].map((address, index) => ({
      ...{ address, type: index === 0 ? "InternalIP" : "ExternalIP" },
    }));
    const both = node.make({ name: "one" }, { addresses });
    const resources = clusterWith(peer({}), [both]);

    expect(verdicts(compiled(resources, [both]), resources, "198.51.100.1")).toEqual(DENIED);
  });

  test("follows their labels and addresses, by elements alone", () => {
    const rule = peer({ matchLabels: { disk: "ssd" } });
    const compiler = compiled(clusterWith(rule, [ONE]), [ONE]);
    compiler.takeDelta();
    const moved = nodeWith("one", "192.0.2.9", { disk: "ssd" });
    const none = changesBetween(NO_RESOURCES, NO_RESOURCES);
    const key = NODE.key(ONE.metadata);
    compiler.update({ ...none, nodes: [{ kind: "put", key, value: moved, previous: ONE }] });

    const { chains, sets, elements } = compiler.takeDelta();
    expect([chains.size, sets.size, elements.size]).toEqual([0, 0, 1]);
    expect(verdicts(compiler, clusterWith(rule, [moved]), "192.0.2.9")).toEqual(DENIED);
    compiler.update({ ...none, nodes: [{ kind: "delete", key, previous: moved }] });
    expect(verdicts(compiler, clusterWith(rule, []), "192.0.2.9")).toEqual(ALLOWED);
  });
});

test.each(["all()", "! has(app)", "disk != 'hdd'"])(
  "a selector that does not ask for nodes selects none: %s",
  (selector) => {
    const resources = clusterWith({ action: "Deny", destination: { selector } }, [ONE]);

    expect(verdicts(compiled(resources, [ONE]), resources, "192.0.2.1")).toEqual(ALLOWED);
  },
);
