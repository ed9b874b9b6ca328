/** Everything that policy depends on, from the datastore. */
import type { Datastore } from "../datastore/datastore.ts";
import { readAllEntries } from "../datastore/pages.ts";
import { type ReadEach, readEach, type Unreadable } from "../datastore/read-each.ts";
import { type GlobalNetworkPolicy, globalNetworkPolicy } from "../model/global-network-policy.ts";
import { parseKey } from "../model/keys.ts";
import { NODE } from "../model/kinds.ts";
import { type NetworkPolicy, networkPolicy } from "../model/network-policy.ts";
import type { Node } from "../model/node.ts";
import type { NodeAgentConfiguration } from "../model/node-agent-configuration.ts";
import type { Profile } from "../model/profile.ts";
import { DEFAULT_TIER } from "../model/tier.ts";
import { POLICY_KINDS, type PolicyValues } from "./inputs.ts";
import type { PolicyResources } from "./judge/resources.ts";

export interface ReadPolicy {
  readonly resources: PolicyResources;
  readonly nodes: readonly Node[];
  readonly configurations: readonly NodeAgentConfiguration[];
  readonly unreadable: readonly Unreadable[];
}

/** `withServices`: also if no rule needs them now. */
export async function readPolicy(
  store: Datastore,
  { withServices = false }: { readonly withServices?: boolean } = {},
): Promise<ReadPolicy> {
  const unreadable: Unreadable[] = [];
  const read = async <Kind extends keyof PolicyValues>(kind: Kind): Promise<ReadEach<PolicyValues[Kind]>> => {
    const { prefix, decode } = POLICY_KINDS[kind];
    const each = readEach(await readAllEntries(store, prefix), decode);
    unreadable.push(...each.unreadable);
    return each;
  };
  const [
    endpoints,
    containerLabels,
    hostEndpoints,
    profiles,
    networkSets,
    globalNetworkSets,
    tiers,
    configurations,
    nodes,
    ...policies
  ] = await Promise.all([
    read("endpoints"),
    read("containerLabels"),
    read("hostEndpoints"),
    read("profiles"),
    read("networkSets"),
    read("globalNetworkSets"),
    read("tiers"),
    read("configurations"),
    readNodes(store),
    read("networkPolicies"),
    read("globalNetworkPolicies"),
  ]);
  const [networkPolicies, globalNetworkPolicies] = policies;
  const specs = [...profiles.readable, ...networkPolicies.readable, ...globalNetworkPolicies.readable];
  // They are many, and only rules with services need them.
  const serviceEndpoints =
    withServices || specs.some(usesServices) ? async () => (await read("serviceEndpoints")).readable : () => [];
  const resources: PolicyResources = {
    endpoints: endpoints.readable,
    containerLabels: containerLabels.readable,
    hostEndpoints: hostEndpoints.readable,
    profiles: profiles.readable,
    networkSets: networkSets.readable,
    globalNetworkSets: globalNetworkSets.readable,
    tiers: tiers.readable,
    nodes: nodes.readable,
    ...(store.isOrchestratorApi ? { serviceEndpoints: await serviceEndpoints() } : {}),
    networkPolicies: [...networkPolicies.readable, ...networkPolicies.unreadable.map(closedPolicy)],
    globalNetworkPolicies: [
      ...globalNetworkPolicies.readable,
      ...globalNetworkPolicies.unreadable.map(closedGlobalPolicy),
    ],
  };
  return {
    ...{ resources, nodes: nodes.readable, configurations: configurations.readable },
    unreadable: [...unreadable, ...nodes.unreadable],
  };
}

async function readNodes(store: Datastore): Promise<ReadEach<Node>> {
  return readEach(await readAllEntries(store, NODE.prefix()), ({ key, value }) => NODE.codec.read(value, key));
}

export function usesServices({
  spec: { ingress = [], egress = [] },
}: Profile | NetworkPolicy | GlobalNetworkPolicy): boolean {
  return [...ingress, ...egress].some(({ source, destination }) => source?.services ?? destination?.services);
}

/** Whether there may be anything to enforce: without policies and host endpoints, no other record matters. */
export async function hasPolicies(store: Datastore): Promise<boolean> {
  for (const kind of ["networkPolicies", "globalNetworkPolicies", "hostEndpoints"] as const) {
    const { answers } = await store.read([{ kind: "prefix", prefix: POLICY_KINDS[kind].prefix, limit: 1 }]);
    if (answers.flat().length > 0) return true;
  }
  return false;
}

/** An unreadable policy denies everything that it could concern, before all others. */
const CLOSED = (): NetworkPolicy["spec"] => ({
  tier: DEFAULT_TIER,
  order: Number.NEGATIVE_INFINITY,
  types: ["Ingress", "Egress"],
  ingress: [{ action: "Deny" }],
  egress: [{ action: "Deny" }],
});

export function closedPolicy({ key }: Pick<Unreadable, "key">): NetworkPolicy {
  return networkPolicy.make(nameIn(key), CLOSED());
}

export function closedGlobalPolicy({ key }: Pick<Unreadable, "key">): GlobalNetworkPolicy {
  const own = { doNotTrack: false, preDNAT: false, applyOnForward: false };
  return globalNetworkPolicy.make(nameIn(key), { ...CLOSED(), ...own });
}

function nameIn(key: string): { readonly name: string; readonly namespace?: string } {
  const parts = parseKey(key);
  if (parts?.kind !== "resource") return { name: key };
  return { name: parts.name, ...(parts.namespace === undefined ? {} : { namespace: parts.namespace }) };
}
