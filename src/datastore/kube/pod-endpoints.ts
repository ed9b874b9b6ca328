/**
 * The workload endpoint of a pod is the pod itself: what the plugin recorded is
 * in annotations, everything else in the pod.
 *
 *   record   a patch of pods/status sets the annotations
 *   remove   blanks the addresses; the pod and its other annotations stay
 *
 * Users of the pod can write the annotations too. So the endpoint also has what the kubelet reports, and who acts on
 * addresses believes no annotation alone (model/claimed-endpoint.ts). Values that cannot be read are left out and named:
 * they concern this pod only.
 *
 * A pod without these annotations was connected by another plugin. It is an
 * endpoint with the addresses that its kubelet reports, so that rules can select it,
 * and without an interface: the agent of its node finds it in the kernel.
 *
 * A patch tests the UID and the container that was recorded last, not the
 * version of the pod: the kubelet writes the status of the pod all the time.
 */
import { counted } from "../../counted.ts";
import { PluginError } from "../../errors.ts";
import { API_VERSION } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { parsePrefixOrAddress } from "../../ip/prefix.ts";
import { REPORTED_ANNOTATION } from "../../model/claimed-endpoint.ts";
import { MAC_ANNOTATION, NETWORK_ANNOTATION, WITHOUT_IPAM_ANNOTATION } from "../../model/endpoint-labels.ts";
import { isFinishedPhase } from "../../model/finished-pods.ts";
import { hostInterfaceName } from "../../model/host-interface-name.ts";
import { parseKey, resourceKey, resourcesPrefix } from "../../model/keys.ts";
import { POD_IP, POD_IPS, recordedAddresses, reportedAddresses, singleNetwork } from "../../model/pod-addresses.ts";
import { partOf, podEndpointOf } from "../../model/pod-endpoint.ts";
import { OWNER_ANNOTATION, ownerOfPod, ownerText } from "../../model/pod-owner.ts";
import { MOST_RECORDED_VALUES, recordedAnnotation } from "../../model/recorded-annotations.ts";
import { isObject } from "../../model/shape.ts";
import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import { parseStored } from "../../model/stored.ts";
import { parseWorkloadEndpointName, workloadEndpointName } from "../../model/workload-endpoint-name.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";
import type { ApiObject } from "./api.ts";
import { type Operation, patchOf } from "./json-patch.ts";
import type { Collection, Existing, KindMapping, Writing } from "./kind-mapping.ts";
import { isObjectName } from "./object-names.ts";

const CONTAINER_ID = recordedAnnotation("containerID");
/** Which network the addresses belong to: GC of another one leaves them alone. */
const NETWORK = recordedAnnotation("network");

/** The floating IPs that an ADD accepted, as a JSON array: the annotation that requests them may be changed later. */
const IP_NATS = recordedAnnotation("ipNATs");
/** In the same way, the sources that it allowed beside the pod's addresses. */
const SOURCE_PREFIXES = recordedAnnotation("allowSpoofedSourcePrefixes");

/** A pod has one endpoint here: that of the interface that every runtime gives it. */
const INTERFACE = "eth0";
const PREFIX = resourcesPrefix("workloadendpoints");

type Fields = Readonly<Record<string, unknown>>;

export const podEndpoints: KindMapping = {
  prefix: PREFIX,
  existsBefore: true,
  path: (key) => podOf(key)?.path,
  collections,
  record: recordOf,
  create: recordAddresses,
  update: recordAddresses,
  remove: (key, existing) => writing(key, existing, { [POD_IP]: "", [POD_IPS]: "", ...listsFor({}, existing) }),
};

function podOf(key: string): { readonly path: string; readonly ifname: string } | undefined {
  const parts = parseKey(key);
  if (parts?.kind !== "resource" || parts.namespace === undefined) return undefined;
  const named = parseWorkloadEndpointName(parts.name);
  if (named?.orchestrator !== "k8s" || !isObjectName(parts.namespace) || !isObjectName(named.workload))
    return undefined;
  return { path: `/api/v1/namespaces/${parts.namespace}/pods/${named.workload}`, ifname: named.endpoint };
}

/** Of all namespaces, or of one; all of them, or those of one node. */
function collections(prefix: string, node?: string): readonly Collection[] {
  const [namespace = "", beginning] = prefix.slice(PREFIX.length).split("/");
  if (beginning === undefined) {
    const ofNode = node === undefined ? {} : { query: { fieldSelector: `spec.nodeName=${node}` } };
    return [{ path: "/api/v1/pods", ...ofNode }];
  }
  const path = `/api/v1/namespaces/${namespace}/pods`;
  // As if the name went on: what it begins with is complete up to its last separator.
  const named = parseWorkloadEndpointName(`${beginning}x-x`);
  if (named === undefined) return [{ path }];
  return named.orchestrator === "k8s" ? [{ path, query: { fieldSelector: `spec.nodeName=${named.node}` } }] : [];
}

