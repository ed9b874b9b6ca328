/**
 * The name of the host's end of an attachment.
 *
 * The first interface of a pod is named as Calico does: the prefix and 11 hex
 * digits of SHA-1("<namespace>.<pod>"), or without a pod the first 11 characters
 * of the container ID. That rule has no names for further interfaces, and gives
 * similar IDs that are not random the same name; for those the 11 digits are a
 * hash of everything that identifies the attachment.
 * Why: docs/decisions/host-interface-names.md.
 */
import { identity } from "../identity.ts";

/** The kernel's limit for the name of a link. */
const LONGEST = 15;
const FIRST_INTERFACE = "eth0";
const RANDOM_ID = /^[0-9a-f]+$/i;

export interface HostInterfaceOf {
  readonly containerId: string;
  readonly ifname: string;
  readonly pod?: { readonly namespace: string; readonly name: string } | undefined;
}

export function hostInterfaceName(
  { containerId, ifname, pod }: HostInterfaceOf,
  prefix = identity.interfacePrefix,
): string {
  const room = LONGEST - prefix.length;
  const isFirst = ifname === FIRST_INTERFACE;
  if (pod !== undefined) {
    const name = `${pod.namespace}.${pod.name}`;
    return prefix + digits(isFirst ? name : `${name}/${ifname}`, room);
  }
  const isUnique = containerId.length <= room || RANDOM_ID.test(containerId);
  return prefix + (isFirst && isUnique ? containerId.slice(0, room) : digits(`${containerId}/${ifname}`, room));
}

function digits(text: string, count: number): string {
  return Bun.SHA1.hash(text, "hex").slice(0, count);
}
