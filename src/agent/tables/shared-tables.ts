/** The parts of the agent that say what the tables of this host must be, and the one that writes them again (host-tables.ts). */

import { hostPortsFolder } from "../../chained/portmap/record-file.ts";
import type { NatPool } from "../../firewall/nat-table.ts";
import type { RecordedSources } from "../../firewall/recorded-sources.ts";
import { attachmentsFolder, readAttachments } from "../../ipam/attachment-record.ts";
import type { NetfilterAccess } from "../../linux/netfilter-access.ts";
import { type Link, listLinks } from "../../linux/rtnetlink/link.ts";
import { ALLOWED_SOURCES_GROUP } from "../../linux/rtnetlink/own-devices.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import { onceEach } from "../../log/once-each.ts";
import { sourcesOfEndpoints, sourcesOnHost } from "../../upkeep/recorded-sources.ts";
import { followFloating } from "../floating/follow-floating.ts";
import { unknownLinks } from "../local-routes/local-routes.ts";
import { type FollowedNetwork, KINDS_OF_PARTS } from "../network/followed-network.ts";
import type { AgentPart } from "../supervise.ts";
import { followClusterSources } from "./follow-cluster-sources.ts";
import { followNat } from "./follow-nat.ts";
import { HostTables } from "./host-tables.ts";

export function sharedTablesParts(followed: FollowedNetwork, netfilter: NetfilterAccess): readonly AgentPart[] {
  const { means, network, replica, log } = followed;
  const { node, furtherSources, isForAgentOnly } = network;
  const warn = (message: string) => log(message, "WARNING");
  const tables = new HostTables({
    ...{ netfilter, kernel: means.kernel, elapsed: means.clock.elapsed, log },
    hostPorts: means.files.openFolder(hostPortsFolder(means.files.runDirectory)),
    hasGuard: (links) => !isForAgentOnly || links.some(({ alias }) => alias !== undefined),
    sources: (links) => wantedSources(links, followed),
    problems: onceEach(warn),
  });
  const parts: AgentPart[] = [
    {
      name: "outgoing NAT",
      run: (signal) => keepNat(followed, tables, signal),
    },
    {
      name: "floating IPs",
      run: (signal) =>
        followFloating(replica.part(KINDS_OF_PARTS.floating).updates(signal), {
          node,
          write: (addresses) => tables.setFloating(addresses),
          report: warn,
          endpointsChanged: () => tables.sourcesChanged(),
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

/** How often it is looked whether the copy of the pools is current. */
const FOLLOWED_MILLISECONDS = 1_000;

/** While the table follows the pools, the ADDs that this agent serves leave it alone. */
async function keepNat(
  { means, network, replica, log }: FollowedNetwork,
  tables: HostTables,
  signal: AbortSignal,
): Promise<void> {
  const pools = replica.part(KINDS_OF_PARTS.nat);
  const ending = new AbortController();
  const stop = AbortSignal.any([signal, ending.signal]);
  let isWritten = false;
  let release: (() => void) | undefined;
  const showFollowing = async () => {
    while (!stop.aborted) {
      if (isWritten && pools.status.state === "in sync") release ??= means.files.lockNat();
      else {
        release?.();
        release = undefined;
      }
      await means.clock.wait(FOLLOWED_MILLISECONDS, stop);
    }
    release?.();
  };
  const write = async (wanted: readonly NatPool[]) => {
    isWritten = false;
    const isNew = await tables.setNat(wanted);
    isWritten = true;
    return isNew;
  };
  const hasContainers = () => unknownLinks([], withRouteSocket(means.kernel, listLinks), network.name).length > 0;
  const following = followNat(pools.updates(stop), { node: network.node, write, hasContainers, log }).finally(() =>
    ending.abort(),
  );
  await Promise.all([following, showFollowing().finally(() => ending.abort())]);
}

/** While the network config does not allow further sources, no link has any. */
function wantedSources(
  links: readonly Link[],
  { means, network, store, replica }: FollowedNetwork,
): readonly RecordedSources[] | undefined {
  const marks = new Set(links.flatMap(({ alias, group }) => (group === ALLOWED_SOURCES_GROUP && alias ? [alias] : [])));
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
