/**
 * Whether other hosts learn a route to an address that IPAM does not assign: of the annotation `ipAddrsNoIpam`, or a
 * floating IP. Pure.
 *
 *   pool                without IPAM                           floating
 *   no tunnel           BGP                                    BGP
 *   IPIP                the agents of other nodes, and BGP     BGP: routers; other nodes by way of them
 *   VXLAN               nobody                                 BGP: routers; other nodes by way of them
 *   none at all         nobody                                 nobody
 */
import { type Address, type Family, formatAddress } from "../ip/address.ts";
import { prefixContains } from "../ip/prefix.ts";
import { quoted } from "../quote.ts";
import type { Pool } from "./pools.ts";

export interface Announcement {
  readonly isAnnounced: boolean;
  /** `not announced to other hosts: it is in no pool; arrange a route to it yourself`. */
  readonly text: string;
}

export interface AnnouncingFacts {
  readonly pools: readonly Pick<Pool, "name" | "cidr" | "announcing">[];
  /** Why nothing of the family is announced by BGP: `BGP is disabled in NodeAgentConfiguration`; `undefined` if it is. */
  readonly withoutBgp: (family: Family) => string | undefined;
  /** Why other nodes cannot reach this one through a tunnel: no agent routes on it; `undefined` if they can. */
  readonly withoutRouting: string | undefined;
}

export function announcementOf(
  address: Address,
  use: "without IPAM" | "floating",
  { pools, withoutBgp, withoutRouting }: AnnouncingFacts,
): Announcement {
  const pool = pools.find(({ cidr }) => prefixContains(cidr, address));
  if (pool === undefined) return notAnnounced("it is in no pool");
  const name = `pool ${quoted(pool.name)}`;
  const { tunnel, isExported } = pool.announcing;
  const reason = isExported ? withoutBgp(address.family) : `${name} has disableBGPExport`;
  if (use === "without IPAM" && tunnel === "VXLAN") return notAnnounced(`${name} is in VXLAN mode`);
  if (use === "without IPAM" && tunnel === "IPIP") {
    if (withoutRouting !== undefined) return notAnnounced(withoutRouting);
    const toRouters = reason === undefined ? "announced to routers by BGP" : `not announced to routers: ${reason}`;
    return { isAnnounced: true, text: `routed by the other nodes, because ${name} is in IPIP mode, and ${toRouters}` };
  }
  if (reason !== undefined) return notAnnounced(reason);
  if (tunnel === undefined)
    return { isAnnounced: true, text: `announced to other hosts by BGP: ${name} has no tunnel` };
  const nodes = `${name} is in ${tunnel} mode, so other nodes reach it through a router that has learned it`;
  return { isAnnounced: true, text: `announced by BGP: ${nodes}` };
}

function notAnnounced(reason: string): Announcement {
  return { isAnnounced: false, text: `not announced to other hosts: ${reason}; arrange a route to it yourself` };
}

/** For the log. `place`: the annotation. */
export function describeAnnouncement(address: Address, place: string, { text }: Announcement): string {
  return `"${formatAddress(address)}" (${place}) is ${text}`;
}
