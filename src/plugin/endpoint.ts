/**
 * The records of an attachment: its workload endpoint, and the profile that the
 * endpoints of a network share. Pure: compares stored and wanted records and
 * returns the changes to commit.
 */
import type { Change, Entry } from "../datastore/datastore.ts";
import { PluginError } from "../errors.ts";
import { API_VERSION } from "../identity.ts";
import { type Address, addressBits, formatAddress } from "../ip/address.ts";
import { formatMac } from "../ip/mac.ts";
import { formatPrefix, type Prefix } from "../ip/prefix.ts";
import {
  endpointLabels,
  MAC_ANNOTATION,
  NETWORK_ANNOTATION,
  WITHOUT_IPAM_ANNOTATION,
} from "../model/endpoint-labels.ts";
import { resourceKey } from "../model/keys.ts";
import type { Metadata } from "../model/metadata.ts";
import { networkProfileSpec } from "../model/network-profile.ts";
import type { PodEndpoint } from "../model/pod-endpoint.ts";
import type { Profile } from "../model/profile.ts";
import type { WorkloadEndpoint, WorkloadEndpointSpec } from "../model/workload-endpoint.ts";
import type { Annotated } from "./annotations.ts";
import type { PodFacts } from "./pod-facts.ts";
import { readStoredEndpoint } from "./stored-endpoint.ts";
import type { Workload } from "./workload.ts";

