/**
 * Whether the pod that the API returned is the one that an ADD is for. Pure.
 *
 *   code 3    the pod of the container no longer exists: the runtime need not try again
 *   code 11   the API does not have the pod's current state yet
 */
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";

/** What the runtime says about the pod. */
export interface WantedPod {
  readonly namespace: string;
  readonly name: string;
  /** K8S_POD_UID; not every runtime passes it. */
  readonly uid: string | undefined;
  /** The names that the orchestrator may have for this host. */
  readonly nodes: readonly string[];
  /** The field of the network config that says so. */
  readonly nodeField: "nodename" | "kubernetes.node_name";
}

/** What the API says. */
export interface FoundPod {
  readonly uid: string | undefined;
  readonly node: string | undefined;
  readonly annotations: Readonly<Record<string, string>>;
}

/** On the mirror pod of a static pod: the UID of the static pod, which the runtime passes. */
const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

/** As the API makes them; the UID of a static pod is a hash. */
const API_UID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function requireSamePod(found: FoundPod | undefined, wanted: WantedPod): void {
  if (found === undefined) throw missing(wanted);
  const mirrored = found.annotations[MIRROR_ANNOTATION];
  const isKnownSame = wanted.uid !== undefined && (mirrored ?? found.uid) === wanted.uid;
  if (wanted.uid !== undefined && !isKnownSame) throw otherUid(found, mirrored, wanted);
  if (found.node === undefined || !wanted.nodes.includes(found.node)) throw otherNode(found, wanted, isKnownSame);
}

/** A static pod runs before the kubelet has created its mirror pod. */
function missing(wanted: WantedPod): PluginError {
  if (wanted.uid === undefined || API_UID.test(wanted.uid)) {
    return refusal("container-unknown", wanted, "it no longer exists in the Kubernetes API");
  }
  return refusal("try-again-later", wanted, "it is a static pod, and the kubelet has not created its mirror pod yet");
}

function otherUid(found: FoundPod, mirrored: string | undefined, wanted: WantedPod): PluginError {
  const state = `has UID ${quoted(mirrored ?? found.uid)} instead of ${quoted(wanted.uid)}`;
  // The kubelet replaces the mirror pod after the manifest was changed.
  if (mirrored !== undefined) return refusal("try-again-later", wanted, `its mirror pod is outdated: it ${state}`);
  return refusal("container-unknown", wanted, `it was replaced: the pod of this name ${state}`);
}

/** The same pod cannot be on two nodes: then the name of this one is wrong in the config, and it may be corrected. */
function otherNode({ node }: FoundPod, wanted: WantedPod, isKnownSame: boolean): PluginError {
  const names = wanted.nodes.map((name) => quoted(name)).join(" or ");
  const place = node === undefined ? "it is not assigned to a node" : `it is on node ${quoted(node)}`;
  const kind = isKnownSame ? "try-again-later" : "container-unknown";
  const value = node === undefined ? "its name in the Kubernetes API" : quoted(node);
  const remedy = `if this is that node, set "${wanted.nodeField}" in the network config to ${value}`;
  return refusal(kind, wanted, `${place}, and this node is ${names}`, remedy);
}

function refusal(
  kind: "container-unknown" | "try-again-later",
  { namespace, name }: WantedPod,
  state: string,
  details = "",
): PluginError {
  return new PluginError(kind, `Cannot attach pod "${namespace}/${name}": ${state}`, { details });
}
