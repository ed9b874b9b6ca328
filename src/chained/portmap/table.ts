/**
 * The names in the table of one family, and what shows quickly whether it is
 * complete. Its rules are in rules.ts, which is loaded only if the table is missing.
 */

import { identity } from "../../identity.ts";
import { addressBits, type Family } from "../../ip/address.ts";
import { type Prefix, prefixAround } from "../../ip/prefix.ts";
import type { TableReference } from "../../linux/nftables/ruleset.ts";

export const SET = {
  ports: "ports",
  owners: "owners",
  attachments: "attachments",
  sources: "sources",
  counted: "single",
  hostLoopback: "host-loopback",
  loopbackLinks: "loopback-links",
} as const;

export const CHAIN = {
  toPods: "to-pods",
  prerouting: "prerouting",
  output: "output",
  postrouting: "postrouting",
  neighbours: "neighbours",
  guard: "guard",
} as const;

/** How many rules each chain has; `neighbours` has as many as prefix lengths are in use. */
export const RULES_PER_CHAIN: Readonly<Record<Family, readonly (readonly [chain: string, count: number])[]>> = {
  4: [
    [CHAIN.toPods, 2],
    [CHAIN.prerouting, 1],
    [CHAIN.output, 3],
    [CHAIN.postrouting, 5],
    [CHAIN.guard, 2],
  ],
  6: [
    [CHAIN.toPods, 2],
    [CHAIN.prerouting, 1],
    [CHAIN.output, 1],
    [CHAIN.postrouting, 4],
  ],
};

export const LOOPBACK: Prefix = prefixAround({ family: 4, value: 0x7f000000n }, 8);

export function tableOf(family: Family): TableReference {
  return { family: family === 4 ? "ip" : "ip6", name: identity.hostPortTable };
}

/** Other lengths are covered by rules of `postrouting`. */
export function needsNeighbourRule(family: Family, length: number): boolean {
  return length !== 0 && length !== addressBits(family) && !(family === 4 && length === LOOPBACK.length);
}

/** Identifies a neighbour rule. */
export function neighbourComment(length: number): string {
  return `neighbours in a /${length}`;
}
