/**
 * Whether other hosts learn a route to an address that IPAM does not assign: of the annotation `ipAddrsNoIpam`, or a
 * floating IP. Blocks are routed in every mode; a single address is announced by BGP alone. Pure.
 */
import { type Address, formatAddress } from "../ip/address.ts";
import { prefixContains } from "../ip/prefix.ts";
import { quoted } from "../quote.ts";
import type { Pool } from "./pools.ts";

export interface Announcement {
  readonly isAnnounced: boolean;
  /** `not announced to other hosts: it is in no pool; arrange a route to it yourself`. */
  readonly text: string;
}

export function announcementOf(
  address: Address,
  pools: readonly Pick<Pool, "name" | "cidr" | "unannounced">[],
): Announcement {
  const pool = pools.find(({ cidr }) => prefixContains(cidr, address));
  if (pool === undefined) return notAnnounced("it is in no pool");
  const name = `pool ${quoted(pool.name)}`;
  if (pool.unannounced !== undefined) return notAnnounced(`${name} ${pool.unannounced}`);
  return { isAnnounced: true, text: `announced to other hosts by BGP: ${name} has no tunnel` };
}

export function notAnnounced(reason: string): Announcement {
  return { isAnnounced: false, text: `not announced to other hosts: ${reason}; arrange a route to it yourself` };
}

/** For the log. `place`: the annotation. */
export function describeAnnouncement(address: Address, place: string, { text }: Announcement): string {
  return `"${formatAddress(address)}" (${place}) is ${text}`;
}
