/**
 * Which addresses an attachment asks the allocator for.
 *
 *   annotations (not yet)  >  requests of the runtime  >  network config  >  node selectors of the pools
 *
 * For each family the first source that asks decides; a family that the runtime
 * does not ask for is assigned as the config says. An address that the runtime
 * asks for must be in the pools that the config lists for its family. If the
 * config lists none, the allocator takes any pool that selects the node.
 * Pure.
 */
import type { NetworkConfig } from "../config/network-config.ts";
import { PluginError } from "../errors.ts";
import { type Family, formatAddress } from "../ip/address.ts";
import type { Wish } from "./request.ts";
import type { RequestedAddress } from "./requested-addresses.ts";

/** What each source asks for. */
export interface WishSources {
  readonly ipam: Pick<NetworkConfig["ipam"], "assignIpv4" | "assignIpv6" | "ipv4Pools" | "ipv6Pools">;
  readonly requested: readonly RequestedAddress[];
}

export function wishesOf({ ipam, requested }: WishSources): readonly Wish[] {
  const wishes: Wish[] = [];
  const given4 = onlyOne(requested, 4);
  if (given4 !== undefined) wishes.push({ kind: "given", address: given4.address, pools: asked(ipam.ipv4Pools) });
  else if (ipam.assignIpv4) wishes.push({ kind: "automatic", family: 4, pools: asked(ipam.ipv4Pools) });
  const given6 = onlyOne(requested, 6);
  if (given6 !== undefined) wishes.push({ kind: "given", address: given6.address, pools: asked(ipam.ipv6Pools) });
  else if (ipam.assignIpv6) wishes.push({ kind: "automatic", family: 6, pools: asked(ipam.ipv6Pools) });
  if (wishes.length > 0) return wishes;
  throw new PluginError(
    "config-invalid",
    'Cannot assign an address: "ipam.assign_ipv4" and "ipam.assign_ipv6" are both "false", and no address was requested',
  );
}

function onlyOne(requested: readonly RequestedAddress[], family: Family): RequestedAddress | undefined {
  let first: RequestedAddress | undefined;
  for (const each of requested) {
    if (each.address.family !== family) continue;
    if (first !== undefined) throw tooMany(first, each);
    first = each;
  }
  return first;
}

function tooMany(first: RequestedAddress, second: RequestedAddress): PluginError {
  const { family } = first.address;
  return new PluginError(
    "field-unsupported",
    `Cannot assign two IPv${family} addresses to one interface: ${shown(first)} and ${shown(second)} are requested`,
    { details: `request one IPv${family} address` },
  );
}

function shown({ address, place }: RequestedAddress): string {
  return `"${formatAddress(address)}" (${place})`;
}

/** An empty list does not restrict the pools. */
function asked(pools: readonly string[] | undefined): readonly string[] | undefined {
  return pools === undefined || pools.length === 0 ? undefined : pools;
}
