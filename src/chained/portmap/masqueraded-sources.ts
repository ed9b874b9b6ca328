/**
 * Which clients must be masqueraded so that the pod's reply returns through this
 * host, which alone can rewrite it to come from the host port.
 *
 *   the pod itself            it would reply to itself
 *   neighbours on its bridge  it would reply to them directly
 *   the host's loopback       replies to 127.0.0.1 may not come from outside; IPv6 has no such path at all
 *
 * Pure.
 */
import { addressBits } from "../../ip/address.ts";
import { type InterfaceAddress, prefixAround } from "../../ip/prefix.ts";
import type { PortmapOptions } from "./options.ts";
import type { MasqueradedSource } from "./port-records.ts";
import { LOOPBACK } from "./table.ts";

/** The link behind which the pod is, as the host sees it. */
export interface PodLink {
  readonly name: string;
  readonly index: number;
  /** Others are on the link besides the pod: a bridge. */
  readonly isShared: boolean;
  /** It also leads elsewhere: packets from 127.0.0.1 are never allowed to leave through it. */
  readonly isUplink: boolean;
}

export function masqueradedSources(
  pod: InterfaceAddress,
  link: PodLink | undefined,
  { masquerade }: PortmapOptions,
): readonly MasqueradedSource[] {
  if (masquerade === "none") return [];
  const { family } = pod.address;
  const sourceOf = (length: number): MasqueradedSource => {
    const { network } = prefixAround(pod.address, length);
    return { family, source: network, length, podAddress: pod.address };
  };
  if (masquerade === "all") return [sourceOf(0)];

  const sources = [sourceOf(link?.isShared === true ? pod.length : addressBits(family))];
  if (family === 4) {
    sources.push({ family, source: LOOPBACK.network, length: LOOPBACK.length, podAddress: pod.address });
  }
  return sources;
}
