/**
 * What the orchestrator's API says about the pod of an ADD. Pod and namespace are
 * read once, at the same time, and while the kernel is queried. Only ADD reads
 * them: DEL removes what is recorded, and needs no API.
 */
import type { KubeAccess } from "../config/kube-access.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import { orchestratorNodeNames } from "../config/node-name.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import type { Family } from "../ip/address.ts";
import {
  annotationsOfNamespace,
  labelsOfNamespace,
  namespaceWarning,
  readPodAndNamespace,
  uidOfNamespace,
} from "../kube/pod.ts";
import { type PodEndpoint, podEndpointOf, textOf, textsIn } from "../model/pod-endpoint.ts";
import { ownerOfPod, ownerText, type PodOwner } from "../model/pod-owner.ts";
import { mostRecordedValues } from "../model/recorded-annotations.ts";
import { type AnnotatedPod, type AnnotationRequests, annotationRequests, uselessAnnotations } from "./annotations.ts";
import { neverComesAgain } from "./kept-identity.ts";
import { requireSamePod, type WantedPod } from "./pod-identity.ts";
import type { Session } from "./session.ts";

/** The pod of a call. */
export interface PodOfCall {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string | undefined;
}

export interface PodFacts {
  readonly requests: AnnotationRequests;
  /** What made the pod; absent if nothing did, or if that is not known. */
  readonly owner?: PodOwner;
  /** The API made its name, which is another one each time. */
  readonly hasGeneratedName?: true;
  /** Labels of the pod's namespace; absent: not known. */
  readonly namespaceLabels?: Readonly<Record<string, string>>;
  /** Of the pod's namespace; absent: not known. */
  readonly namespaceUid?: string;
  /** What the pod's endpoint gets from it, if the policy of the orchestrator is used. */
  readonly endpoint?: PodEndpoint;
  /** The pod as the API returned it: on the orchestrator's datastore it is the endpoint too, and need not be read again. */
  readonly pod?: string;
}

export async function readPodFacts(pod: PodOfCall, access: KubeAccess, session: Session): Promise<PodFacts> {
  const { config, settings, surroundings, log } = session;
  const { environment = {}, now, elapsed, host } = surroundings;
  const warn = (message: string) => log.warning(message);
  const client = await host.openKubeClient(access, { environment, now, elapsed, warn });
  const [found, namespace] = await readPodAndNamespace(pod, client, session.signal).finally(() => client.close());
  const annotations = textsIn(found?.metadata ?? {}, "annotations");
  requireSamePod(found && { uid: textOf(found.metadata, "uid"), node: textOf(found.spec, "nodeName"), annotations }, {
    ...pod,
    ...(await nodeNames(session)),
  });
  if (found === undefined || namespace === undefined) throw withoutNamespace(pod);
  const annotated: AnnotatedPod = {
    namespace: pod.namespace,
    name: pod.name,
    annotations,
    namespaceAnnotations: annotationsOfNamespace(namespace),
  };
  const withoutNamespaces = namespaceWarning(namespace);
  if (withoutNamespaces !== undefined) log.warning(withoutNamespaces);
  for (const message of uselessAnnotations(annotated)) log.warning(message);
  const requests = annotationRequests(annotated, {
    features: config.features,
    ipamType: config.ipam.type,
    mostRecordedValues: mostRecordedValues(settings.kind),
  });
  for (const message of unusedPools(requests, config.ipam)) log.warning(message);
  const owner = ownerOfPod(found.metadata);
  for (const message of unkept(requests, owner)) log.warning(message);
  const namespaceLabels = labelsOfNamespace(namespace);
  const namespaceUid = uidOfNamespace(namespace);
  return {
    requests,
    ...(namespaceLabels === undefined ? {} : { namespaceLabels }),
    ...(namespaceUid === undefined ? {} : { namespaceUid }),
    ...(owner === undefined ? {} : { owner }),
    ...(textOf(found.metadata, "generateName") === undefined ? {} : { hasGeneratedName: true }),
    pod: found.text,
    ...(config.policyType === undefined ? {} : { endpoint: podEndpointOf(found) }),
  };
}

/** If the orchestrator's API is the datastore, our node is the orchestrator's. */
async function nodeNames({
  config,
  node,
  settings,
  surroundings,
}: Session): Promise<Pick<WantedPod, "nodes" | "nodeField">> {
  if (settings.kind === "orchestrator") return { nodes: [node], nodeField: "nodename" };
  const nodes = await orchestratorNodeNames(config, node, () => surroundings.hostName());
  return { nodes, nodeField: "kubernetes.node_name" };
}

function withoutNamespace({ namespace, name }: PodOfCall): PluginError {
  const state = "its namespace no longer exists in the Kubernetes API";
  return new PluginError("container-unknown", `Cannot attach pod "${namespace}/${name}": ${state}`);
}

function unusedPools({ pools, families }: AnnotationRequests, ipam: NetworkConfig["ipam"]): readonly string[] {
  const isAssigned = (family: Family) =>
    families === undefined ? (family === 4 ? ipam.assignIpv4 : ipam.assignIpv6) : families.value.includes(family);
  const reason = (family: Family) =>
    families === undefined ? `the network assigns no IPv${family} addresses` : `${families.place} has no IPv${family}`;
  return ([4, 6] as const).flatMap((family) => {
    const place = pools[family]?.place;
    return place === undefined || isAssigned(family) ? [] : `${place} has no effect: ${reason(family)}`;
  });
}

/** A namespace with the annotation may have pods of all kinds: only the pod's own is an error of its author. */
function unkept(
  { keepAddresses, addressesWithoutIpam }: AnnotationRequests,
  owner: PodOwner | undefined,
): readonly string[] {
  if (keepAddresses?.on !== "pod" || !keepAddresses.value) return [];
  if (addressesWithoutIpam !== undefined) {
    return [`${keepAddresses.place} has no effect: ${addressesWithoutIpam.place} by-passes IPAM`];
  }
  if (owner === undefined || !neverComesAgain(owner)) return [];
  const remedy = "for fixed addresses of such pods, list them in an IPAddressList and name it in ";
  return [
    `${keepAddresses.place} has no effect: it is a pod of ${ownerText(owner)}, and its name never comes again; ${remedy}"${identity.annotationPrefix}ipAddrsFrom"`,
  ];
}
