/**
 * Which addresses an attachment requests.
 *
 *   annotations  >  CNI_ARGS and the network config  >  node selectors of the pools
 *
 * The first source that is set decides. The allocator evaluates the last one: a
 * request without pools may use any pool that selects the node. Pure.
 */
import type { CniArguments } from "../cni/arguments.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import { PluginError } from "../errors.ts";
import { type Address, parseAddress, unmapAddress } from "../ip/address.ts";
import { quoted } from "../quote.ts";
import type { Wish } from "./request.ts";

/** The request of each source; `undefined` means that it is not set. */
export interface WishSources {
  readonly ipam: Pick<NetworkConfig["ipam"], "assignIpv4" | "assignIpv6" | "ipv4Pools" | "ipv6Pools">;
  /** `IP=` of CNI_ARGS. */
  readonly args: Pick<CniArguments, "ip">;
}

export function wishesOf({ ipam, args }: WishSources): readonly Wish[] {
  if (args.ip !== undefined) return [{ kind: "given", address: requestedAddress(args.ip) }];

  const wishes: Wish[] = [];
  if (ipam.assignIpv4) wishes.push({ kind: "automatic", family: 4, pools: requestedPools(ipam.ipv4Pools) });
  if (ipam.assignIpv6) wishes.push({ kind: "automatic", family: 6, pools: requestedPools(ipam.ipv6Pools) });
  if (wishes.length > 0) return wishes;
  throw new PluginError(
    "config-invalid",
    'Cannot assign an address: "ipam.assign_ipv4" and "ipam.assign_ipv6" are both "false", and no address was requested',
  );
}

/** An empty list means no request. */
function requestedPools(pools: readonly string[] | undefined): readonly string[] | undefined {
  return pools === undefined || pools.length === 0 ? undefined : pools;
}

function requestedAddress(text: string): Address {
  const address = parseAddress(text);
  if (address !== undefined) return unmapAddress(address);
  throw new PluginError("environment-invalid", `Cannot use IP of CNI_ARGS: ${quoted(text)} is not an IP address`);
}
