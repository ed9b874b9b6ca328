/** Warns about a pool that contains addresses of this host's own networks: pods would hide the machines there. */

import { formatInterfaceAddress, prefixAround, prefixesOverlap } from "../../ip/prefix.ts";
import { type IPPool, poolPrefix } from "../../model/ip-pool.ts";
import type { HostNetwork } from "../main/context.ts";

export async function hostOverlaps(pool: IPPool, context: HostNetwork): Promise<readonly string[]> {
  const cidr = poolPrefix(pool);
  const own = (await context.hostAddresses()).filter(
    ({ address, length }) =>
      address.family === cidr.network.family && prefixesOverlap(prefixAround(address, length), cidr),
  );
  return own.map((address) => {
    const place = `the network of this host's address ${formatInterfaceAddress(address)}`;
    return `pool "${pool.metadata.name}" (${pool.spec.cidr}) overlaps ${place}: pods would hide machines there; use another CIDR`;
  });
}
