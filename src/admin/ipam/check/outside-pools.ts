/** What an operator can do about an address in use that no pool contains: only they know whether the pool is to return. Pure. */
import { API_VERSION, identity } from "../../../identity.ts";
import { type Address, formatAddress } from "../../../ip/address.ts";
import { formatPrefix, type Prefix, prefixesOverlap } from "../../../ip/prefix.ts";

export interface OutsidePools {
  readonly address: Address;
  readonly block: Prefix;
  readonly pools: readonly Prefix[];
  /** The endpoints that name the address. */
  readonly users: readonly string[];
}

export function remedyOutsidePools({ address, block, pools, users }: OutsidePools): string {
  const release = `"${identity.adminTool} ipam release --ip ${formatAddress(address)}${users.length > 0 ? " --force" : ""}"`;
  const unused =
    users.length > 0
      ? `it is released when its container ends (${users.join(", ")}); if that no longer exists, ${release}`
      : `if no workload uses it, ${release}`;
  // A pool cannot be created beside one that the block reaches into.
  return pools.some((pool) => prefixesOverlap(pool, block)) ? unused : `${unused}; to keep it, ${creation(block)}`;
}

/** The agent of the node replaces that of a tunnel by itself, unless it cannot. */
export function remedyOfTunnelOutsidePools(address: Address, node: string): string {
  const release = `"${identity.adminTool} ipam release --ip ${formatAddress(address)}"`;
  return (
    `the agent of node ${node} replaces it: start the agent if it is not running, or make room in an enabled pool ` +
    `that allows the use "Tunnel"; if the node no longer exists, ${release}`
  );
}

function creation(block: Prefix): string {
  const cidr = formatPrefix(block);
  const manifest = JSON.stringify({
    apiVersion: API_VERSION,
    kind: "IPPool",
    metadata: { name: `restored-${cidr.replace(/[^0-9a-f]/g, "-")}` },
    spec: { cidr, blockSize: block.length, disabled: true },
  });
  return `create a pool from which nothing else is assigned: echo '${manifest}' | ${identity.adminTool} create -f -`;
}
