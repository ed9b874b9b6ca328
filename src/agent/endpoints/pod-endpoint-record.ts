/**
 * The endpoint that the agent records for a pod which another networking plugin has connected: what the plugin of this
 * product would record, without the container and the interface, which only that plugin knows. Pure.
 */
import type { Change } from "../../datastore/datastore.ts";
import { API_VERSION } from "../../identity.ts";
import { parseAddress } from "../../ip/address.ts";
import { formatPrefix, singlePrefix } from "../../ip/prefix.ts";
import { WITHOUT_IPAM_ANNOTATION } from "../../model/endpoint-labels.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import type { PodRecord } from "../../model/pod-record.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { workloadEndpointName } from "../../model/workload-endpoint-name.ts";

/** As it is recorded for every pod: another plugin does not tell the name inside the pod. */
const INTERFACE = "eth0";

/** `undefined` if it has no name that an endpoint could have. */
export function endpointKeyOf({ namespace, name }: Pick<PodRecord, "namespace" | "name">, node: string) {
  const made = workloadEndpointName({ node, orchestrator: "k8s", workload: name, endpoint: INTERFACE });
  return made.ok ? ENDPOINT.key({ namespace, name: made.name }) : undefined;
}

/** Whether an agent has recorded it, not an ADD: it is of a pod, and of no container. */
export function isOfAgent({ spec, metadata }: WorkloadEndpoint, node: string): boolean {
  return (
    spec.node === node &&
    spec.orchestrator === "k8s" &&
    spec.containerID === undefined &&
    metadata.annotations?.[WITHOUT_IPAM_ANNOTATION] !== undefined
  );
}

export interface RecordedEndpoint {
  readonly value: WorkloadEndpoint;
  readonly revision: string;
}

/** What must be written so that the record is right; `undefined` if it is, or is not the agent's. */
export function endpointChange(
  key: string,
  {
    pod,
    recorded,
    node,
  }: {
    readonly pod: PodRecord | undefined;
    readonly recorded: RecordedEndpoint | undefined;
    /** The name of this node in the datastore. */
    readonly node: string;
  },
): Change | undefined {
  if (recorded !== undefined && !isOfAgent(recorded.value, node)) return undefined;
  if (pod === undefined || pod.isOnHostNetwork || pod.addresses.length === 0) {
    return recorded && { kind: "delete", key, revision: recorded.revision };
  }
  const wanted = endpointOfPod(pod, node, recorded?.value);
  if (recorded === undefined) return { kind: "create", key, value: ENDPOINT.codec.write(wanted) };
  if (Bun.deepEquals(wanted, recorded.value)) return undefined;
  return { kind: "update", key, value: ENDPOINT.codec.write(wanted), revision: recorded.revision };
}

function endpointOfPod(pod: PodRecord, node: string, before: WorkloadEndpoint | undefined): WorkloadEndpoint {
  const { metadata, spec } = pod.endpoint;
  const { profiles, ports, ...more } = spec;
  const made = workloadEndpointName({ node, orchestrator: "k8s", workload: pod.name, endpoint: INTERFACE });
  return {
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: {
      name: made.ok ? made.name : "",
      namespace: pod.namespace,
      uid: pod.uid,
      ...(pod.createdAt === undefined ? {} : { creationTimestamp: pod.createdAt }),
      ...metadata,
      annotations: {
        ...before?.metadata.annotations,
        [WITHOUT_IPAM_ANNOTATION]: JSON.stringify(pod.addresses),
      },
    },
    spec: {
      orchestrator: "k8s",
      node,
      pod: pod.name,
      endpoint: INTERFACE,
      ...more,
      profiles: [...profiles],
      ...(ports === undefined ? {} : { ports: [...ports] }),
      ipNetworks: pod.addresses.flatMap((text) => {
        const address = parseAddress(text);
        return address === undefined ? [] : formatPrefix(singlePrefix(address));
      }),
    },
    // Rules do not match the addresses of a pod that has ended.
    ...(pod.finishedPhase === undefined ? {} : { status: { phase: pod.finishedPhase } }),
  };
}
