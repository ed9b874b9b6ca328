/** From a request to the records that must be in the tables: ADD writes them, CHECK compares them. */
import type { AddCall, CheckCall } from "../../cni/call.ts";
import { markNetns } from "../../linux/netns-mark.ts";
import { claimsOf, type Unserved } from "./claim.ts";
import { masqueradedSources, type PodLink } from "./masqueraded-sources.ts";
import { podAddresses } from "./pod-addresses.ts";
import { findPodLink } from "./pod-link.ts";
import { ownerOf } from "./port-owner.ts";
import type { PortRecord, RecordSet } from "./port-records.ts";
import type { PortRequest } from "./request.ts";

export interface RequestedRecords {
  /** One for each family in which ports are asked for. */
  readonly recordSets: readonly RecordSet[];
  /** The link through which packets from 127.0.0.1 must be allowed to leave; absent if it is an uplink. */
  readonly loopbackLink: PodLink | undefined;
  readonly unserved: readonly Unserved[];
}

/** Checks everything: its result can be written. */
export function requestedRecords(
  call: AddCall | CheckCall,
  { result, options, mappings }: PortRequest,
): RequestedRecords {
  const pods = podAddresses(result, call.ifname);
  const { claims, unserved } = claimsOf(mappings, pods);
  const owner = ownerOf(call.networkName, call);
  const netns = markNetns(call.netns);
  const recordSets: RecordSet[] = [];
  let loopbackLink: PodLink | undefined;
  for (const family of [4, 6] as const) {
    const pod = pods[family];
    const records: PortRecord[] = [];
    for (const claim of claims) if (claim.family === family) records.push({ kind: "port", claim });
    if (pod === undefined || records.length === 0) continue;
    const link = options.masquerade === "none" ? undefined : findPodLink(pod.address);
    for (const masqueraded of masqueradedSources(pod, link, options)) records.push({ kind: "source", masqueraded });
    if (family === 4 && link?.isUplink === false) loopbackLink = link;
    recordSets.push({ family, owner, netns, records });
  }
  return { recordSets, loopbackLink, unserved };
}
