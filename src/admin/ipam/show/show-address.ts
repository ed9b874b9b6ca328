/** `ipam show --ip`: the owner of an address. */

import type { Datastore } from "../../../datastore/datastore.ts";
import { type Address, formatAddress, parseAddress } from "../../../ip/address.ts";
import { formatPrefix, prefixContains } from "../../../ip/prefix.ts";
import { datastoreTime } from "../../../ipam/allocator-means.ts";
import { affineNode } from "../../../model/ipam-block.ts";
import { KEPT_ATTRIBUTE } from "../../../model/kept-address.ts";
import { tunnelTitle } from "../../../model/tunnel-address.ts";
import { quoted } from "../../../quote.ts";
import { type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Clock, ClusterAccess } from "../../main/context.ts";
import { printable } from "../../terminal/printable.ts";
import { allocationAt, blocksOf } from "../address-blocks.ts";
import { findLists, listsWith } from "../address-lists.ts";
import { keptOfAllocation } from "../blocks.ts";
import { type KeptState, keptState } from "../kept-state.ts";
import { findPools, findReserved } from "../pools.ts";
import { reportUnreadable } from "../report-unreadable.ts";
import { describeRest, type RestState, restState } from "../rest-state.ts";

export function requireAddress(text: string): Address {
  const address = parseAddress(text);
  if (address) return address;
  throw new UsageError(`${quoted(text)} is not an IP address; expected for example 10.0.0.1 or fd00::1`);
}

export async function showAddress(
  store: Datastore,
  address: Address,
  { context, given }: { readonly context: ClusterAccess & Clock; readonly given: Given },
): Promise<ExitCode> {
  const blocks = await blocksOf(store, address);
  const block = blocks.readable.find((each) => allocationAt(each, address)) ?? blocks.readable[0];
  const allocation = block && allocationAt(block, address);
  const pools = await findPools(store);
  const pool = pools.readable.find(({ cidr }) => prefixContains(cidr, address));
  const reserved = await findReserved(store);
  const isReserved = reserved.readable.some((prefix) => prefixContains(prefix, address));
  // Only unreadable records that could change the result are reported.
  const relevant = [
    ...blocks.unreadable,
    ...(pool ? [] : pools.unreadable),
    ...(allocation || isReserved || !pool ? [] : reserved.unreadable),
  ];
  const found = allocation && keptOfAllocation(allocation);
  const kept = found && keptState(found);
  const settled = !pool ? "in no pool" : isReserved ? "reserved" : "free";
  const released = block && !allocation ? restState(block, address, datastoreTime(store, context)) : undefined;
  const lists = await findLists(store);
  const listed = listsWith(lists.readable, address);
  const facts: Facts = {
    address: formatAddress(address),
    state: allocation ? (kept?.state ?? "in use") : relevant.length > 0 ? "unknown" : settled,
    pool: pool?.name,
    block: block && formatPrefix(block.cidr),
    blockOf: block && affineNode(block),
    handle: allocation?.handle,
    node: allocation?.secondary["node"],
    since: allocation?.secondary["timestamp"],
    ...(kept === undefined ? {} : { kept }),
    ...(allocation ? { attributes: allocation.secondary } : {}),
    ...(released === undefined ? {} : { released }),
    ...(listed.length === 0 ? {} : { lists: listed }),
  };
  context.stdout(
    wantsJson(given)
      ? `${JSON.stringify(facts, undefined, 2)}\n`
      : asText(facts, pools.unreadable.length > 0 ? "unknown" : "none"),
  );
  return reportUnreadable(context, [...relevant, ...lists.unreadable]);
}

interface Facts {
  readonly address: string;
  /** `unknown`: it depends on a record that is unreadable. */
  readonly state: "in use" | "waiting" | "reserved" | "free" | "in no pool" | "unknown";
  readonly pool: string | undefined;
  readonly block: string | undefined;
  readonly blockOf: string | undefined;
  readonly handle: string | undefined;
  readonly node: string | undefined;
  readonly since: string | undefined;
  readonly kept?: KeptState;
  readonly attributes?: Readonly<Record<string, string>>;
  /** It rests: a named request of another owner has to wait. */
  readonly released?: RestState;
  /** The IPAddressLists that have it. */
  readonly lists?: readonly string[];
}

const OWN_LINES: ReadonlySet<string> = new Set(["node", "timestamp", KEPT_ATTRIBUTE]);

function asText(facts: Facts, noPool: string): string {
  const {
    address,
    state,
    pool,
    block,
    blockOf: owner,
    handle,
    node,
    since,
    kept,
    attributes = {},
    released,
    lists,
  } = facts;
  const tunnel = tunnelTitle(attributes);
  const lines: readonly (readonly [string, string | undefined])[] = [
    ["Address", `${address} (${state})`],
    ["Pool", pool ?? noPool],
    ["Lists", lists?.join(", ")],
    ["Block", block && `${block} (${owner === undefined ? "no node" : `node ${owner}`})`],
    ["Use", tunnel === undefined ? undefined : `${tunnel} of node ${node ?? "?"}`],
    ["Handle", handle],
    ["Node", node],
    ["Kept for", kept?.for],
    ["Since", since],
    ["Until", kept?.until],
    ["Released", released && describeRest(released)],
    ...Object.entries(attributes)
      .filter(([name]) => !OWN_LINES.has(name))
      .map(([name, value]) => [`${name.charAt(0).toUpperCase()}${name.slice(1)}`, value] as const),
  ];
  return lines
    .flatMap(([name, value]) =>
      value === undefined ? [] : [`${`${printable(name)}:`.padEnd(12)}${printable(value)}\n`],
    )
    .join("");
}
