/**
 * What the host's end of an attachment is called.
 *
 * The first interface of a pod is named as operators know it from the peer: the
 * prefix and 11 hex digits of SHA-1("<namespace>.<pod>"), or without a pod the
 * first 11 characters of the container ID. That rule knows no second interface,
 * and gives IDs that were not drawn at random one name for several; for those
 * the 11 digits are a hash of all that tells the attachment apart.
 * Why: docs/decisions/host-interface-names.md.
 */
import { identity } from "../identity.ts";

/** The kernel's limit for the name of a link. */
const LONGEST = 15;
const FIRST_INTERFACE = "eth0";
const DRAWN_AT_RANDOM = /^[0-9a-f]+$/i;

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
  const isTold = containerId.length <= room || DRAWN_AT_RANDOM.test(containerId);
  return prefix + (isFirst && isTold ? containerId.slice(0, room) : digits(`${containerId}/${ifname}`, room));
}

function digits(text: string, count: number): string {
  return Bun.SHA1.hash(text, "hex").slice(0, count);
}
