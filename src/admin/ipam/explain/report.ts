/** What `ipam explain` says about a workload: the allocator's decision with today's facts, next to the addresses that it has. Pure. */
import type { NetworkConfig } from "../../../config/network-config.ts";
import { PluginError } from "../../../errors.ts";
import { type Address, type Family, formatAddress } from "../../../ip/address.ts";
import { prefixContains } from "../../../ip/prefix.ts";
import { addressRequestsOf } from "../../../ipam/address-requests.ts";
import { announcementOf } from "../../../ipam/announcement.ts";
import { type ExplainedRequest, explainList, explainRequest, type RequestSource } from "../../../ipam/explain-pools.ts";
import type { PodNamespace, Pool } from "../../../ipam/pools.ts";
import type { AddressList } from "../../../ipam/records.ts";
import { annotatedRequests } from "../../../plugin/annotated-requests.ts";
import {
  type AnnotatedPod,
  type AnnotationName,
  type AnnotationRequests,
  annotationRequests,
  writtenAnnotations,
} from "../../../plugin/annotations.ts";

/** An address of the workload, and where it is recorded. */
export interface FoundAddress {
  readonly address: Address;
  readonly interface?: string;
  /** Absent if IPAM has not assigned it to the workload. */
  readonly allocation?: {
    readonly block: string;
    /** The node that the block belongs to. */
    readonly blockOf?: string;
    readonly handle?: string;
    readonly since?: string;
  };
  /** The block that contains it, if it belongs to the node of the workload and IPAM has not assigned the address. */
  readonly insideBlock?: string;
}

export interface ExplainFacts {
  /** Absent: of a container, or of a pod whose annotations are unknown. */
  readonly pod?: AnnotatedPod;
  readonly config: Pick<NetworkConfig, "ipam" | "features">;
  /** For messages: `network config "/etc/cni/net.d/10-vendor.conflist"`. */
  readonly configName: string;
  readonly pools: readonly Pool[];
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The IPAddressList that the pod names; absent: there is none, or it does not name one. */
  readonly list?: AddressList;
  /** Of the pod; absent: a container without a pod. */
  readonly namespace?: PodNamespace;
  readonly addresses: readonly FoundAddress[];
  /** The floating IPs of the workload. */
  readonly floating: readonly Address[];
  /** As many as an ADD accepts. */
  readonly mostRecordedValues: number;
  /** Settings of the agent of the node. */
  readonly bgp: "Enabled" | "Disabled";
  readonly routing: "Enabled" | "Disabled";
}

export interface ExplainedAddress extends Omit<FoundAddress, "address"> {
  readonly address: string;
  readonly pool?: string;
  /** What does not match the decision with today's facts. */
  readonly difference?: string;
  /** Whether other hosts learn a route to it, if IPAM has not assigned it. */
  readonly routes?: string;
}

export interface ExplainedFloating {
  readonly address: string;
  readonly routes: string;
}

export interface ExplainedFamily extends ExplainedRequest {
  readonly addresses: readonly ExplainedAddress[];
}

export interface Explanation {
  readonly families: readonly ExplainedFamily[];
  readonly floating: readonly ExplainedFloating[];
  /** Why an ADD with these facts is refused; absent if it is not. */
  readonly problem?: string;
}

export function explainAddresses(facts: ExplainFacts): Explanation {
  const floating = facts.floating.map((address) => ({
    address: formatAddress(address),
    routes: routesTo({ address }, "floating", facts),
  }));
  try {
    return { families: decisionsOf(facts).map((decision) => withAddresses(decision, facts)), floating };
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    return { families: [], floating, problem: failure.message };
  }
}

