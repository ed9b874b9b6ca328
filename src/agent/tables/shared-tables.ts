/** The parts of the agent that say what the tables of this host must be, and the one that writes them again (host-tables.ts). */

import type { RecordedSources } from "../../firewall/recorded-sources.ts";
import { attachmentsFolder, readAttachments } from "../../ipam/attachment-record.ts";
import { readLinks } from "../../ipam/leaks/host-links.ts";
import type { NetfilterAccess } from "../../linux/netfilter-access.ts";
import { sourcesOfEndpoints, sourcesOnHost } from "../../upkeep/recorded-sources.ts";
import { followFloating } from "../floating/follow-floating.ts";
import { type FollowedNetwork, KINDS_OF_PARTS } from "../network/followed-network.ts";
import { onceEach } from "../once-each.ts";
import type { AgentPart } from "../supervise.ts";
import { followClusterSources } from "./follow-cluster-sources.ts";
import { followNat } from "./follow-nat.ts";
import { HostTables } from "./host-tables.ts";

export function sharedTablesParts(followed: FollowedNetwork, netfilter: NetfilterAccess): readonly AgentPart[] {
  const { means, network, replica, log } = followed;
  const { node, furtherSources, isForAgentOnly } = network;
  const warn = (message: string) => log(message, "WARNING");
  const tables = new HostTables({
    ...{ netfilter, kernel: means.kernel, log },
    hasGuard: () => !isForAgentOnly || readLinks(means.kernel).marks.size > 0,
    sources: () => wantedSources(followed),
    report: onceEach(warn).report,
  });
  const parts: AgentPart[] = [
    {
      name: "outgoing NAT",
      run: (signal) =>
        followNat(replica.part(KINDS_OF_PARTS.nat).updates(signal), {
          node,
          write: (pools) => tables.setNat(pools),
          log,
        }),
    },
    {
      name: "floating IPs",
      run: (signal) =>
        followFloating(replica.part(KINDS_OF_PARTS.floating).updates(signal), {
          node,
          write: (addresses) => tables.setFloating(addresses),
          report: warn,
        }),
    },
    { name: "the shared tables of this host", run: (signal) => tables.run(means.clock.wait, signal) },
  ];
  if (furtherSources === undefined || isForAgentOnly) return parts;
  return [
    ...parts,
    {
      name: "the sources that no pod may use",
      run: (signal) =>
        followClusterSources(replica.part(KINDS_OF_PARTS.clusterSources).updates(signal), {
          permitted: furtherSources.permittedInCluster,
          write: (sources) => tables.setClusterSources(sources),
          log,
        }),
    },
  ];
}

/** While the network config does not allow further sources, no link has any. */
function wantedSources({ means, network, store, replica }: FollowedNetwork): readonly RecordedSources[] | undefined {
  const { marksWithSources: marks } = readLinks(means.kernel);
  if (marks.size === 0) return [];
  if (network.furtherSources === undefined) return [...marks].map((mark) => ({ mark, prefixes: [] }));
  const { openFolder, runDirectory } = means.files;
  if (store.isOrchestratorApi) {
    return sourcesOnHost({ marks, attachments: readAttachments(openFolder(attachmentsFolder(runDirectory))) });
  }
  const endpoints = replica.part(KINDS_OF_PARTS.floating).snapshot?.endpoints;
  if (endpoints === undefined) return undefined;
  return [
    ...sourcesOfEndpoints(
      Array.from(endpoints, ([, endpoint]) => endpoint),
      marks,
    ),
  ];
}
