/** What policy and routing follow from, decoded from the true records: each once, and all the same until one changes. */
import { NODE, POOL } from "../../src/model/kinds.ts";
import { type NodeAgentSettings, nodeAgentSettings } from "../../src/model/node-agent-configuration.ts";
import { POLICY_KINDS, type PolicyValues } from "../../src/policy/inputs.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";
import { routedNode } from "../../src/routing/routed-node.ts";
import { routedPool } from "../../src/routing/routed-pool.ts";
import type { RoutingFacts } from "./packets/promise.ts";
import { type Records, unchangedWhileSame } from "./records.ts";

export interface PolicyState {
  readonly resources: PolicyResources;
  readonly routing: RoutingFacts;
  readonly settingsOf: (node: string) => NodeAgentSettings;
}

export function policyStateOf(records: Records): PolicyState {
  return policyReader()(records);
}

/** Returns the present state of these records: the same object again while nothing of it changes. */
export function policyReader(): (records: Records) => PolicyState {
  const reading = <Kind extends keyof PolicyValues>(kind: Kind) =>
    unchangedWhileSame([POLICY_KINDS[kind].prefix], POLICY_KINDS[kind].decode);
  const read = {
    endpoints: reading("endpoints"),
    containerLabels: reading("containerLabels"),
    hostEndpoints: reading("hostEndpoints"),
    profiles: reading("profiles"),
    networkPolicies: reading("networkPolicies"),
    globalNetworkPolicies: reading("globalNetworkPolicies"),
    networkSets: reading("networkSets"),
    globalNetworkSets: reading("globalNetworkSets"),
    tiers: reading("tiers"),
  };
  const readServices = reading("serviceEndpoints");
  const readConfigurations = reading("configurations");
  const readNodes = unchangedWhileSame([NODE.prefix()], ({ key, value }) => routedNode(NODE.codec.read(value, key)));
  const readPools = unchangedWhileSame([POOL.prefix()], ({ key, value }) => routedPool(POOL.codec.read(value, key)));
  let seen: string | undefined;
  let before: readonly unknown[] = [];
  let last: PolicyState | undefined;
  return (records) => {
    if (last !== undefined && seen === records.revision) return last;
    seen = records.revision;
    const resources: PolicyResources = {
      endpoints: read.endpoints(records),
      containerLabels: read.containerLabels(records),
      hostEndpoints: read.hostEndpoints(records),
      profiles: read.profiles(records),
      networkPolicies: read.networkPolicies(records),
      globalNetworkPolicies: read.globalNetworkPolicies(records),
      networkSets: read.networkSets(records),
      globalNetworkSets: read.globalNetworkSets(records),
      tiers: read.tiers(records),
      ...(records.hasServices ? { serviceEndpoints: readServices(records) } : {}),
    };
    const [configurations, nodes, pools] = [readConfigurations(records), readNodes(records), readPools(records)];
    const now = [...Object.values(resources), configurations, nodes, pools];
    if (last !== undefined && now.every((each, index) => each === before[index])) return last;
    before = now;
    const settingsOf = (node: string) => nodeAgentSettings(configurations, node);
    const routing = { nodes: new Map(nodes.map((node) => [node.name, node])), pools, settingsOf };
    last = { resources, routing, settingsOf };
    return last;
  };
}
