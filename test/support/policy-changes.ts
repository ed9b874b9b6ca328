/** What a compiler of policies is told if its resources change from one list to another. */
import type { RecordChange } from "../../src/datastore/replica/subscription.ts";
import {
  CONTAINER_LABELS,
  ENDPOINT,
  GLOBAL_NETWORK_POLICY,
  GLOBAL_NETWORK_SET,
  HOST_ENDPOINT,
  NETWORK_POLICY,
  NETWORK_SET,
  NODE_AGENT_CONFIGURATION,
  PROFILE,
  type PublicKind,
  TIER,
} from "../../src/model/kinds.ts";
import type { NodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import type { Resource } from "../../src/model/resource.ts";
import { type ServiceEndpoints, serviceEndpointsKey } from "../../src/model/service-endpoints.ts";
import { SIDECAR_ANNOTATION } from "../../src/model/sidecar-annotation.ts";
import type { PolicyChanges } from "../../src/policy/inputs.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";

export const NO_RESOURCES: PolicyResources = {
  endpoints: [],
  containerLabels: [],
  hostEndpoints: [],
  profiles: [],
  networkPolicies: [],
  globalNetworkPolicies: [],
  networkSets: [],
  globalNetworkSets: [],
  tiers: [],
};

/** Every node's configuration is set, or left as it is. */
export function changesBetween(
  before: PolicyResources,
  after: PolicyResources,
  configuration?: NodeAgentConfiguration,
): PolicyChanges {
  const configurations = configuration === undefined ? [] : [configuration];
  return {
    endpoints: changesOf(ENDPOINT, before.endpoints, after.endpoints),
    containerLabels: changesOf(CONTAINER_LABELS, before.containerLabels, after.containerLabels),
    hostEndpoints: changesOf(HOST_ENDPOINT, before.hostEndpoints, after.hostEndpoints),
    profiles: changesOf(PROFILE, before.profiles, after.profiles),
    networkPolicies: changesOf(NETWORK_POLICY, before.networkPolicies, after.networkPolicies),
    globalNetworkPolicies: changesOf(GLOBAL_NETWORK_POLICY, before.globalNetworkPolicies, after.globalNetworkPolicies),
    networkSets: changesOf(NETWORK_SET, before.networkSets, after.networkSets),
    globalNetworkSets: changesOf(GLOBAL_NETWORK_SET, before.globalNetworkSets, after.globalNetworkSets),
    tiers: changesOf(TIER, before.tiers, after.tiers),
    configurations: changesOf(NODE_AGENT_CONFIGURATION, [], configurations),
    serviceEndpoints: serviceChanges(before.serviceEndpoints ?? [], after.serviceEndpoints ?? []),
  };
}

/** The endpoints whose sidecar reports, as their annotations say. */
export function sidecarsOf({ endpoints }: PolicyResources): { readonly endpoints: ReadonlySet<string> } {
  const reporting = endpoints.filter((endpoint) => endpoint.metadata.annotations?.[SIDECAR_ANNOTATION] !== undefined);
  return { endpoints: new Set(byKey(ENDPOINT, reporting).keys()) };
}

/** Each is one slice: they have no names here, so their places are their keys. */
function serviceChanges(
  before: readonly ServiceEndpoints[],
  after: readonly ServiceEndpoints[],
): readonly RecordChange<ServiceEndpoints>[] {
  const key = (index: number) => serviceEndpointsKey({ namespace: "red", name: `slice${index}` });
  const put = after.flatMap((value, index) =>
    Bun.deepEquals(before[index], value)
      ? []
      : [{ kind: "put" as const, key: key(index), value, previous: before[index] }],
  );
  const gone = before.slice(after.length);
  return [
    ...put,
    ...gone.map((previous, index) => ({ kind: "delete" as const, key: key(after.length + index), previous })),
  ];
}

function changesOf<R extends Resource>(
  kind: PublicKind<R>,
  before: readonly R[],
  after: readonly R[],
): readonly RecordChange<R>[] {
  const old = byKey(kind, before);
  const now = byKey(kind, after);
  return [
    ...Array.from(old).flatMap(([key, previous]) => (now.has(key) ? [] : [{ kind: "delete" as const, key, previous }])),
    ...Array.from(now).flatMap(([key, value]) => {
      const previous = old.get(key);
      return Bun.deepEquals(previous, value) ? [] : [{ kind: "put" as const, key, value, previous }];
    }),
  ];
}

function byKey<R extends Resource>(kind: PublicKind<R>, resources: readonly R[]): ReadonlyMap<string, R> {
  return new Map(
    resources.map((resource) => {
      const { name, namespace } = resource.metadata;
      return [kind.key(namespace === undefined ? { name } : { name, namespace }), resource];
    }),
  );
}
