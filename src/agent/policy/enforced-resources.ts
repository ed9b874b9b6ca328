/**
 * What the kernel of this node enforces, as the judge reads it: the resources of the last update that it has acknowledged, and of
 * policies that wait for their turn what they were before.
 */
import type { Update } from "../../datastore/replica.ts";
import { formatAddress } from "../../ip/address.ts";
import { parseKey } from "../../model/keys.ts";
import type { NetworkPolicy } from "../../model/network-policy.ts";
import type { Node } from "../../model/node.ts";
import type { NodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { nodeAddresses } from "../../model/node-members.ts";
import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { PolicyCompiler } from "../../policy/compile/compiler.ts";
import { addressesOfEndpoint } from "../../policy/compile/entity.ts";
import type { HostInterface } from "../../policy/host-interface.ts";
import type { PolicyUpdate, PolicyValues } from "../../policy/inputs.ts";
import { type JudgingNode, OpenConnectionJudge } from "../../policy/judge/open-connections.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import { closedGlobalPolicy, closedPolicy } from "../../policy/read-resources.ts";
import { SIDECARS } from "../../policy/render/base-chains.ts";
import { type AffectedConnections, selectsNodes } from "./affected-connections.ts";

type Snapshot = PolicyUpdate["snapshot"];

export interface EnforcedOptions {
  readonly node: string;
  readonly hasServices: boolean;
  readonly snapshot: Snapshot;
  readonly compiler: Pick<PolicyCompiler, "closedPolicies" | "localEndpoints" | "settings" | "table">;
  /** By key: what the kernel has of policies that wait. */
  readonly former: ReadonlyMap<string, NetworkPolicy | undefined>;
  readonly interfaces: () => readonly HostInterface[];
  readonly interfaceTowards: JudgingNode["interfaceTowards"];
}

/** Endpoints that are looked at before other work of the agent comes first. */
const AT_ONCE = 2_000;

/** Kinds whose unreadable records stay in force as they were, which nobody knows. So do nodes, if rules select them. */
const KEPT_UNREADABLE = [
  ...(["containerLabels", "hostEndpoints", "profiles", "networkSets"] as const),
  ...(["globalNetworkSets", "tiers", "configurations", "serviceEndpoints"] as const),
] as const satisfies readonly (keyof PolicyValues)[];

export class EnforcedResources {
  readonly policies: Omit<PolicyResources, "endpoints">;
  private readonly workloads: ReadonlyMap<string, WorkloadEndpoint>;
  private readonly namespaces: ReadonlyMap<string, string>;
  private readonly hasHostEndpoints: boolean;
  private readonly settings: NodeAgentSettings;
  private readonly closed: boolean;
  private readonly areNodesSelected: boolean;

  /** `undefined` if some of it is not known. */
  static read(options: EnforcedOptions): EnforcedResources | undefined {
    const { snapshot } = options;
    if (KEPT_UNREADABLE.some((kind) => snapshot[kind].unreadable.length > 0)) return undefined;
    const enforced = new EnforcedResources(options);
    return enforced.areNodesSelected && (snapshot.nodes?.unreadable.length ?? 0) > 0 ? undefined : enforced;
  }

  private constructor(private readonly options: EnforcedOptions) {
    const { node, compiler } = options;
    this.settings = compiler.settings;
    this.workloads = new Map(Array.from(compiler.localEndpoints, ([key, local]) => [key, asEnforced(local, compiler)]));
    this.namespaces = new Map(
      this.workloads.values().flatMap((endpoint) => {
        const { namespace = "" } = endpoint.metadata;
        return addressesOfEndpoint(endpoint).map((address) => [formatAddress(address), namespace] as const);
      }),
    );
    this.policies = policiesIn(options, new Set(this.namespaces.values()));
    this.hasHostEndpoints = this.policies.hostEndpoints.some(({ spec }) => spec.node === node);
    const { networkPolicies, globalNetworkPolicies } = this.policies;
    this.areNodesSelected = [...networkPolicies, ...globalNetworkPolicies].some(selectsNodes);
    this.closed = compiler.closedPolicies.length > 0;
  }

  /** Whether a connection is judged here, and one of these: by the texts of the addresses of its source and of who answers. */
  isConcernedBy({ all, namespaces, addresses }: AffectedConnections): (source: string, answering: string) => boolean {
    return (source, answering) => {
      const [from, to] = [this.namespaces.get(source), this.namespaces.get(answering)];
      if (from === undefined && to === undefined && !this.hasHostEndpoints) return false;
      if (all || addresses.has(source) || addresses.has(answering)) return true;
      return (from !== undefined && namespaces.has(from)) || (to !== undefined && namespaces.has(to));
    };
  }

  /** Of connections between these addresses. */
  async judgeOf(addresses: ReadonlySet<string>, pause: () => Promise<void>): Promise<OpenConnectionJudge> {
    const { node, interfaces, interfaceTowards, snapshot } = this.options;
    const endpoints: WorkloadEndpoint[] = [];
    let count = 0;
    for (const [, endpoint] of snapshot.endpoints) {
      count += 1;
      if (count % AT_ONCE === 0) await pause();
      // Limits of policies depend on how many addresses there are, so that they need all.
      if (this.closed || addressesOfEndpoint(endpoint).some((address) => addresses.has(formatAddress(address))))
        endpoints.push(endpoint);
    }
    const hasAddress = (each: Node) => nodeAddresses(each).some((address) => addresses.has(formatAddress(address)));
    const nodes = this.areNodesSelected ? Array.from(snapshot.nodes ?? [], ([, each]) => each).filter(hasAddress) : [];
    const here = { name: node, settings: this.settings, workloads: this.workloads.values() };
    return new OpenConnectionJudge(
      { ...this.policies, endpoints, nodes },
      { ...here, interfaces: interfaces(), interfaceTowards },
    );
  }
}

/** Whether a sidecar decides about requests is what the kernel's set says, of which its annotation is a copy. */
function asEnforced(
  { endpoint, interfaceName }: { readonly endpoint: WorkloadEndpoint; readonly interfaceName: string },
  { table }: EnforcedOptions["compiler"],
): WorkloadEndpoint {
  const { [SIDECAR_ANNOTATION]: release, ...annotations } = endpoint.metadata.annotations ?? {};
  const isReporting = table.sets.get(SIDECARS)?.elements.has(interfaceName) === true;
  if (isReporting === (release !== undefined)) return endpoint;
  const own = isReporting ? { ...annotations, [SIDECAR_ANNOTATION]: "" } : annotations;
  return { ...endpoint, metadata: { ...endpoint.metadata, annotations: own } };
}

/** `namespaces`: of the workloads of this node, to which no other NetworkPolicy applies. */
function policiesIn(
  { snapshot, former, hasServices }: EnforcedOptions,
  namespaces: ReadonlySet<string>,
): EnforcedResources["policies"] {
  const kinds: Update<PolicyValues>["snapshot"] = snapshot;
  const values = <Kind extends keyof PolicyValues>(kind: Kind) => Array.from(kinds[kind], ([, value]) => value);
  const isHere = (key: string) => {
    const parts = parseKey(key);
    return parts?.kind !== "resource" || parts.namespace === undefined || namespaces.has(parts.namespace);
  };
  const isCurrent = (key: string) => isHere(key) && !former.has(key);
  return {
    containerLabels: values("containerLabels"),
    hostEndpoints: values("hostEndpoints"),
    profiles: values("profiles"),
    networkSets: values("networkSets"),
    globalNetworkSets: values("globalNetworkSets"),
    tiers: values("tiers"),
    ...(hasServices ? { serviceEndpoints: values("serviceEndpoints") } : {}),
    networkPolicies: [
      ...Array.from(snapshot.networkPolicies).flatMap(([key, value]) => (isCurrent(key) ? [value] : [])),
      ...Array.from(former).flatMap(([key, value]) => (value !== undefined && isHere(key) ? [value] : [])),
      ...snapshot.networkPolicies.unreadable.filter(({ key }) => isCurrent(key)).map(closedPolicy),
    ],
    globalNetworkPolicies: [
      ...values("globalNetworkPolicies"),
      ...snapshot.globalNetworkPolicies.unreadable.map(closedGlobalPolicy),
    ],
  };
}
