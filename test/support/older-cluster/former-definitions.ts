/** The custom resource definitions of earlier releases: `crd.vendor.org/v1`, with everything below `spec` accepted. */
import type { ClusterObjects } from "../../../src/kube/objects.ts";
import { FORMER_AGENT_CONFIGURATION, FORMER_API } from "../../../src/upgrade/former-names.ts";
import { pollUntil } from "../poll.ts";

export interface FormerKind {
  readonly kind: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
  /** Names of policies have the prefix of their tier in the store. */
  readonly isPolicy: boolean;
  /** Whether the aggregated API served it as well: it did not serve records of IPAM. */
  readonly isServed: boolean;
}

export const FORMER_KINDS: readonly FormerKind[] = [
  ...["BGPConfiguration", "BGPFilter", "BGPPeer", "ClusterInformation", "GlobalNetworkSet", "HostEndpoint"].map(global),
  ...["IPPool", "IPReservation", "KubeControllersConfiguration", FORMER_AGENT_CONFIGURATION.kind].map(global),
  { ...global("BlockAffinity"), plural: "blockaffinities" },
  { ...global("GlobalNetworkPolicy"), plural: "globalnetworkpolicies", isPolicy: true },
  { ...global("NetworkPolicy"), plural: "networkpolicies", isPolicy: true, isNamespaced: true },
  { ...global("StagedGlobalNetworkPolicy"), plural: "stagedglobalnetworkpolicies", isPolicy: true },
  { ...global("StagedNetworkPolicy"), plural: "stagednetworkpolicies", isPolicy: true, isNamespaced: true },
  {
    ...global("StagedKubernetesNetworkPolicy"),
    plural: "stagedkubernetesnetworkpolicies",
    isNamespaced: true,
  },
  { ...global("NetworkSet"), isNamespaced: true },
  ...["IPAMBlock", "IPAMConfig", "IPAMHandle"].map((kind) => ({ ...global(kind), isServed: false })),
];

function global(kind: string): FormerKind {
  return { kind, plural: `${kind.toLowerCase()}s`, isNamespaced: false, isPolicy: false, isServed: true };
}

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** Creates them, and waits until they are served. */
export async function createFormerDefinitions(objects: ClusterObjects, kinds: readonly FormerKind[]): Promise<void> {
  await Promise.all(kinds.map((kind) => objects.create(DEFINITIONS, formerDefinition(kind))));
  await Promise.all(
    kinds.map(({ plural }) =>
      pollUntil(
        async () => (await objects.read(`/apis/${FORMER_API.group}/${FORMER_API.version}/${plural}`)) !== undefined,
        `the definition of ${plural}`,
      ),
    ),
  );
}

export function formerDefinition({ kind, plural, isNamespaced }: FormerKind): object {
  const { group, version } = FORMER_API;
  const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const schema = { openAPIV3Schema: { type: "object", properties: { spec: anything, status: anything } } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: isNamespaced ? "Namespaced" : "Cluster",
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      versions: [{ name: version, served: true, storage: true, schema }],
    },
  };
}
