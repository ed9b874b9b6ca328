/**
 * One attachment of a container to a network as the allocator knows it: its
 * handle, its owner, what is asked for and what is recorded. Follows from the call
 * and the config alone, so ADD, CHECK and DEL agree. Pure.
 */
import { type CniArguments, containerNameOf, podOf } from "../cni/arguments.ts";
import { type Address, formatAddress } from "../ip/address.ts";
import { addressRequestsOf, type RequestSources } from "./address-requests.ts";
import type { Owner } from "./block.ts";
import { withFormerHandle } from "./former-handle.ts";
import type { PodNamespace } from "./pools.ts";
import type { AssignRequest, ReleaseHandleRequest } from "./request.ts";

export interface Attachment {
  readonly network: string;
  readonly containerId: string;
  readonly node: string;
  /** `<network>.<container>`, as every tool that reads the datastore expects. */
  readonly handle: string;
  readonly owner: Owner;
}

export interface Attached {
  readonly networkName: string;
  readonly containerId: string;
}

/**
 * Without an interface the owner stands for all interfaces of the container. `vendor-ipam` does not look at
 * CNI_IFNAME: each container gets one set of addresses, and DEL releases it whatever the interface is called by then.
 */
export function attachmentOf(
  { networkName: network, containerId }: Attached,
  { node, ifname }: { readonly node: string; readonly ifname?: string },
): Attachment {
  const handle = `${network}.${containerId}`;
  const owner: Owner = { handle, network, ...(ifname === undefined ? {} : { interface: ifname }) };
  return { network, containerId, node, handle, owner };
}

/** What ADD asks the allocator for. `onLink`: the addresses of the link that an earlier ADD made on this host. */
export function assignRequest(
  { owner, node }: Attachment,
  sources: RequestSources & {
    readonly args: CniArguments;
    readonly onLink: readonly Address[];
    /** Labels of the pod's namespace; absent: not known. */
    readonly namespaceLabels?: PodNamespace["labels"];
    /** Absent: the addresses belong to the container. */
    readonly keep?: AssignRequest["keep"];
  } & Pick<AssignRequest, "machineIdentity">,
): AssignRequest {
  const { args, namespaceLabels: labels } = sources;
  const pod = podOf(args);
  return {
    ...owner,
    node,
    onAnyNode: sources.onLink.map(formatAddress),
    ...(sources.machineIdentity === undefined ? {} : { machineIdentity: sources.machineIdentity }),
    ...(pod === undefined
      ? {}
      : { podNamespace: { name: pod.namespace, ...(labels === undefined ? {} : { labels }) } }),
    ...(sources.keep === undefined ? {} : { keep: sources.keep }),
    attributes: namesIn(args),
    intendedUse: "Workload",
    addressRequests: addressRequestsOf(sources),
  };
}

/** For people who look for the owner of an address. */
function namesIn(args: CniArguments): AssignRequest["attributes"] {
  const pod = podOf(args);
  if (pod !== undefined) return { pod: pod.name, namespace: pod.namespace };
  const container = containerNameOf(args);
  return container === undefined ? {} : { container };
}

/** What an ADD assigned: for undoing it. */
export function assignedRequest({ owner, node }: Attachment): ReleaseHandleRequest {
  return { ...owner, node };
}

/** All that the attachment may hold, also from an older release: for CHECK. `likely`: addresses it probably holds. */
export function heldRequest(attachment: Attachment, likely: readonly string[]): ReleaseHandleRequest {
  const { containerId, node } = attachment;
  return { ...assignedRequest(attachment), ...withFormerHandle(containerId, node), likely };
}

export interface ReleaseEvidence {
  /** The addresses of the runtime's previous result; empty if there is none. */
  readonly results: readonly string[];
  /** Addresses that it probably holds: those of the result, or else those that are routed to its link. */
  readonly likely: readonly string[];
  /** This host had the link of the attachment. */
  readonly hadLink: boolean;
}

/**
 * As `heldRequest`, for DEL. The host may have had another name at the time of the ADD: an address of the previous
 * result is released too, and without a result, if this host had the link, what the handle holds on other nodes.
 */
export function releaseRequest(
  attachment: Attachment,
  { results, likely, hadLink }: ReleaseEvidence,
): ReleaseHandleRequest {
  return {
    ...heldRequest(attachment, likely),
    onAnyNode: results,
    ifNoneOnNode: hadLink && results.length === 0 ? "release those of other nodes" : "release nothing",
  };
}
