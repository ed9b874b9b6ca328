/**
 * A pod of the orchestrator, as far as the controllers use it. Derived from the pod on every read; no release writes such
 * a record. Pure.
 */
import { formatAddress, parseAddress } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import { isFinishedPhase } from "./finished-pods.ts";
import { VIRTUAL_MACHINE } from "./kept-address.ts";
import { type ResourceName, resourceKey, resourcesPrefix } from "./keys.ts";
import { recordedAddresses, reportedAddresses } from "./pod-addresses.ts";
import { type PodEndpoint, partOf, podEndpointOf, textOf, textsIn } from "./pod-endpoint.ts";
import { ownerOfPod } from "./pod-owner.ts";
import { parseStored } from "./stored.ts";

const PLURAL = "pods";

type Fields = Readonly<Record<string, unknown>>;

export interface PodRecord {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly createdAt?: string;
  /** Empty: not scheduled yet. */
  readonly node: string;
  /** It uses the network of its node, and has no endpoint. */
  readonly isOnHostNetwork: boolean;
  /** If it has ended: its addresses are nobody's. */
  readonly finishedPhase?: string;
  /** Its kubelet ended it to free resources: the pod stays, its sandbox does not. */
  readonly isEvicted: boolean;
  /** The name of the virtual machine that it runs, if it does. */
  readonly machine?: string;
  /** Canonical. */
  readonly addresses: readonly string[];
  readonly endpoint: PodEndpoint;
}

export const POD_RECORDS_PREFIX = resourcesPrefix(PLURAL);

export function podRecordKey(name: ResourceName): string {
  return resourceKey(PLURAL, name);
}

/** The text is of `podRecordOf()`, in the same process. */
export function readPodRecord(text: string, key: string): PodRecord {
  return parseStored(text, "Pod", key) as PodRecord;
}

export function podRecordOf(pod: {
  readonly metadata: ResourceName & Fields;
  readonly [part: string]: unknown;
}): PodRecord {
  const { metadata } = pod;
  const [spec, status] = [partOf(pod, "spec"), partOf(pod, "status")];
  const createdAt = textOf(metadata, "creationTimestamp");
  const owner = ownerOfPod(metadata);
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    uid: textOf(metadata, "uid") ?? "",
    ...(createdAt === undefined ? {} : { createdAt }),
    node: textOf(spec, "nodeName") ?? "",
    isOnHostNetwork: spec["hostNetwork"] === true,
    ...(isFinishedPhase(status["phase"]) ? { finishedPhase: String(status["phase"]) } : {}),
    isEvicted: status["phase"] === "Failed" && status["reason"] === "Evicted",
    ...(owner?.kind === VIRTUAL_MACHINE ? { machine: owner.name } : {}),
    addresses: addressesOf(metadata, status),
    endpoint: podEndpointOf({ metadata, spec }),
  };
}

/** Those that the plugin recorded, and those that the kubelet reports: in a change of sandboxes they differ for a moment. */
function addressesOf(metadata: Fields, status: Fields): readonly string[] {
  const listed = [...(recordedAddresses(textsIn(metadata, "annotations")) ?? []), ...reportedAddresses(status)];
  const parsed = listed.flatMap((text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? []);
  return [...new Set(parsed.map(formatAddress))];
}
