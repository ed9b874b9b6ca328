/**
 * Whose address must be hidden so that the pod's answer finds its way back
 * through this host, which alone can turn it into an answer from the host port.
 *
 *   the pod itself            it would answer itself
 *   neighbours on its bridge  it would answer them directly
 *   the host's loopback       nobody may answer 127.0.0.1 from outside; IPv6 knows no such way at all
 *
 * Pure.
 */
import { addressBits } from "../../ip/address.ts";
import { type InterfaceAddress, prefixAround } from "../../ip/prefix.ts";
import type { HiddenSource } from "./holding.ts";
import type { PortmapOptions } from "./options.ts";
import { LOOPBACK } from "./table.ts";

/** The link behind which the pod is, as the host sees it. */
export interface PodLink {
  readonly name: string;
  /** Others are on the link besides the pod: a bridge. */
  readonly isShared: boolean;
}

export function hiddenSources(
  pod: InterfaceAddress,
  link: PodLink | undefined,
  { masquerade }: PortmapOptions,
): readonly HiddenSource[] {
  if (masquerade === "none") return [];
  const { family } = pod.address;
  const hidden = (length: number): HiddenSource => {
    const { network } = prefixAround(pod.address, length);
    return { family, source: network, length, podAddress: pod.address };
  };
  if (masquerade === "all") return [hidden(0)];

  const sources = [hidden(link?.isShared === true ? pod.length : addressBits(family))];
  if (family === 4) {
    sources.push({ family, source: LOOPBACK.network, length: LOOPBACK.length, podAddress: pod.address });
  }
  return sources;
}
