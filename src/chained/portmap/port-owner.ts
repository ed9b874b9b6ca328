/**
 * The owner of host ports: one interface of one container in one network, as 128
 * bits that are stored in the kernel with every port.
 *
 *   network 40 bits | container 64 bits | interface 24 bits
 *
 * It has parts so that GC can find a network's ports, and a conflict can identify
 * the container, without the name, which a comment may truncate. Pure.
 */
import { containerNameOf, decodeArguments, podOf } from "../../cni/arguments.ts";
import type { Attachment } from "../../cni/attachments.ts";
import { shortContainerId } from "../../cni/names.ts";
import { quoted } from "../../quote.ts";

export interface Owner {
  readonly id: Uint8Array;
  /** For people: `network/container/interface`, with the name of the container if the runtime gives it. */
  readonly name: string;
}

/** CNI_ARGS, if the caller has them: `K8S_POD_NAME` is the name of the pod, or of the container of a single host. */
interface Owning extends Attachment {
  readonly args?: string;
}

const NETWORK = { start: 0, end: 5 } as const;
const CONTAINER = { start: 5, end: 13 } as const;
const INTERFACE = { start: 13, end: 16 } as const;

export const OWNER_LENGTH = INTERFACE.end;

export function ownerOf(network: string, { containerId, ifname, args = "" }: Owning): Owner {
  const id = new Uint8Array(OWNER_LENGTH);
  fill(id, NETWORK, `network ${network}`);
  fill(id, CONTAINER, `container ${containerId}`);
  fill(id, INTERFACE, `interface ${ifname}`);
  const container = nameIn(args) ?? shortContainerId(containerId);
  return { id, name: fitted(container, (shown) => `${network}/${shown}/${ifname}`) };
}

/** `container "web" of network "pods"`, of a name that may have been cut off. */
export function ownerText(name: string): string {
  const [, network, container] = /^([^/]+)\/(.+)\/[^/]+$/.exec(name) ?? [];
  if (network === undefined || container === undefined) return quoted(name);
  return `${container.includes("/") ? "pod" : "container"} ${quoted(container)} of network ${quoted(network)}`;
}

/** As many bytes as a comment may have: what follows is cut off. */
const LONGEST_NAME = 128;

/** A long name of a container is shortened, so that its interface remains. */
function fitted(container: string, nameWith: (shown: string) => string): string {
  const kept = [...container];
  let name = nameWith(container);
  while (kept.length > 0 && Buffer.byteLength(name) > LONGEST_NAME) {
    kept.pop();
    name = nameWith(`${kept.join("")}…`);
  }
  return name;
}

/** `web`, or `red/web` for a pod. What is wrong with CNI_ARGS is reported by plugins that depend on them. */
function nameIn(text: string): string | undefined {
  try {
    const args = decodeArguments(text);
    const pod = podOf(args);
    return pod === undefined ? containerNameOf(args) : `${pod.namespace}/${pod.name}`;
  } catch {
    return undefined;
  }
}

export function isSameNetwork(left: Uint8Array, right: Uint8Array): boolean {
  return isSamePart(left, right, NETWORK);
}

export function isSameContainer(left: Uint8Array, right: Uint8Array): boolean {
  return isSamePart(left, right, CONTAINER);
}

interface Part {
  readonly start: number;
  readonly end: number;
}

function fill(id: Uint8Array, { start, end }: Part, text: string): void {
  const hash = new Bun.CryptoHasher("sha256").update(text).digest();
  id.set(hash.subarray(0, end - start), start);
}

function isSamePart(left: Uint8Array, right: Uint8Array, { start, end }: Part): boolean {
  for (let index = start; index < end; index++) if (left[index] !== right[index]) return false;
  return true;
}