/** What an endpoint is made of. */
export interface EndpointSources {
  readonly workload: Workload;
  readonly podFacts: PodFacts;
  readonly addresses: readonly Address[];
  /** Those of the network config, for workloads that are not known to the orchestrator's API. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** UID and creation time of a new record. */
export interface RecordStamp {
  readonly uid: () => string;
  readonly now: () => Date;
}

export function profileKey(network: string): string {
  return resourceKey("profiles", { name: network });
}

/**
 * An equal record must still be there when the addresses are: a search for leaks, or for endpoints that were left, may be about
 * to remove it. `whenEqual`: that of a pod of the orchestrator is not removed by such a search, and a write would change the
 * pod; any other is written again, so that who has judged the former revision cannot delete it. The record of an earlier sandbox of the pod is updated. A repeated ADD of a container whose labels are not those of
 * a pod keeps them: they may have been changed since its first ADD.
 */
export function endpointChanges(
  {
    wanted,
    labels,
    whenEqual,
  }: {
    readonly wanted: WorkloadEndpoint;
    readonly labels: "of the pod" | "of the config";
    readonly whenEqual: "expect" | "write";
  },
  key: string,
  held: Entry | undefined,
): readonly Change[] {
  if (held === undefined) return [{ kind: "create", key, value: JSON.stringify(wanted) }];
  const before = readStoredEndpoint(held);
  const { uid, creationTimestamp } = before;
  const isRepeated = labels === "of the config" && before.containerId === wanted.spec.containerID;
  const metadata: Metadata = {
    ...wanted.metadata,
    ...(isRepeated ? { labels: endpointLabels(before.labels ?? {}, placeOf(wanted)) } : {}),
    ...(uid === undefined ? {} : { uid }),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
  };
  const after = { ...wanted, metadata };
  if (whenEqual === "expect" && Bun.deepEquals(after, before.whole)) {
    return [{ kind: "expect", key, revision: held.revision }];
  }
  return [{ kind: "update", key, value: JSON.stringify(after), revision: held.revision }];
}

function placeOf({ metadata, spec }: WorkloadEndpoint): Parameters<typeof endpointLabels>[1] {
  return { namespace: metadata.namespace ?? "", orchestrator: spec.orchestrator ?? "" };
}

/** Created by the first attachment of a network and not changed later: operators may edit it. */
export function profileChanges(workload: Workload, held: Entry | undefined, stamp: RecordStamp): readonly Change[] {
  if (held !== undefined) return [];
  const { network, orchestrator } = workload;
  const spec = networkProfileSpec(network);
  const profile: Profile = {
    apiVersion: API_VERSION,
    kind: "Profile",
    metadata: { name: network, ...stamped(stamp) },
    spec: orchestrator === "k8s" ? { ...spec, ingress: [{ action: "Allow" }] } : spec,
  };
  return [{ kind: "create", key: profileKey(network), value: JSON.stringify(profile) }];
}

export function endpointOf(sources: EndpointSources, stamp: RecordStamp): WorkloadEndpoint {
  const { workload, podFacts, addresses, labels = {} } = sources;
  const { namespace, orchestrator, network } = workload;
  const { requests, endpoint: ofPod } = podFacts;
  const nats = natsOf(requests.floatingAddresses, addresses);
  const prefixes = sourcePrefixesOf(requests.sourcePrefixes, addresses);
  const withoutIpam = requests.addressesWithoutIpam?.value.map(formatAddress);
  return {
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: {
      name: workload.endpointName,
      namespace,
      ...stamped(stamp),
      labels: endpointLabels(labels, { namespace, orchestrator }),
      ...ofPod?.metadata,
      annotations: {
        [NETWORK_ANNOTATION]: network,
        ...(requests.mac === undefined ? {} : { [MAC_ANNOTATION]: formatMac(requests.mac.value) }),
        ...(withoutIpam === undefined ? {} : { [WITHOUT_IPAM_ANNOTATION]: JSON.stringify(withoutIpam) }),
      },
    },
    spec: {
      orchestrator,
      ...(workload.containerName === undefined ? {} : { workload: workload.containerName }),
      node: workload.node,
      containerID: workload.containerId,
      ...(workload.pod === undefined ? {} : { pod: workload.pod }),
      endpoint: workload.ifname,
      ipNetworks: addresses.map((address) => `${formatAddress(address)}/${addressBits(address.family)}`),
      ...(nats.length === 0 ? {} : { ipNATs: [...nats] }),
      ...(ofPod === undefined ? { profiles: [network] } : specOfPod(ofPod)),
      interfaceName: workload.hostInterface,
      mac: formatMac(workload.mac),
      ...(prefixes.length === 0 ? {} : { allowSpoofedSourcePrefixes: [...prefixes] }),
    },
  };
}

function specOfPod({ spec }: PodEndpoint): Pick<WorkloadEndpointSpec, "serviceAccountName" | "profiles" | "ports"> {
  const { profiles, ports, ...more } = spec;
  return { ...more, profiles: [...profiles], ...(ports === undefined ? {} : { ports: [...ports] }) };
}

/** Each floating IP stands for the pod's address of the same family. */
export function natsOf(
  floating: Annotated<readonly Address[]> | undefined,
  addresses: readonly Address[],
): readonly { readonly internalIP: string; readonly externalIP: string }[] {
  return (floating?.value ?? []).map((external) => {
    const internal = addresses.find(({ family }) => family === external.family);
    if (internal !== undefined) return { internalIP: formatAddress(internal), externalIP: formatAddress(external) };
    throw new PluginError(
      "annotation-invalid",
      `Cannot use ${floating?.place}: "${formatAddress(external)}": the pod has no IPv${external.family} address`,
    );
  });
}

/** A prefix of a family of which the pod has no address could not be used, and is refused. */
export function sourcePrefixesOf(
  annotated: Annotated<readonly Prefix[]> | undefined,
  addresses: readonly Address[],
): readonly string[] {
  return (annotated?.value ?? []).map((prefix) => {
    const { family } = prefix.network;
    if (addresses.some((address) => address.family === family)) return formatPrefix(prefix);
    throw new PluginError(
      "annotation-invalid",
      `Cannot use ${annotated?.place}: "${formatPrefix(prefix)}": the pod has no IPv${family} address`,
    );
  });
}

function stamped({ uid, now }: RecordStamp): Pick<Metadata, "uid" | "creationTimestamp"> {
  return { uid: uid(), creationTimestamp: now().toISOString() };
}
