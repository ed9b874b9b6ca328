/** From a call to what must be in the tables: the same for ADD, which makes it so, and CHECK, which compares. */
import type { AddCall, CheckCall } from "../../cni/call.ts";
import type { CniResult } from "../../cni/result.ts";
import { PluginError } from "../../errors.ts";
import { ownerOf } from "./attachment.ts";
import { claimsOf } from "./claim.ts";
import type { Holding, KeptRecord } from "./holding.ts";
import { decodePortMappings, type PortMapping } from "./mapping.ts";
import { markNetns } from "./netns-mark.ts";
import { decodeOptions } from "./options.ts";
import { podAddresses } from "./pod-addresses.ts";
import { findPodLink } from "./pod-link.ts";
import { hiddenSources, type PodLink } from "./sources.ts";

export interface Wanted {
  /** What the plugins before gave, and what this one passes on. */
  readonly result: CniResult;
  /** One for each family in which ports are asked for. */
  readonly holdings: readonly Holding[];
  /** By which 127.0.0.1 must be allowed to leave. */
  readonly loopbackLink: PodLink | undefined;
  readonly unserved: readonly PortMapping[];
}

/** Everything is checked here: whoever has the answer may begin to write. */
export function wantedBy(call: AddCall | CheckCall): Wanted {
  const result = call.prevResult;
  if (result === undefined) {
    const state = "it has no prevResult; this plugin comes behind another one in a list";
    throw new PluginError("config-invalid", `Cannot use the network config: ${state}`);
  }
  const options = decodeOptions(call.config);
  const mappings = decodePortMappings(call.config);
  if (mappings.length === 0) return { result, holdings: [], loopbackLink: undefined, unserved: [] };

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
  return { result, holdings, loopbackLink, unserved };
}
