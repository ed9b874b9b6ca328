/** What `status` shows of one host without Kubernetes: its containers and what policies say about them. Pure. */
import type { NetworkConfig } from "../../config/network-config.ts";
import type { Unreadable } from "../../datastore/read-each.ts";
import { NETWORK_ANNOTATION } from "../../model/endpoint-labels.ts";
import { isFinished } from "../../model/finished-pods.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { enforcedPoliciesOf, missingProfiles } from "../../policy/judge/judge.ts";
import type { AnyEndpoint, AnyPolicy, PolicyResources } from "../../policy/judge/resources.ts";
import type { AgentState } from "../host/facts.ts";
import type { Finding as IpamFinding } from "../ipam/check/check-once.ts";
import type { Finding as NodeFinding } from "../node/finding.ts";
import { titleOf } from "../policy/explain/peer.ts";
import { type NodeLinks, unknownInterfaceText } from "../resources/name-notes.ts";
import { referenceText } from "../resources/reference.ts";
import type { DatastoreState } from "./facts.ts";

export interface ContainerState {
  /** `default/web` */
  readonly name: string;
  readonly network: string;
  readonly addresses: readonly string[];
  readonly interfaceName: string;
  /** Those that select it. */
  readonly policies: readonly string[];
  /** It has no interface on this host any more. */
  readonly isGone: boolean;
}

export interface PolicyState {
  /** `networkpolicy/default/db` */
  readonly name: string;
  readonly tier: string;
  /** Those of this host that it selects. */
  readonly containers: readonly string[];
  readonly hostEndpoints: readonly string[];
}

/** A profile that endpoints of this host name and that does not exist. */
export interface MissingProfile {
  readonly name: string;
  readonly endpoints: readonly string[];
}

export interface HostEndpointState {
  readonly name: string;
  /** Its name, `*`, or the expected addresses. */
  readonly interface: string;
  readonly profiles: readonly string[];
  /** Those that select it. */
  readonly policies: readonly string[];
  /** What is wrong with its interface, in words. */
  readonly problem?: string;
}

/** There is no network config on this host, or it cannot be used. */
export interface NoNetwork {
  readonly problem: string;
  readonly remedy?: string;
}

export interface HostStatusFacts {
  readonly toolVersion: string;
  readonly hostName: string;
  readonly node: string;
  /** `undefined`: it could not be asked. */
  readonly agent: AgentState | undefined;
  /** `skipped`: why other files of its directory cannot be used. */
  readonly network:
    | { readonly file: string; readonly config: NetworkConfig; readonly skipped: readonly string[] }
    | NoNetwork;
  /** `place`: its file or its endpoints. */
  readonly datastore: DatastoreState & { readonly place: string };
  /** Why a container would get no address, in the words of the plugin. */
  readonly poolRefusals: readonly string[];
  readonly containers: readonly ContainerState[];
  readonly hostEndpoints: readonly HostEndpointState[];
  readonly policies: readonly PolicyState[];
  readonly missingProfiles: readonly MissingProfile[];
  /** Those of the check of a node; `problem`: why it could not be checked. */
  readonly nodeCheck: readonly NodeFinding[] | { readonly problem: string };
  /** Those of `ipam check`. */
  readonly ipam: readonly Pick<IpamFinding, "severity" | "message">[];
  readonly unreadable: readonly Unreadable[];
  /** What the node agent cannot carry out, in its own words. */
  readonly agentProblems: readonly string[];
}

export function containerStates(
  resources: PolicyResources,
  node: string,
  gone: ReadonlySet<WorkloadEndpoint>,
): readonly ContainerState[] {
  return resources.endpoints
    .filter((endpoint) => endpoint.spec.node === node && !isFinished(endpoint))
    .map((endpoint) => ({
      name: titleOf(endpoint),
      network: endpoint.metadata.annotations?.[NETWORK_ANNOTATION] ?? endpoint.spec.profiles?.[0] ?? "",
      addresses: (endpoint.spec.ipNetworks ?? []).map((text) => text.replace(/\/\d+$/, "")),
      interfaceName: endpoint.spec.interfaceName ?? "",
      policies: policyNames(endpoint, resources),
      isGone: gone.has(endpoint),
    }));
}

export function policyStates(resources: PolicyResources, node: string): readonly PolicyState[] {
  const selecting = (endpoints: readonly AnyEndpoint[]) =>
    endpoints
      .filter(({ spec }) => spec.node === node)
      .map((endpoint) => ({ endpoint, policies: policyNames(endpoint, resources) }));
  const workloads = selecting(resources.endpoints.filter((endpoint) => !isFinished(endpoint)));
  const hosts = selecting(resources.hostEndpoints);
  return [...resources.networkPolicies, ...resources.globalNetworkPolicies].map((policy) => {
    const name = policyName(policy);
    const selected = (all: typeof workloads) => all.filter(({ policies }) => policies.includes(name));
    return {
      name,
      tier: policy.spec.tier,
      containers: selected(workloads).map(({ endpoint }) =>
        endpoint.kind === "WorkloadEndpoint" ? titleOf(endpoint) : endpoint.metadata.name,
      ),
      hostEndpoints: selected(hosts).map(({ endpoint }) => endpoint.metadata.name),
    };
  });
}

export function profilesMissing(resources: PolicyResources, node: string): readonly MissingProfile[] {
  const all = [...resources.endpoints.filter((endpoint) => !isFinished(endpoint)), ...resources.hostEndpoints]
    .filter(({ spec }) => spec.node === node)
    .flatMap((endpoint) => missingProfiles(endpoint, resources).map((name) => ({ name, endpoint })));
  return Array.from(
    Map.groupBy(all, ({ name }) => name),
    ([name, users]) => ({ name, endpoints: [...new Set(users.map(({ endpoint }) => endpointName(endpoint)))] }),
  );
}

function endpointName(endpoint: AnyEndpoint): string {
  return endpoint.kind === "WorkloadEndpoint" ? titleOf(endpoint) : `host endpoint ${endpoint.metadata.name}`;
}

export function hostEndpointStates(
  resources: PolicyResources,
  node: string,
  links: NodeLinks | undefined,
): readonly HostEndpointState[] {
  return resources.hostEndpoints
    .filter(({ spec }) => spec.node === node)
    .map((endpoint) => {
      const { interfaceName, expectedIPs = [], profiles = [] } = endpoint.spec;
      const problem = unknownInterfaceText(endpoint, links);
      return {
        name: endpoint.metadata.name,
        interface: interfaceName ?? expectedIPs.join(","),
        ...{ profiles, policies: policyNames(endpoint, resources) },
        ...(problem === undefined ? {} : { problem }),
      };
    });
}

function policyNames(endpoint: AnyEndpoint, resources: PolicyResources): readonly string[] {
  return [...new Set(enforcedPoliciesOf(endpoint, resources).map(policyName))];
}

function policyName(policy: AnyPolicy): string {
  return referenceText(policy, policy.metadata);
}
