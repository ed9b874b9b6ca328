/**
 * For whom the addresses of an attachment are kept (model/kept-address.ts), and whether.
 *
 *   a pod of a VirtualMachineInstance    vm/<name of the machine>: its pods have other names each time
 *   one of a StatefulSet with an ordinal,
 *   a static pod, one that somebody made
 *   under a name of its own              pod/<name>
 *   a pod of a Deployment, Job, …        nobody: its name never comes again
 *   any other pod                        pod/<name>, if it has the annotation itself: its name may never come again
 *   a container without a pod            container/<node>/<name>, if the runtime gives it a name
 *
 * Annotation of the pod, else of its namespace, else what the pools say. Pure.
 */
import type { ReleaseEvidence } from "../ipam/attachment.ts";
import type { AssignedAddress, KeepRequest, KeptUse } from "../ipam/request.ts";
import { keepHandle, VIRTUAL_MACHINE } from "../model/kept-address.ts";
import { NODE, ownerText, type PodOwner } from "../model/pod-owner.ts";
import { ordinalOfPod, STATEFUL_SET } from "../model/stateful-set.ts";
import type { AnnotationRequests } from "./annotations.ts";
import type { Workload } from "./workload.ts";

/** Their pods get a new name each time. */
const WITH_NEW_NAMES: ReadonlySet<string> = new Set([
  "ReplicaSet",
  "Deployment",
  "ReplicationController",
  "DaemonSet",
  "Job",
  "CronJob",
]);

export function neverComesAgain(owner: PodOwner | undefined): boolean {
  return owner !== undefined && WITH_NEW_NAMES.has(owner.kind);
}

interface Facts {
  readonly requests: AnnotationRequests;
  readonly owner?: PodOwner;
  readonly hasGeneratedName?: true;
  readonly namespaceUid?: string;
}

/** For ADD; `undefined`: the addresses belong to the container. */
export function keepRequestOf(workload: Workload, facts: Facts): KeepRequest | undefined {
  const { requests, owner, namespaceUid } = facts;
  const { keepAddresses, keepFor } = requests;
  const handle = handleOf(workload, owner);
  if (handle === undefined || keepAddresses?.value === false || neverComesAgain(owner)) return undefined;
  const { pod, namespace, containerName, containerId } = workload;
  if (keepAddresses?.on !== "pod" && !comesAgain(pod ?? "", facts)) return undefined;
  return {
    handle,
    containerId,
    when: keepAddresses?.value === true ? "always" : "if its pool does",
    ...(keepFor === undefined ? {} : { seconds: keepFor.value.seconds }),
    ...(keepFor === undefined || isEndSeen(pod ?? "", owner)
      ? {}
      : { limited: { ...keepFor, text: keepFor.value.text } }),
    ...(namespaceUid === undefined ? {} : { namespaceUid }),
    ...(owner === undefined ? {} : { owner: ownerText(owner) }),
    title: pod === undefined ? `container "${containerName ?? containerId}"` : `pod "${namespace}/${pod}"`,
  };
}

/** Under the same name, or as the same machine. Of a pod that could not be read nothing is known. */
function comesAgain(pod: string, { owner, hasGeneratedName }: Facts): boolean {
  if (owner === undefined) return hasGeneratedName !== true;
  return owner.kind === NODE || isEndSeen(pod, owner);
}

/** The controllers see when what the addresses are kept for has ended (ipam/leaks/waiting-addresses.ts). */
function isEndSeen(pod: string, owner: PodOwner | undefined): boolean {
  if (owner?.kind === STATEFUL_SET) return ordinalOfPod(owner.name, pod) !== undefined;
  return owner?.kind === VIRTUAL_MACHINE;
}

/**
 * For DEL and CHECK, which do not know the owner of the pod. Without any sign that the container was attached, as when a
 * DEL is repeated, nothing more is read.
 */
export function keptUseOf(
  workload: Workload,
  { results, hadLink }: Pick<ReleaseEvidence, "results" | "hadLink">,
): KeptUse {
  const handle = hadLink || results.length > 0 ? handleOf(workload, undefined) : undefined;
  return { containerId: workload.containerId, ...(handle === undefined ? {} : { handle }) };
}

/** For undoing an ADD: what waited before waits again. */
export function undoOfKept(
  { containerId }: Workload,
  { handle, addresses }: { readonly handle: string; readonly addresses: readonly AssignedAddress[] },
): KeptUse | undefined {
  if (!addresses.some(({ kept }) => kept !== undefined)) return undefined;
  const forGood = addresses.filter(({ kept }) => kept === "from now on").map(({ address }) => address);
  return { containerId, handle, forGood };
}

function handleOf(
  { network, node, namespace, pod, containerName }: Workload,
  owner: PodOwner | undefined,
): string | undefined {
  if (pod !== undefined) {
    const isMachine = owner?.kind === VIRTUAL_MACHINE;
    return keepHandle({ network, namespace, identity: isMachine ? `vm/${owner.name}` : `pod/${pod}` });
  }
  if (containerName === undefined) return undefined;
  return keepHandle({ network, namespace: "", identity: `container/${node}/${containerName}` });
}
