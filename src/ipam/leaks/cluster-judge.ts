/**
 * Whether a recorded address is in use, by what the cluster says about its pod and its node. Pure.
 *
 * Only what is certain counts: a pod that does not exist, is on another node, was evicted, or has other addresses. What
 * the orchestrator does not know (containers without a pod, further interfaces of a pod) is kept: the host's own search
 * for leaks, which sees its links, judges those. An address that is kept for a pod on a node that exists is judged by its host
 * alone: a pod of the same name asks for it, and the node that is silent may still run the former one. An administrator who
 * declares the node dead answers for that.
 */
import { formatAddress } from "../../ip/address.ts";
import { type PodRecord, podRecordKey } from "../../model/pod-record.ts";
import type { NodeAllocation } from "./allocations.ts";

export interface ClusterView {
  /** By `podRecordKey()`. */
  readonly podAt: (key: string) => PodRecord | undefined;
  /** The orchestrator's name of one of our nodes; `undefined` if the node is gone. */
  readonly nodeNamed: (node: string) => string | undefined;
  /** Whether an administrator says that the node runs nothing any more, although it exists; absent: of none. */
  readonly isDeclaredDead?: ((node: string) => boolean) | undefined;
  /** The container that the endpoint at the key is recorded for; `undefined` if the datastore has no such records. */
  readonly containerAt: (endpointKey: string) => string | undefined;
}

export type Judgement = { readonly kind: "in use" | "not judged"; readonly reason: string } | Unused;

interface Unused {
  readonly kind: "unused";
  readonly reason: string;
  /** Nobody can use it again, so there is nothing to wait for. */
  readonly isNodeGone: boolean;
}

/** The interface that the runtime of the orchestrator gives every pod: its addresses are those of the pod. */
const POD_INTERFACE = "eth0";

export function judge(allocation: NodeAllocation, view: ClusterView): Judgement {
  const { podAt, nodeNamed, containerAt, isDeclaredDead } = view;
  const { node, pod, ifname, address, containerId, endpointKey, tunnel, isKept } = allocation;
  if (tunnel !== undefined) return judgeTunnel(tunnel, nodeNamed(node), node);
  if (pod === undefined) return { kind: "not judged", reason: "it does not belong to a pod" };
  const title = `pod ${pod.namespace}/${pod.name}`;
  const nodeName = nodeNamed(node);
  const isNodeGone = nodeName === undefined;
  const unused = (reason: string): Unused => ({
    kind: "unused",
    reason: isNodeGone ? `node ${node} is gone, and ${reason}` : reason,
    isNodeGone,
  });
  if (isKept && !isNodeGone && isDeclaredDead?.(node) !== true)
    return { kind: "not judged", reason: `it is kept for ${title}, and its host may still use it` };
  const found = podAt(podRecordKey(pod));
  // The ADD of a new pod waits for a kept address: it has none before this one is given up.
  const isElsewhere = (name: string) => isKept === true && nodeNamed(name) === name;
  if (found === undefined) return unused(`${title} does not exist`);
  if (found.isEvicted) return unused(`${title} was evicted`);
  // Whatever its node is called: without a reference in our record, its name in the orchestrator is not known.
  if (found.addresses.includes(formatAddress(address))) return { kind: "in use", reason: `${title} has it` };
  if (found.node !== nodeName) {
    const elsewhere = unused(`${title} is ${found.node === "" ? "not scheduled" : `on node ${found.node}`}`);
    // Its sandbox may be starting on a node of that other name.
    const mayStart = found.node !== "" && found.addresses.length === 0 && !isElsewhere(found.node);
    return mayStart ? { ...elsewhere, isNodeGone: false } : elsewhere;
  }
  // A kubelet that cannot report the addresses of a new sandbox may still start one.
  if (endpointKey !== undefined && containerAt(endpointKey) === containerId) {
    return { kind: "in use", reason: `the endpoint of ${title} is of this container` };
  }
  if (ifname !== POD_INTERFACE)
    return { kind: "not judged", reason: `${title} exists, and may have it on interface ${ifname}` };
  if (found.addresses.length === 0) return { kind: "in use", reason: `${title} has not reported its addresses yet` };
  return unused(`${title} has ${found.addresses.join(", ")}`);
}

/** The agent of a node gives its tunnels' addresses back itself, as long as the node exists. */
function judgeTunnel(tunnel: string, nodeName: string | undefined, node: string): Judgement {
  if (nodeName !== undefined) return { kind: "in use", reason: `it is that of the ${tunnel} of node ${node}` };
  return { kind: "unused", reason: `node ${node} is gone`, isNodeGone: true };
}