function recordOf(pod: ApiObject) {
  const { name, namespace = "" } = pod.metadata;
  const { nodeName, hostNetwork } = partOf(pod, "spec");
  if (typeof nodeName !== "string" || hostNetwork === true) return undefined;
  const named = workloadEndpointName({ node: nodeName, orchestrator: "k8s", workload: name, endpoint: INTERFACE });
  if (!named.ok) return undefined;
  const key = resourceKey("workloadendpoints", { namespace, name: named.name });
  const endpoint = endpointOf(pod, { name: named.name, node: nodeName });
  return endpoint === undefined ? { key } : { key, value: JSON.stringify(endpoint) };
}

/** `undefined` if it has no addresses. */
function endpointOf(pod: ApiObject, { name, node }: { readonly name: string; readonly node: string }) {
  const { metadata } = pod;
  const { namespace = "", annotations = {} } = metadata;
  const recorded = recordedAddresses(annotations);
  const reported = reportedAddresses(partOf(pod, "status"));
  if ((recorded ?? reported).length === 0) return undefined;
  // Our plugin has not connected a pod without recorded addresses: its other annotations are only those of a user.
  const annotated = annotatedIn(recorded === undefined ? {} : annotations, recorded ?? []);
  const addresses = recorded === undefined ? reported : annotated.addresses;
  const ofPod = podEndpointOf({ metadata, spec: partOf(pod, "spec") });
  const { phase } = partOf(pod, "status");
  const owner = ownerOfPod(metadata);
  const { nats, prefixes, unreadable } = annotated;
  return {
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: {
      name,
      namespace,
      uid: metadata.uid,
      creationTimestamp: metadata["creationTimestamp"],
      ...ofPod.metadata,
      annotations: {
        ...(owner === undefined ? {} : { [OWNER_ANNOTATION]: ownerText(owner) }),
        ...(annotations[NETWORK] === undefined ? {} : { [NETWORK_ANNOTATION]: annotations[NETWORK] }),
        ...copied(annotations, [MAC_ANNOTATION, WITHOUT_IPAM_ANNOTATION, SIDECAR_ANNOTATION]),
        ...(recorded === undefined ? {} : { [REPORTED_ANNOTATION]: JSON.stringify({ podIPs: reported, unreadable }) }),
        ...(recorded === undefined ? { [WITHOUT_IPAM_ANNOTATION]: JSON.stringify(addresses.map(withoutLength)) } : {}),
      },
    },
    spec: {
      orchestrator: "k8s",
      node,
      containerID: annotations[CONTAINER_ID],
      pod: metadata.name,
      endpoint: INTERFACE,
      ...ofPod.spec,
      ipNetworks: addresses,
      ...(nats.length === 0 ? {} : { ipNATs: nats }),
      ...(recorded === undefined ? {} : { interfaceName: interfaceOf(namespace, metadata.name) }),
      ...(prefixes.length === 0 ? {} : { allowSpoofedSourcePrefixes: prefixes }),
    },
    ...(isFinishedPhase(phase) ? { status: { phase } } : {}),
  };
}

const LONGEST_QUOTED = 60;

