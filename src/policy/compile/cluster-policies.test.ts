/** Among which policies ClusterNetworkPolicies are evaluated: the compiled table and the judge agree. */
import { expect, test } from "bun:test";
import { interpret } from "../../../test/support/interpret/interpret.ts";
import { packetBytes } from "../../../test/support/interpret/packet-bytes.ts";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { identity } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { convertClusterPolicy } from "../../model/cluster-network-policy.ts";
import { endpointLabels } from "../../model/endpoint-labels.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import { profile } from "../../model/profile.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { judge } from "../judge/judge.ts";
import type { PolicyResources } from "../judge/resources.ts";
import { PolicyCompiler } from "./compiler.ts";

const INTERFACE = `${identity.interfacePrefix}0`;
const POD = workloadEndpoint.make(
  { name: "here-k8s-a-eth0", namespace: "red", labels: endpointLabels({}, { namespace: "red", orchestrator: "k8s" }) },
  { node: "here", interfaceName: INTERFACE, ipNetworks: ["10.0.0.1/32"], profiles: ["kns.red"] },
);
const EVERYTHING = [{ action: "Allow" as const }];
const NAMESPACE = profile.make({ name: "kns.red" }, { ingress: EVERYTHING, egress: EVERYTHING });

/** `Admin 1 Deny`, `default Allow`: all are about the packet, unless an address of another follows. */
function policyOf(text: string, index: number) {
  const [tier = "", second = "", action = "", network = "192.0.2.0/24"] = text.split(" ");
  if (tier === "default") {
    const egress = second === "Allow" ? EVERYTHING : [];
    return networkPolicy.make({ name: "own", namespace: "red" }, { tier, types: ["Egress"], egress });
  }
  const egress = [{ action, to: [{ networks: [network] }] }];
  const spec = { tier, priority: Number(second), subject: { namespaces: {} }, egress };
  return convertClusterPolicy({ metadata: { name: "abc".charAt(index) }, spec });
}

test.each([
  [[], "allow"],
  [["Admin 1 Deny 198.51.100.0/24"], "allow"],
  [["Admin 1 Deny", "default Allow"], "deny"],
  [["Admin 1 Accept", "default Deny"], "allow"],
  [["Admin 1 Pass", "default Deny"], "deny"],
  [["Admin 1 Pass", "default Allow", "Baseline 1 Deny"], "allow"],
  [["Admin 1 Pass", "Admin 2 Deny"], "allow"],
  [["Admin 1 Pass", "Admin 2 Accept", "Baseline 0 Deny"], "deny"],
  [["Admin 2 Deny", "Admin 1 Accept"], "allow"],
  [["Admin 1 Deny", "Admin 1 Accept"], "deny"],
  [["Admin 1 Accept", "Admin 1 Deny"], "allow"],
  [["Baseline 0 Deny", "Admin 1000 Accept"], "allow"],
  [["Baseline 1 Deny"], "deny"],
  [["Baseline 1 Accept", "default Deny"], "deny"],
  [["Baseline 1 Pass", "Baseline 2 Deny"], "allow"],
])("%j: %s", (texts, expected) => {
  const policies = texts.map(policyOf);
  const resources: PolicyResources = {
    ...{ ...NO_RESOURCES, endpoints: [POD], profiles: [NAMESPACE] },
    networkPolicies: policies.flatMap((policy) => (policy.kind === "NetworkPolicy" ? [policy] : [])),
    globalNetworkPolicies: policies.flatMap((policy) => (policy.kind === "GlobalNetworkPolicy" ? [policy] : [])),
  };
  const compiler = new PolicyCompiler({ node: "here" });
  compiler.update(changesBetween(NO_RESOURCES, resources));
  const [source, destination] = [parseAddress("10.0.0.1"), parseAddress("192.0.2.1")];
  if (source === undefined || destination === undefined) throw new Error("no address");
  const packet = { source, destination, protocol: 6, sourcePort: 1, destinationPort: 80 };
  const { verdict } = interpret(compiler.table, { hook: "forward", iifname: INTERFACE, packet: packetBytes(packet) });

  expect(judge(packet, POD, "egress", resources).verdict as string).toBe(expected);
  // Without any policy there are no rules.
  expect(verdict).toBe(expected === "deny" ? "drop" : "accept");
});
