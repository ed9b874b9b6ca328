/** From a request to what must be in the tables: the same for ADD, which makes it so, and CHECK, which compares. */
import type { AddCall, CheckCall } from "../../cni/call.ts";
import { ownerOf } from "./attachment.ts";
import { claimsOf, type Unserved } from "./claim.ts";
import type { Holding, KeptRecord } from "./holding.ts";
import { markNetns } from "./netns-mark.ts";
import { podAddresses } from "./pod-addresses.ts";
import { findPodLink } from "./pod-link.ts";
import type { PortRequest } from "./request.ts";
import { hiddenSources, type PodLink } from "./sources.ts";

export interface Wanted {
  /** One for each family in which ports are asked for. */
  readonly holdings: readonly Holding[];
  /** By which 127.0.0.1 must be allowed to leave. */
  readonly loopbackLink: PodLink | undefined;
  readonly unserved: readonly Unserved[];
}

/** Everything is checked here: whoever has the answer may begin to write. */
export function wantedBy(call: AddCall | CheckCall, { result, options, mappings }: PortRequest): Wanted {
  const pods = podAddresses(result, call.ifname);
  const { claims, unserved } = claimsOf(mappings, pods);
  const owner = ownerOf(call.networkName, call);
  const netns = markNetns(call.netns);
  const holdings: Holding[] = [];
  let loopbackLink: PodLink | undefined;
  for (const family of [4, 6] as const) {
    const pod = pods[family];
    const records: KeptRecord[] = [];
    for (const claim of claims) if (claim.family === family) records.push({ kind: "port", claim });
    if (pod === undefined || records.length === 0) continue;
    const link = options.masquerade === "none" ? undefined : findPodLink(pod.address);
    for (const hidden of hiddenSources(pod, link, options)) records.push({ kind: "source", hidden });
    if (family === 4) loopbackLink = link;
    holdings.push({ family, owner, netns, records });
  }
  return { holdings, loopbackLink, unserved };
}
