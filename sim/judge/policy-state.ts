/** What policy and routing follow from, decoded from the true records. */
import { NODE, POOL } from "../../src/model/kinds.ts";
import { type NodeAgentSettings, nodeAgentSettings } from "../../src/model/node-agent-configuration.ts";
import { POLICY_KINDS, type PolicyValues } from "../../src/policy/inputs.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";
import { routedNode } from "../../src/routing/routed-node.ts";
import { routedPool } from "../../src/routing/routed-pool.ts";
import type { RoutingFacts } from "./packets/promise.ts";
import type { Records } from "./records.ts";

export interface PolicyState {
  readonly resources: PolicyResources;
  readonly routing: RoutingFacts;
  readonly settingsOf: (node: string) => NodeAgentSettings;
}

export function policyStateOf(records: Records): PolicyState {
  const all = <Kind extends keyof PolicyValues>(kind: Kind): readonly PolicyValues[Kind][] => {
    const { prefix, decode } = POLICY_KINDS[kind];
    return records.under(prefix).flatMap((entry) => {
      const value = decode(entry);
      return value === undefined ? [] : [value];
    });
  };
  const configurations = all("configurations");
  const settingsOf = (node: string) => nodeAgentSettings(configurations, node);
  const nodes = records.under(NODE.prefix()).map(({ key, value }) => routedNode(NODE.codec.read(value, key)));
  return {
    resources: {
      endpoints: all("endpoints"),
      hostEndpoints: all("hostEndpoints"),
      profiles: all("profiles"),
      networkPolicies: all("networkPolicies"),
      globalNetworkPolicies: all("globalNetworkPolicies"),
      networkSets: all("networkSets"),
      globalNetworkSets: all("globalNetworkSets"),
      tiers: all("tiers"),
      ...(records.hasServices ? { serviceEndpoints: all("serviceEndpoints") } : {}),
    },
    routing: {
      nodes: new Map(nodes.map((node) => [node.name, node])),
      pools: records.under(POOL.prefix()).map(({ key, value }) => routedPool(POOL.codec.read(value, key))),
      settingsOf,
    },
    settingsOf,
  };
}
