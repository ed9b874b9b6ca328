/**
 * Addresses that are kept for an identity: a pod's name, or a container's on one host. How a block records them.
 *
 *   in use    handle "keep-…", with the node and the container that uses it
 *   waiting   the same handle without both, since when, and the node where it was used last
 *
 * A waiting address is allocated: nobody else gets it. It is not a leak, no endpoint has it, and no route of its own leads
 * to it. Its handle has no dot, so that no container can have it, and former releases leave it alone. Pure.
 */
import {
  type BlockAttribute,
  INTERFACE_ATTRIBUTE,
  NAMESPACE_ATTRIBUTE,
  NETWORK_ATTRIBUTE,
  NODE_ATTRIBUTE,
} from "./ipam-block.ts";

/** For how many seconds it waits, 0 for as long as nobody ends it; it makes an allocation a kept one. */
export const KEPT_ATTRIBUTE = "kept";
/** The container that uses it; absent while it waits. */
export const CONTAINER_ATTRIBUTE = "containerID";
/** What owns the pod: `StatefulSet/db`. Absent if nothing does. */
export const OWNER_ATTRIBUTE = "owner";
/** Another namespace may get the same name. Absent if it was not known. */
export const NAMESPACE_UID_ATTRIBUTE = "namespaceUID";
/** While it waits, the node where it was used last. */
export const LAST_NODE_ATTRIBUTE = "lastNode";
/** Of KubeVirt: its pods have another name each time. */
export const VIRTUAL_MACHINE = "VirtualMachineInstance";
const POD_ATTRIBUTE = "pod";
const TIMESTAMP_ATTRIBUTE = "timestamp";

export const USUAL_KEEP_SECONDS = 24 * 60 * 60;
/** The most that annotations may ask for, unless the IPAMConfiguration says otherwise. */
export const USUAL_LONGEST_KEEP_FOR = "168h";

/** Whom an address is kept for. In one network; the interfaces of a container are told apart by their names. */
export interface KeepIdentity {
  readonly network: string;
  /** Empty for a container without a pod. */
  readonly namespace: string;
  /** `pod/db-0`, `vm/desktop`, `container/node-1/web` */
  readonly identity: string;
}

export interface KeptAddress {
  readonly handle: string;
  readonly network: string | undefined;
  readonly interface: string | undefined;
  readonly namespace: string | undefined;
  readonly namespaceUid: string | undefined;
  /** The pod that uses it, or did last; a container without a pod has none. */
  readonly pod: string | undefined;
  /** The name of a container without a pod. */
  readonly containerName: string | undefined;
  /** `StatefulSet/db` */
  readonly owner: string | undefined;
  readonly keepForSeconds: number;
  /** Since when it is used, or waits; `undefined` if the record does not say. */
  readonly since: Date | undefined;
  /** Absent while it waits. */
  readonly user?: { readonly containerId: string; readonly node: string | undefined };
  /** While it waits. */
  readonly lastNode?: string;
}

interface Recorded {
  readonly handleId?: string | undefined;
  readonly secondary: BlockAttribute["secondary"];
}

/** `undefined` if the allocation is not a kept one. */
export function keptOf(attribute: BlockAttribute | undefined): KeptAddress | undefined {
  const { handleId: handle, secondary = {} } = attribute ?? {};
  if (handle === undefined || secondary[KEPT_ATTRIBUTE] === undefined) return undefined;
  const since = new Date(secondary[TIMESTAMP_ATTRIBUTE] ?? "");
  const { [CONTAINER_ATTRIBUTE]: containerId, [LAST_NODE_ATTRIBUTE]: lastNode } = secondary;
  return {
    handle,
    network: secondary[NETWORK_ATTRIBUTE],
    interface: secondary[INTERFACE_ATTRIBUTE],
    namespace: secondary[NAMESPACE_ATTRIBUTE],
    namespaceUid: secondary[NAMESPACE_UID_ATTRIBUTE],
    pod: secondary[POD_ATTRIBUTE],
    containerName: secondary["container"],
    owner: secondary[OWNER_ATTRIBUTE],
    keepForSeconds: secondsOf(secondary[KEPT_ATTRIBUTE]),
    since: Number.isNaN(since.getTime()) ? undefined : since,
    ...(containerId === undefined ? {} : { user: { containerId, node: secondary[NODE_ATTRIBUTE] } }),
    ...(containerId !== undefined || lastNode === undefined ? {} : { lastNode }),
  };
}

/** Another program may have written it. */
function secondsOf(text: string | undefined): number {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : USUAL_KEEP_SECONDS;
}

/** Whether it is kept and nobody uses it. */
export function isWaiting(attribute: Recorded | undefined): boolean {
  return isKept(attribute) && attribute?.secondary[CONTAINER_ATTRIBUTE] === undefined;
}

/** Whether it is kept and a container uses it. */
export function isKeptInUse(attribute: BlockAttribute | undefined): boolean {
  return isKept(attribute) && attribute?.secondary[CONTAINER_ATTRIBUTE] !== undefined;
}

/** When a waiting address ends by itself; `undefined` if it never does, or the record does not say. */
export function endOfKeeping({ since, keepForSeconds, user }: KeptAddress): Date | undefined {
  if (user !== undefined || since === undefined || keepForSeconds === 0) return undefined;
  return new Date(since.getTime() + keepForSeconds * 1000);
}

/** What becomes of a kept address when its container no longer uses it. */
export function waitingAttribute({ handleId, secondary }: BlockAttribute, now: Date): BlockAttribute {
  const { [NODE_ATTRIBUTE]: node, [CONTAINER_ATTRIBUTE]: _, ...others } = secondary;
  return {
    ...(handleId === undefined ? {} : { handleId }),
    secondary: {
      ...others,
      [TIMESTAMP_ATTRIBUTE]: now.toISOString(),
      ...(node === undefined ? {} : { [LAST_NODE_ATTRIBUTE]: node }),
    },
  };
}

const KEEP_PREFIX = "keep-";
const HASH_BYTES = 16;
/** What `keepHandle()` returns, as a regular expression. */
export const KEEP_HANDLE = `^${KEEP_PREFIX}[0-9a-f]{${HASH_BYTES * 2}}$`;

/** The handle of all that is kept for the identity. */
export function keepHandle({ network, namespace, identity }: KeepIdentity): string {
  // Takes half the time of a CryptoHasher in a new process.
  const hash = new Uint8Array(32);
  Bun.SHA256.hash(JSON.stringify([network, namespace, identity]), hash);
  return `${KEEP_PREFIX}${hash.subarray(0, HASH_BYTES).toHex()}`;
}

function isKept(attribute: Recorded | undefined): boolean {
  return attribute?.handleId !== undefined && attribute.secondary[KEPT_ATTRIBUTE] !== undefined;
}