/** What the annotations say, each value apart: a text that is none of them concerns only itself. */
function annotatedIn(annotations: Readonly<Record<string, string>>, recorded: readonly string[]) {
  const unreadable: string[] = [];
  const sorted = <Value>(name: string, given: readonly unknown[], read: (value: unknown) => Value | undefined) => {
    const rest = given.length - MOST_RECORDED_VALUES;
    if (rest > 0) unreadable.push(`${name}: ${counted(rest, "value")} after the first ${MOST_RECORDED_VALUES}`);
    return given.slice(0, MOST_RECORDED_VALUES).flatMap((each): Value[] => {
      const value = read(each);
      if (value !== undefined) return [value];
      unreadable.push(`${name}: ${quoted(textOf(each).slice(0, LONGEST_QUOTED))}`);
      return [];
    });
  };
  return {
    addresses: sorted("podIPs", recorded, (text) => singleNetwork(String(text))),
    nats: sorted("ipNATs", listIn(annotations[IP_NATS]), natIn),
    prefixes: sorted("allowSpoofedSourcePrefixes", listIn(annotations[SOURCE_PREFIXES]), (text) =>
      typeof text === "string" && parsePrefixOrAddress(text) !== undefined ? text : undefined,
    ),
    unreadable,
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function natIn(value: unknown): { readonly internalIP: string; readonly externalIP: string } | undefined {
  const { internalIP, externalIP } = isObject(value) ? value : {};
  const areAddresses = [internalIP, externalIP].every((text) => parseAddress(String(text)) !== undefined);
  return areAddresses ? { internalIP: String(internalIP), externalIP: String(externalIP) } : undefined;
}

function interfaceOf(namespace: string, name: string): string {
  return hostInterfaceName({ containerId: "", ifname: INTERFACE, pod: { namespace, name } });
}

function withoutLength(address: string): string {
  return address.replace(/\/\d+$/, "");
}

function copied(
  annotations: Readonly<Record<string, string>>,
  names: readonly string[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    names.flatMap((name) => (annotations[name] === undefined ? [] : [[name, annotations[name]]])),
  );
}

/** What an ADD recorded; nothing if somebody has changed it to something else. */
function listIn(text: string | undefined): readonly unknown[] {
  if (!text) return [];
  try {
    const list: unknown = parseJson(text);
    return Array.isArray(list) ? list : [];
  } catch {
    return [];
  }
}

function recordAddresses(key: string, value: string, existing: Existing): Writing {
  const endpoint = parseStored(value, "WorkloadEndpoint", key);
  const spec = isObject(endpoint) ? partOf(endpoint, "spec") : {};
  const metadata = isObject(endpoint) ? partOf(endpoint, "metadata") : {};
  const addresses = Array.isArray(spec["ipNetworks"]) ? spec["ipNetworks"].map(String) : [];
  const network = partOf(metadata, "annotations")[NETWORK_ANNOTATION];
  return writing(key, existing, {
    [POD_IP]: addresses[0] ?? "",
    [POD_IPS]: addresses.join(","),
    [CONTAINER_ID]: String(spec["containerID"] ?? ""),
    ...(typeof network === "string" ? { [NETWORK]: network } : {}),
    ...listsFor(spec, existing),
  });
}

/** Few pods have any: each annotation is written only if it is needed. */
function listsFor(spec: Fields, existing: Existing): Readonly<Record<string, string>> {
  return {
    ...listFor(IP_NATS, spec["ipNATs"], existing),
    ...listFor(SOURCE_PREFIXES, spec["allowSpoofedSourcePrefixes"], existing),
  };
}

function listFor(name: string, list: unknown, existing: Existing): Readonly<Record<string, string>> {
  if (Array.isArray(list) && list.length > 0) return { [name]: JSON.stringify(list) };
  return existing?.metadata.annotations?.[name] ? { [name]: "" } : {};
}

function writing(key: string, existing: Existing, wanted: Readonly<Record<string, string>>): Writing {
  const pod = podOf(key);
  if (pod === undefined || existing === undefined) throw withoutPod(key);
  if (pod.ifname !== INTERFACE) throw otherInterface(key, pod.ifname);
  const { uid, annotations } = existing.metadata;
  const field = "/metadata/annotations";
  const container = `${field}/${escaped(CONTAINER_ID)}`;
  const operations: readonly Operation[] = [
    { op: "test", path: "/metadata/uid", value: uid },
    ...(annotations === undefined
      ? ([
          { op: "test", path: field, value: null },
          { op: "add", path: field, value: {} },
        ] as const)
      : [{ op: "test" as const, path: container, value: annotations[CONTAINER_ID] ?? null }]),
    ...Object.entries(wanted).map(([name, value]) => ({
      op: "add" as const,
      path: `${field}/${escaped(name)}`,
      value,
    })),
  ];
  return {
    ...patchOf(`${pod.path}/status`, operations),
    isResult: (found) =>
      found.metadata.uid === uid &&
      Object.entries(wanted).every(([name, value]) => found.metadata.annotations?.[name] === value),
  };
}

function escaped(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

function withoutPod(key: string): PluginError {
  return new PluginError(
    "container-unknown",
    `Cannot record ${quoted(key)} in the Kubernetes API: there is no such pod, and an endpoint is a pod there`,
  );
}

function otherInterface(key: string, ifname: string): PluginError {
  return new PluginError(
    "config-invalid",
    `Cannot record ${quoted(key)} in the Kubernetes API: a pod has one endpoint there, of interface "${INTERFACE}", not "${ifname}"`,
    { details: 'set "datastore_type" to "etcdv3" for pods with several interfaces' },
  );
}
