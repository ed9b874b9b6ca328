/**
 * The kinds that are custom resources, and what their schemas do not say:
 * columns of `kubectl get`, rules about several fields, texts of the internal
 * kinds. A new kind without a row here has no CRD, and a test says so.
 */

import { identity } from "../../identity.ts";
import { INTERNAL_KINDS, type InternalKind, PUBLIC_KINDS, type PublicKind } from "../../model/kinds.ts";
import { FIELDS_WITHOUT_EFFECT } from "../../model/without-effect.ts";
import { descriptionOf } from "../descriptions/descriptions.ts";
import { BGP_CONFIGURATION_RULES, BGP_FILTER_RULES, BGP_PEER_RULES } from "./bgp-rules.ts";
import type { CelRule } from "./crd-schema.ts";
import type { Column } from "./definition.ts";
import { INTERNAL_DESCRIPTIONS } from "./internal-descriptions.ts";
import {
  HOST_ENDPOINT_RULES,
  HOST_OPTION_RULES,
  NODE_AGENT_NAME_RULES,
  NODE_AGENT_RULES,
  POLICY_NAME_RULES,
  RESERVED_NAME_RULES,
  rulesOfPolicy,
  TIER_RULES,
} from "./policy-rules.ts";
import { POOL_CIDR_RULES, POOL_SPEC_RULES } from "./pool-rules.ts";

interface CustomResourceRow {
  readonly columns: readonly Column[];
  /** By the path of the field: `spec.cidr`, or "" for the whole object. */
  readonly rules?: Readonly<Record<string, readonly CelRule[]>>;
  /** The product writes a status. */
  readonly statusIsWritten?: true;
}

export interface CustomResource extends CustomResourceRow {
  readonly row: PublicKind | InternalKind;
  readonly describe: (path: string) => string | undefined;
}

/** Objects of the orchestrator that stand for a kind, which therefore has no CRD. Labels of pods are those of the pods themselves. */
export const ORCHESTRATOR_OBJECTS: Readonly<Record<string, string>> = {
  Node: "Node",
  Profile: "Namespace and ServiceAccount",
  WorkloadEndpoint: "Pod",
  ContainerLabels: "Pod",
};

const FIXED: CelRule = { rule: "self == oldSelf", message: "cannot be changed: it identifies the record" };

const POLICY_COLUMNS: readonly Column[] = [
  { name: "Tier", path: ".spec.tier" },
  { name: "Order", path: ".spec.order", type: "number" },
  { name: "Selector", path: ".spec.selector" },
  { name: "Types", path: ".spec.types", isWide: true },
];

