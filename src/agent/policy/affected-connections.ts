/**
 * Which open connections a change of resources can concern: those that are judged by it, as far as that can be said without
 * judging. Pure.
 *
 *   NetworkPolicy                        workloads of its namespace
 *   endpoint: labels, ports, addresses   its addresses
 *   new endpoint                         its addresses, if a rule can deny because of who has one
 *   endpoints of a Service, nodes        all, if a rule names a Service, or selects nodes
 *   endpoint that is gone                none: GoneAddresses forgets its connections
 *   any other resource                   all
 */
import { formatAddress } from "../../ip/address.ts";
import { parseKey } from "../../model/keys.ts";
import { concernsNodes, nodeAddresses, nodeLabels } from "../../model/node-members.ts";
import type { EntityRule, PolicyRule } from "../../model/policy-rule.ts";
import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { addressesOfEndpoint } from "../../policy/compile/entity.ts";
import type { PolicyChanges } from "../../policy/inputs.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import { usesServices } from "../../policy/read-resources.ts";

export interface AffectedConnections {
  readonly all: boolean;
  readonly namespaces: ReadonlySet<string>;
  /** As text. */
  readonly addresses: ReadonlySet<string>;
  readonly newAddresses: ReadonlySet<string>;
  readonly services: boolean;
  readonly nodes: boolean;
}

const NONE: ReadonlySet<string> = new Set();
export const NO_CONNECTIONS: AffectedConnections = {
  ...{ all: false, namespaces: NONE, addresses: NONE, newAddresses: NONE, services: false, nodes: false },
};
export const ALL_CONNECTIONS: AffectedConnections = { ...NO_CONNECTIONS, all: true };

export function affectedBy(changes: PolicyChanges): AffectedConnections {
  if (CONCERN_ALL.some((kind) => changes[kind].length > 0)) return ALL_CONNECTIONS;
  const namespaces = changes.networkPolicies.map(({ key }) => namespaceIn(key));
  if (namespaces.includes(undefined)) return ALL_CONNECTIONS;
  const [addresses, newAddresses] = [new Set<string>(), new Set<string>()];
  for (const change of changes.endpoints) {
    if (change.kind !== "put") continue;
    const { previous, value } = change;
    if (previous !== undefined && isJudgedAlike(previous, value)) continue;
    const those = previous === undefined ? newAddresses : addresses;
    for (const each of [previous ?? value, value]) {
      for (const address of addressesOfEndpoint(each)) those.add(formatAddress(address));
    }
  }
  return {
    ...{ all: false, namespaces: new Set(namespaces.filter((each) => each !== undefined)) },
    ...{ addresses, newAddresses, services: changes.serviceEndpoints.length > 0 },
    nodes: (changes.nodes ?? []).some((change) => !isSameNode(change)),
  };
}

const CONCERN_ALL = [
  ...(["containerLabels", "hostEndpoints", "profiles", "globalNetworkPolicies"] as const),
  ...(["networkSets", "globalNetworkSets", "tiers", "configurations"] as const),
] as const;

export function isNone({ all, namespaces, addresses, newAddresses, services, nodes }: AffectedConnections): boolean {
  return !all && !services && !nodes && namespaces.size + addresses.size + newAddresses.size === 0;
}

export function bothOf(one: AffectedConnections, other: AffectedConnections): AffectedConnections {
  if (one.all || other.all) return ALL_CONNECTIONS;
  return {
    all: false,
    namespaces: one.namespaces.union(other.namespaces),
    addresses: one.addresses.union(other.addresses),
    newAddresses: one.newAddresses.union(other.newAddresses),
    services: one.services || other.services,
    nodes: one.nodes || other.nodes,
  };
}

/** With what only matters to some rules, if there are such. */
export function underPolicies(affected: AffectedConnections, policies: RulesOfPolicies): AffectedConnections {
  const { all, namespaces, addresses, newAddresses, services, nodes } = affected;
  const every = () => [...policies.profiles, ...policies.networkPolicies, ...policies.globalNetworkPolicies];
  if (all || (services && every().some(usesServices)) || (nodes && every().some(selectsNodes))) return ALL_CONNECTIONS;
  const areNewJudged =
    newAddresses.size > 0 &&
    every().some(({ spec: { ingress = [], egress = [] } }) => [...ingress, ...egress].some(canDenyKnown));
  return {
    ...NO_CONNECTIONS,
    namespaces,
    addresses: areNewJudged ? addresses.union(newAddresses) : addresses,
  };
}

/**
 * Also those that were denied and may be allowed by now: whatever allows may select a new endpoint. `policies`: those by which they
 * were denied.
 */
export function judgedAnew(affected: AffectedConnections, policies: RulesOfPolicies): AffectedConnections {
  const { addresses, newAddresses } = affected;
  return underPolicies({ ...affected, addresses: addresses.union(newAddresses) }, policies);
}

/** Whether a rule of it does. */
export function selectsNodes({ spec: { ingress = [], egress = [] } }: RulesOfPolicies[keyof RulesOfPolicies][number]) {
  const entities = [...ingress, ...egress].flatMap(({ source, destination }) => [source, destination]);
  return entities.some((entity) => concernsNodes(entity?.selector ?? "") || concernsNodes(entity?.notSelector ?? ""));
}

type RulesOfPolicies = Pick<PolicyResources, "profiles" | "networkPolicies" | "globalNetworkPolicies">;

/** A rule that matches a known address is not passed, or one that matches unknown ones is. */
function canDenyKnown({ action, source = {}, destination = {} }: PolicyRule): boolean {
  const entities = [source, destination];
  const hasNot = entities.some(({ notSelector }) => isGiven(notSelector));
  return hasNot || (action !== "Allow" && action !== "Log" && entities.some(selectsPeers));
}

function selectsPeers({ selector, namespaceSelector, serviceAccounts, ports, notPorts }: EntityRule): boolean {
  const named = [...(ports ?? []), ...(notPorts ?? [])].some((port) => typeof port === "string" && !/^\d/.test(port));
  return isGiven(selector) || isGiven(namespaceSelector) || serviceAccounts !== undefined || named;
}

function isGiven(text: string | undefined): boolean {
  return text !== undefined && text.trim() !== "";
}

function isSameNode(change: NonNullable<PolicyChanges["nodes"]>[number]): boolean {
  if (change.kind !== "put" || change.previous === undefined) return false;
  const judged = (node: typeof change.value) => [nodeLabels(node), nodeAddresses(node)];
  return Bun.deepEquals(judged(change.previous), judged(change.value));
}

function isJudgedAlike(before: WorkloadEndpoint, after: WorkloadEndpoint): boolean {
  const judged = ({ metadata, spec, status }: WorkloadEndpoint) => ({
    ...{ labels: metadata.labels, sidecar: metadata.annotations?.[SIDECAR_ANNOTATION], spec, status },
  });
  return Bun.deepEquals(judged(before), judged(after));
}

function namespaceIn(key: string): string | undefined {
  const parts = parseKey(key);
  return parts?.kind === "resource" ? parts.namespace : undefined;
}