function decisionsOf(facts: ExplainFacts): readonly ExplainedRequest[] {
  const { pod, config, pools, node, labels, namespace, configName, mostRecordedValues } = facts;
  const requests: AnnotationRequests =
    pod === undefined
      ? { pools: {} }
      : annotationRequests(pod, { features: config.features, ipamType: config.ipam.type, mostRecordedValues });
  if (requests.addressesWithoutIpam !== undefined) return withoutIpam(requests.addressesWithoutIpam.value, facts);
  return addressRequestsOf({ ipam: config.ipam, requested: [], annotated: annotatedRequests(requests) }).flatMap(
    (addressRequest) => {
      if (addressRequest.kind === "listed") return overriding(explainList(addressRequest, facts.list, facts), facts);
      const family = addressRequest.kind === "given" ? addressRequest.address.family : addressRequest.family;
      const sources = sourcesFor(family, facts);
      return explainRequest(addressRequest, {
        pools,
        sources,
        node,
        labels,
        namespace,
        configPlace: configPlace(family, configName),
      });
    },
  );
}

/** A list takes precedence over all other sources. */
function overriding(decisions: readonly ExplainedRequest[], facts: ExplainFacts): readonly ExplainedRequest[] {
  return decisions.map((decision) => {
    const sources = sourcesFor(decision.family, facts);
    return { ...decision, overridden: sources.filter(({ place }) => place !== decision.decidedBy.place) };
  });
}

function withoutIpam(addresses: readonly Address[], facts: ExplainFacts): readonly ExplainedRequest[] {
  return addresses.map(({ family }) => {
    const [decidedBy = { place: "", value: "" }, ...overridden] = sourcesFor(family, facts);
    return { family, decidedBy, overridden, pools: [] };
  });
}

/** Whatever asks for addresses or pools of the family, highest precedence first. */
function sourcesFor(family: Family, { pod, config: { ipam }, configName }: ExplainFacts): readonly RequestSource[] {
  const names: readonly AnnotationName[] = [
    "ipAddrsNoIpam",
    "ipAddrs",
    "ipAddrsFrom",
    family === 4 ? "ipv4pools" : "ipv6pools",
  ];
  const written = pod === undefined ? [] : names.flatMap((name) => writtenAnnotations(pod, name));
  const listed = (family === 4 ? ipam.ipv4Pools : ipam.ipv6Pools) ?? [];
  return [
    ...written.map(({ place, text }) => ({ place, value: text })),
    ...(listed.length === 0 ? [] : [{ place: configPlace(family, configName), value: JSON.stringify(listed) }]),
  ];
}

function configPlace(family: Family, configName: string): string {
  return `"ipam.ipv${family}_pools" of ${configName}`;
}

/** Blocks of a node are routed in every mode. */
function routesTo(
  { address, insideBlock }: Pick<FoundAddress, "address" | "insideBlock">,
  use: "without IPAM" | "floating",
  { pools, bgp, routing }: ExplainFacts,
): string {
  if (insideBlock !== undefined) return `in block ${insideBlock} of this node, which is routed`;
  const withoutRouting = routing === "Enabled" ? undefined : "routing is disabled in NodeAgentConfiguration";
  const withoutBgp = bgp === "Enabled" ? withoutRouting : "BGP is disabled in NodeAgentConfiguration";
  const { isAnnounced, text } = announcementOf(address, use, { pools, withoutBgp: () => withoutBgp, withoutRouting });
  return isAnnounced ? `${text} (by the settings; "node status" on the node says whether BGP runs)` : text;
}

function withAddresses(decision: ExplainedRequest, facts: ExplainFacts): ExplainedFamily {
  const { addresses, pools } = facts;
  const own = addresses.filter(({ address }) => address.family === decision.family);
  return {
    ...decision,
    addresses: own.map(({ address, insideBlock, ...found }) => {
      const pool = pools.find(({ cidr }) => prefixContains(cidr, address))?.name;
      const isExpected = decision.pools.some(({ name, passedOver }) => name === pool && passedOver === undefined);
      const hasDecision = decision.pools.length > 0;
      return {
        ...found,
        address: formatAddress(address),
        ...(pool === undefined ? {} : { pool }),
        ...(hasDecision && !isExpected ? { difference: DIFFERENCE } : {}),
        ...(found.allocation === undefined
          ? { routes: routesTo({ address, ...(insideBlock && { insideBlock }) }, "without IPAM", facts) }
          : {}),
      };
    }),
  };
}

const DIFFERENCE =
  "not from these pools: the runtime requested it, or annotations, network config, pools or node labels have changed since";
