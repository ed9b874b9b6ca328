/**
 * What keeps a pod running: `Deployment web`. For people, and for whom addresses are kept (kept-address.ts).
 *
 * The pod itself names the object that made it. A Deployment makes a ReplicaSet, which makes the pod, and is deduced: the name
 * of the ReplicaSet without the hash that both and the pod have. Where only an endpoint is recorded, the owner is deduced
 * from the labels that the controllers of Kubernetes give to their pods, and from `generateName`. Pure.
 */
import { identity } from "../identity.ts";
import { VIRTUAL_MACHINE } from "./kept-address.ts";
import { partOf, textOf, textsIn } from "./pod-endpoint.ts";
import { objectsIn } from "./shape.ts";
import { STATEFUL_SET } from "./stateful-set.ts";
import type { WorkloadEndpoint } from "./workload-endpoint.ts";

export interface PodOwner {
  readonly kind: string;
  readonly name: string;
}

/** Of static pods. */
export const NODE = "Node";

/** Of an endpoint that is a pod of the orchestrator's API: `Deployment/web`. */
export const OWNER_ANNOTATION = `${identity.labelPrefix}owner`;

/** Both the ReplicaSets of a Deployment and their pods have it. */
const TEMPLATE_HASH = "pod-template-hash";
/** Pods of a StatefulSet and of a DaemonSet have the first one. */
const REVISION_HASH = "controller-revision-hash";
const STATEFUL_POD = "statefulset.kubernetes.io/pod-name";
const JOB_NAMES = ["batch.kubernetes.io/job-name", "job-name"] as const;

type Fields = Readonly<Record<string, unknown>>;
type Texts = Readonly<Record<string, string>>;

/** Of a pod itself; `undefined` if nothing made it. */
export function ownerOfPod(metadata: Fields): PodOwner | undefined {
  const references = objectsIn(metadata["ownerReferences"]);
  const reference = references.find(({ controller }) => controller === true);
  if (reference === undefined) return undefined;
  const [kind, name] = [textOf(reference, "kind"), textOf(reference, "name")];
  if (kind === undefined || name === undefined) return undefined;
  const hash = partOf(metadata, "labels")[TEMPLATE_HASH];
  if (kind === "ReplicaSet" && typeof hash === "string") return ofReplicaSet(name, hash);
  return { kind: `${kind}${foreignGroup(kind, textOf(reference, "apiVersion"))}`, name };
}

/** Of the kinds for whose pods addresses are kept. */
const GROUPS: ReadonlyMap<string, string> = new Map([
  [STATEFUL_SET, "apps"],
  [VIRTUAL_MACHINE, "kubevirt.io"],
  [NODE, "core"],
]);

/** `.apps.example.org` of a kind that another project defines under the same name: what is kept is not for its pods. */
function foreignGroup(kind: string, apiVersion = "v1"): string {
  const known = GROUPS.get(kind);
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "core";
  return known === undefined || group === known ? "" : `.${group}`;
}

function ofReplicaSet(name: string, hash: string): PodOwner {
  const end = `-${hash}`;
  const isOfDeployment = hash !== "" && name.endsWith(end) && name.length > end.length;
  return isOfDeployment ? { kind: "Deployment", name: name.slice(0, -end.length) } : { kind: "ReplicaSet", name };
}

export function ownerText({ kind, name }: PodOwner): string {
  return `${kind}/${name}`;
}

/** As annotated, else as its labels and its name say; `undefined` if it is not known, or no pod. */
export function ownerOfEndpoint({ metadata }: WorkloadEndpoint): PodOwner | undefined {
  const annotated = metadata.annotations?.[OWNER_ANNOTATION];
  if (annotated !== undefined) return readOwner(annotated);
  return deducedOwner(textsIn(metadata, "labels"), metadata.generateName);
}

function readOwner(text: string): PodOwner | undefined {
  const slash = text.indexOf("/");
  return slash <= 0 || slash === text.length - 1
    ? undefined
    : { kind: text.slice(0, slash), name: text.slice(slash + 1) };
}

function deducedOwner(labels: Texts, generateName: string | undefined): PodOwner | undefined {
  const job = JOB_NAMES.map((label) => labels[label]).find((name) => name !== undefined && name !== "");
  if (job !== undefined) return { kind: "Job", name: job };
  // Controllers add a dash to their own name, and the orchestrator cuts what is too long.
  const name = generateName?.endsWith("-") ? generateName.slice(0, -1) : undefined;
  if (name === undefined || name === "") return undefined;
  const hash = labels[TEMPLATE_HASH];
  if (hash !== undefined) return ofReplicaSet(name, hash);
  if (labels[STATEFUL_POD] !== undefined) return { kind: "StatefulSet", name };
  return labels[REVISION_HASH] === undefined ? undefined : { kind: "DaemonSet", name };
}
