/** Rules that match services: which elements they become, and what happens where services are not known. */
import { describe, expect, test } from "bun:test";
import { interpret } from "../../../test/support/interpret/interpret.ts";
import { packetBytes } from "../../../test/support/interpret/packet-bytes.ts";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { identity } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import type { ServiceEndpoints } from "../../model/service-endpoints.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import type { PolicyResources } from "../judge/resources.ts";
import { PolicyCompiler } from "./compiler.ts";

const slice = (addresses: readonly string[]): ServiceEndpoints => ({
  namespace: "red",
  service: "web",
  addresses: [...addresses],
  ports: [{ protocol: 6, port: 80 }],
});

function clusterWith(rule: PolicyRule, slices: readonly ServiceEndpoints[]): PolicyResources {
  const spec = { node: "here", interfaceName: INTERFACE, ipNetworks: ["10.0.0.1/32"] };
  return {
    ...NO_RESOURCES,
    endpoints: [workloadEndpoint.make({ name: "here-k8s-a-eth0", namespace: "red" }, spec)],
    globalNetworkPolicies: [
      globalNetworkPolicy.make(
        { name: "egress" },
        {
          tier: "default",
          doNotTrack: false,
          preDNAT: false,
          applyOnForward: false,
          egress: [rule, { action: "Allow" }],
        },
      ),
    ],
    serviceEndpoints: slices,
  };
}

const INTERFACE = `${identity.interfacePrefix}0`;

const DENY: PolicyRule = { action: "Deny", destination: { services: { namespace: "red", name: "web" } } };
const address = (text: string) => {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
};
const verdictOf = ({ table }: PolicyCompiler, to: string, port: number) =>
  interpret(table, {
    hook: "forward",
    iifname: INTERFACE,
    packet: packetBytes({
      source: address("10.0.0.1"),
      destination: address(to),
      protocol: 6,
      sourcePort: 1,
      destinationPort: port,
    }),
  }).verdict;

describe("a rule that matches a service", () => {
  test("matches the addresses and ports of all its slices", () => {
    const compiler = new PolicyCompiler({ node: "here", hasServices: true });
    const before = clusterWith(DENY, [slice(["10.0.0.2"]), slice(["10.0.0.3"])]);
    compiler.update(changesBetween(NO_RESOURCES, before));

    expect(["10.0.0.2", "10.0.0.3", "10.0.0.4"].map((to) => verdictOf(compiler, to, 80))).toEqual([
      "drop",
      "drop",
      "accept",
    ]);
    expect(verdictOf(compiler, "10.0.0.2", 81)).toBe("accept");
    compiler.update(changesBetween(before, clusterWith(DENY, [slice(["10.0.0.2"])])));
    expect(verdictOf(compiler, "10.0.0.3", 80)).toBe("accept");
  });

  test("costs one element for one endpoint more, however many there are", () => {
    const compiler = new PolicyCompiler({ node: "here", hasServices: true });
    const many = Array.from({ length: 200 }, (_, index) => `10.0.1.${index}`);
    const before = clusterWith(DENY, [slice(many)]);
    compiler.update(changesBetween(NO_RESOURCES, before));
    compiler.takeDelta();
    compiler.update(changesBetween(before, clusterWith(DENY, [slice([...many, "10.0.2.1"])])));

    const { chains, sets, elements } = compiler.takeDelta();
    expect([chains.size, sets.size]).toEqual([0, 0]);
    expect(Array.from(elements.values(), ({ added, removed }) => [added.length, removed.length])).toEqual([[1, 0]]);
  });

  test("makes its policy deny everything, and is reported, if the datastore does not contain services", () => {
    const compiler = new PolicyCompiler({ node: "here" });
    compiler.update(changesBetween(NO_RESOURCES, clusterWith(DENY, [])));

    expect(verdictOf(compiler, "10.0.0.4", 80)).toBe("drop");
    expect(compiler.problems).toEqual([
      {
        title: "egress",
        reason: 'the datastore does not contain services, such as "web"',
        effect: "denies more than it says",
      },
    ]);
  });
});