const ROWS: Readonly<Record<string, CustomResourceRow>> = {
  IPPool: {
    columns: [
      { name: "CIDR", path: ".spec.cidr" },
      { name: "Block Size", path: ".spec.blockSize", type: "integer", isWide: true },
      { name: "NAT", path: ".spec.natOutgoing", type: "boolean", isWide: true },
      { name: "IPIP", path: ".spec.ipipMode", isWide: true },
      { name: "VXLAN", path: ".spec.vxlanMode", isWide: true },
      { name: "Uses", path: ".spec.allowedUses", isWide: true },
      { name: "Disabled", path: ".spec.disabled", type: "boolean" },
      { name: "Selector", path: ".spec.nodeSelector" },
    ],
    rules: { spec: POOL_SPEC_RULES, "spec.cidr": POOL_CIDR_RULES },
  },
  IPReservation: { columns: [{ name: "Reserved", path: ".spec.reservedCIDRs" }] },
  IPAMConfiguration: {
    columns: [
      { name: "Strict Affinity", path: ".spec.strictAffinity", type: "boolean" },
      { name: "Auto Allocate", path: ".spec.autoAllocateBlocks", type: "boolean" },
      { name: "Max Blocks Per Host", path: ".spec.maxBlocksPerHost", type: "integer" },
    ],
  },
  ClusterInformation: {
    columns: [
      { name: "Cluster GUID", path: ".spec.clusterGUID" },
      { name: "Type", path: ".spec.clusterType" },
      { name: "Version", path: `.spec.${identity.product}Version` },
      { name: "Ready", path: ".spec.datastoreReady", type: "boolean" },
    ],
  },
  NetworkPolicy: {
    columns: POLICY_COLUMNS,
    rules: { "": [...POLICY_NAME_RULES, ...RESERVED_NAME_RULES], ...rulesOfPolicy("namespaced") },
  },
  GlobalNetworkPolicy: {
    columns: POLICY_COLUMNS,
    rules: { "": POLICY_NAME_RULES, spec: HOST_OPTION_RULES, ...rulesOfPolicy("global") },
  },
  NetworkSet: { columns: [{ name: "Nets", path: ".spec.nets" }] },
  GlobalNetworkSet: { columns: [{ name: "Nets", path: ".spec.nets" }] },
  Tier: {
    columns: [
      { name: "Order", path: ".spec.order", type: "number" },
      { name: "Default Action", path: ".spec.defaultAction" },
    ],
    rules: { "": TIER_RULES },
  },
  HostEndpoint: {
    columns: [
      { name: "Node", path: ".spec.node" },
      { name: "Interface", path: ".spec.interfaceName" },
      { name: "Addresses", path: ".spec.expectedIPs" },
      { name: "Profiles", path: ".spec.profiles", isWide: true },
    ],
    rules: { spec: HOST_ENDPOINT_RULES },
  },
  NodeAgentConfiguration: {
    columns: [
      { name: "Endpoint To Host", path: ".spec.defaultEndpointToHostAction" },
      { name: "Metrics", path: ".spec.prometheusMetricsEnabled", type: "boolean" },
    ],
    rules: { "": [...NODE_AGENT_NAME_RULES, ...NODE_AGENT_RULES] },
  },
  KubeControllersConfiguration: {
    columns: [{ name: "Auto Host Endpoints", path: ".spec.controllers.node.hostEndpoint.autoCreate" }],
    statusIsWritten: true,
  },
  BGPConfiguration: {
    columns: [
      { name: "Mesh", path: ".spec.nodeToNodeMeshEnabled", type: "boolean" },
      { name: "AS Number", path: ".spec.asNumber" },
    ],
    rules: BGP_CONFIGURATION_RULES,
  },
  BGPPeer: {
    columns: [
      { name: "Peer", path: ".spec.peerIP" },
      { name: "Peer Nodes", path: ".spec.peerSelector" },
      { name: "AS Number", path: ".spec.asNumber" },
      { name: "Node", path: ".spec.node" },
      { name: "Nodes", path: ".spec.nodeSelector" },
      { name: "Filters", path: ".spec.filters", isWide: true },
    ],
    rules: BGP_PEER_RULES,
  },
  BGPFilter: { columns: [], rules: BGP_FILTER_RULES },
  IPAMBlock: {
    columns: [
      { name: "CIDR", path: ".spec.cidr" },
      { name: "Affinity", path: ".spec.affinity" },
    ],
    rules: { "spec.cidr": [FIXED] },
  },
  BlockAffinity: {
    columns: [
      { name: "Node", path: ".spec.node" },
      { name: "CIDR", path: ".spec.cidr" },
      { name: "State", path: ".spec.state" },
    ],
    rules: { "spec.node": [FIXED], "spec.cidr": [FIXED] },
  },
  IPAMHandle: {
    columns: [{ name: "Handle", path: ".spec.handleID" }],
    rules: { "spec.handleID": [FIXED] },
  },
};

export const CUSTOM_RESOURCES: readonly CustomResource[] = [...PUBLIC_KINDS, ...INTERNAL_KINDS].flatMap((row) => {
  const own = ROWS[row.kind];
  return own === undefined ? [] : [{ ...own, row, describe: (path: string) => description(row.kind, path) }];
});

/** Says also that a field has no effect yet: `kubectl apply` cannot warn about it. */
function description(kind: string, path: string): string | undefined {
  const text = INTERNAL_DESCRIPTIONS[kind]?.[path] ?? descriptionOf(kind, path);
  const row = FIELDS_WITHOUT_EFFECT.find((each) => each.kind === kind && `spec.${each.field}` === path);
  return row === undefined ? text : `${text}. No effect in this version: ${row.consequence}`;
}
