/** Whether an endpoint and an allocation belong to the same container, and what an endpoint's allocation contains. Pure. */
import { NETWORK_ANNOTATION } from "../../model/endpoint-labels.ts";
import { type BlockAttribute, INTERFACE_ATTRIBUTE, NETWORK_ATTRIBUTE, NODE_ATTRIBUTE } from "../../model/ipam-block.ts";
import { CONTAINER_ATTRIBUTE, KEPT_ATTRIBUTE } from "../../model/kept-address.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Allocation } from "./blocks.ts";

/** Whether the address is allocated to the container of the endpoint, on the endpoint's node. */
export function isAllocatedTo({ spec }: WorkloadEndpoint, { handle, secondary }: Allocation): boolean {
  const { [NODE_ATTRIBUTE]: node, [INTERFACE_ATTRIBUTE]: ifname } = secondary;
  return (
    isOfContainer({ handle, secondary }, spec.containerID) &&
    (node === undefined || spec.node === undefined || node === spec.node) &&
    (ifname === undefined || spec.endpoint === undefined || ifname === spec.endpoint)
  );
}

/** An address that is kept for a pod names the container that uses it. */
export function isOfContainer(
  { handle, secondary }: Pick<Allocation, "handle" | "secondary">,
  containerId: string | undefined,
): boolean {
  const { [CONTAINER_ATTRIBUTE]: user, [KEPT_ATTRIBUTE]: kept } = secondary;
  return kept === undefined ? isHandleOf(handle, containerId) : user !== undefined && user === containerId;
}

/** Also a handle of older releases: the container ID alone. */
export function isHandleOf(handle: string | undefined, containerId: string | undefined): boolean {
  if (handle === undefined || containerId === undefined) return false;
  return handle === containerId || handle.endsWith(`.${containerId}`);
}

/** Pods are unique by name: a second endpoint of a pod's interface is that of a former sandbox. */
export function isSamePod(left: WorkloadEndpoint, right: WorkloadEndpoint): boolean {
  return (
    left.spec.pod !== undefined &&
    left.spec.pod === right.spec.pod &&
    left.metadata.namespace === right.metadata.namespace &&
    left.spec.endpoint === right.spec.endpoint
  );
}

/**
 * As an ADD would have recorded the addresses of the endpoint, so that its DEL releases them. An endpoint that names no
 * container has a handle of its own: nothing releases its addresses but the admin tool.
 */
export function attributesOfEndpoint(endpoint: WorkloadEndpoint, now: Date): BlockAttribute & { handleId: string } {
  const { metadata, spec } = endpoint;
  const network = metadata.annotations?.[NETWORK_ANNOTATION] ?? spec.profiles?.[0];
  const container = network === undefined ? spec.containerID : `${network}.${spec.containerID}`;
  return {
    handleId: spec.containerID === undefined || container === undefined ? ownHandle(endpoint) : container,
    secondary: {
      ...(spec.pod === undefined ? {} : { pod: spec.pod, namespace: metadata.namespace ?? "" }),
      ...(spec.node === undefined ? {} : { [NODE_ATTRIBUTE]: spec.node }),
      timestamp: now.toISOString(),
      ...(network === undefined ? {} : { [NETWORK_ATTRIBUTE]: network }),
      ...(spec.endpoint === undefined ? {} : { [INTERFACE_ATTRIBUTE]: spec.endpoint }),
    },
  };
}

function ownHandle({ metadata }: WorkloadEndpoint): string {
  return `endpoint.${metadata.namespace}.${metadata.name}`;
}
