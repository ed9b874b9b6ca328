/** Reads the facts about this host for the admin tool. Loaded only by the commands that need them. */

import { readHostPortState } from "../../chained/portmap/read-table.ts";
import type { Environment } from "../../cni/environment.ts";
import { PluginError } from "../../errors.ts";
import { type AllowedSource, familiesOf } from "../../firewall/allowed-sources.ts";
import { findAllDrops, findPartialDrops } from "../../firewall/forward-chains.ts";
import { POLICY_TABLE } from "../../firewall/policy-table.ts";
import { knowsClusterSources, readAllowedSources } from "../../firewall/source-prefixes.ts";
import { readFloatingState, readGuardState, readNatState } from "../../firewall/table-states.ts";
import { identity } from "../../identity.ts";
import { addressBits } from "../../ip/address.ts";
import { readText } from "../../linux/files.ts";
import { isKernelError } from "../../linux/kernel-error.ts";
import { directNetfilter } from "../../linux/netfilter-access.ts";
import { type NetlinkSocket, ownSockets } from "../../linux/netlink-socket.ts";
import { findTable } from "../../linux/nftables/read.ts";
import { type Link, listLinks } from "../../linux/rtnetlink/link.ts";
import { ALLOWED_SOURCES_GROUP } from "../../linux/rtnetlink/own-devices.ts";
import { listRoutes, MAIN_TABLE, ROUTE_PROTOCOL, type Route } from "../../linux/rtnetlink/route.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import { readSysctl } from "../../linux/sysctl.ts";
import type { AgentFacts, HostFacts, PodLinkFacts } from "./facts.ts";
import { agentState } from "./read-routing-facts.ts";

const LEGACY_TABLES = ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"];

export async function readHostFacts(environment: Environment): Promise<HostFacts> {
  try {
    return await readFacts(environment);
  } catch (cause) {
    if (!isKernelError(cause, "EACCES", "EPERM")) throw cause;
    throw new PluginError("kernel-refused", "Cannot check this host: permission denied", {
      details: "run it as root",
      cause,
    });
  }
}

export async function readAgentFacts(environment: Environment): Promise<AgentFacts> {
  return { agent: agentState(environment), hasPolicyTable: await directNetfilter.withSocket(seesPolicyTable) };
}

function seesPolicyTable(socket: NetlinkSocket): boolean | undefined {
  try {
    return findTable(socket, POLICY_TABLE) !== undefined;
  } catch (failure) {
    if (isKernelError(failure, "EACCES", "EPERM")) return undefined;
    throw failure;
  }
}

/** Netfilter first: its refusal is the one that tells a missing permission. */
async function readFacts(environment: Environment): Promise<HostFacts> {
  return {
    agent: agentState(environment),
    forwarding: {
      ipv4: readSysctl("net/ipv4/ip_forward") === "1",
      ipv6: readSysctl("net/ipv6/conf/all/forwarding") === "1",
    },
    advertisedUplinks: readAdvertisedUplinks(),
    ...(await directNetfilter.withSocket((socket) => ({
      podLinks: readPodLinks(readAllowedSources(socket)),
      knowsClusterSources: knowsClusterSources(socket),
      droppingChains: findAllDrops(socket),
      partlyDroppingChains: findPartialDrops(socket),
      hasPolicyTable: findTable(socket, POLICY_TABLE) !== undefined,
      tables: {
        nat: readNatState(socket),
        floating: readFloatingState(socket),
        guard: readGuardState(socket),
        hostPorts: readHostPortState(socket),
      },
    }))),
    hasLegacyFilter: LEGACY_TABLES.some((path) => readText(path)?.split("\n").includes("filter") === true),
  };
}

/** With `accept_ra` 1 the kernel itself follows router advertisements, but not on a host that forwards. */
function readAdvertisedUplinks(): readonly string[] {
  return withRouteSocket(ownSockets, (socket) => {
    const advertised = listRoutes(socket).filter(
      ({ destination, protocol }) =>
        destination.network.family === 6 && destination.length === 0 && protocol === ROUTE_PROTOCOL.routerAdvertisement,
    );
    const indices = new Set(advertised.map(({ linkIndex }) => linkIndex));
    return listLinks(socket).flatMap(({ index, name }) =>
      indices.has(index) && readSysctl(`net/ipv6/conf/${name}/accept_ra`) === "1" ? [name] : [],
    );
  });
}

function readPodLinks(allowed: readonly AllowedSource[]): readonly PodLinkFacts[] {
  return withRouteSocket(ownSockets, (socket) => {
    const routes = listRoutes(socket).filter(({ table }) => table === MAIN_TABLE);
    return listLinks(socket)
      .filter(({ name, kind }) => kind === "veth" && name.startsWith(identity.interfacePrefix))
      .map((link) => podLinkFacts(link, allowed, routes));
  });
}

/** The larger value of a link and of all links takes effect. */
function podLinkFacts(
  { name, index, group, alias }: Link,
  allowed: readonly AllowedSource[],
  routes: readonly Route[],
): PodLinkFacts {
  const reversePaths = [name, "all"].map((each) => Number(readSysctl(`net/ipv4/conf/${each}/rp_filter`) ?? 0));
  const servesLoopback = readSysctl(`net/ipv4/conf/${name}/route_localnet`) === "1";
  const routed = routes.filter(({ linkIndex, destination: { length, network } }) => {
    return linkIndex === index && length === addressBits(network.family);
  });
  return {
    name,
    ...(alias === undefined ? {} : { alias }),
    families: ([4, 6] as const).filter((family) =>
      routed.some(({ destination }) => destination.network.family === family),
    ),
    reversePath: Math.max(...reversePaths),
    servesLoopback,
    allowsSources: group === ALLOWED_SOURCES_GROUP,
    allowedFamilies: familiesOf(index, allowed),
  };
}
