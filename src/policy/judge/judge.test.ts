import { describe, expect, test } from "bun:test";
import { interpret } from "../../../test/support/interpret/interpret.ts";
import { packetBytes } from "../../../test/support/interpret/packet-bytes.ts";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { identity } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import { profile } from "../../model/profile.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { PolicyCompiler } from "../compile/compiler.ts";
import { judge } from "./judge.ts";
import type { Packet } from "./packet.ts";
import type { PolicyResources } from "./resources.ts";

const NAME = `${identity.interfacePrefix}0`;
const ENDPOINT = workloadEndpoint.make(
  { name: "here-k8s-pod-eth0", namespace: "red", labels: { [`${identity.labelPrefix}namespace`]: "red" } },
  { node: "here", pod: "pod", ipNetworks: ["10.0.0.1/32"], interfaceName: NAME, profiles: ["kns.red"] },
);
const ALLOW: PolicyRule = { action: "Allow" };
const PROFILE = profile.make({ name: "kns.red" }, { ingress: [ALLOW], egress: [ALLOW] });

function address(text: string) {
  return parseAddress(text) ?? fail(text);
}

function fail(text: string): never {
  throw new Error(text);
}

const OUT: Packet = { source: address("10.0.0.1"), destination: address("10.0.0.2"), protocol: 6, destinationPort: 80 };

/** What a policy with this rule in the direction means for a packet that the endpoint sends. */
function verdicts(direction: "ingress" | "egress", rule: PolicyRule) {
  const policy = networkPolicy.make({ name: "policy", namespace: "red" }, { tier: "default", [direction]: [rule] });
  const resources: PolicyResources = {
    ...NO_RESOURCES,
    endpoints: [ENDPOINT],
    profiles: [PROFILE],
    networkPolicies: [policy],
  };
  const compiler = new PolicyCompiler({ node: "here" });
  compiler.update(changesBetween(NO_RESOURCES, resources));
  const compiled = interpret(compiler.table, { hook: "forward", iifname: NAME, packet: packetBytes(OUT) }).verdict;
  return { judged: judge(OUT, ENDPOINT, "egress", resources).verdict, compiled };
}

describe("judge()", () => {
  test.each<readonly [string, PolicyRule]>([
    ["http of UDP", { action: "Allow", protocol: "UDP", http: {} }],
    ["http in a rule that denies", { action: "Deny", http: {} }],
    ["ports without a protocol", { action: "Allow", destination: { ports: [80] } }],
    ["an ICMP code without a type", { action: "Allow", protocol: "ICMP", icmp: { code: 1 } }],
  ])("a policy with %s denies both directions, as the compiled table does", (_, rule) => {
    expect(verdicts("egress", rule)).toEqual({ judged: "deny", compiled: "drop" });
    expect(verdicts("ingress", rule)).toEqual({ judged: "deny", compiled: "drop" });
  });

  test("a policy that can be carried out leaves the other direction alone", () => {
    expect(verdicts("ingress", { action: "Deny" })).toEqual({ judged: "allow", compiled: "accept" });
  });
});
