/**
 * The addresses of tunnels in a pool that was just deleted. The agents of their nodes notice it: they take others, record
 * them, and only then release these. So no address that the record of a node names is ever free.
 *
 *   named by the record of its node ──> left to the agent, and waited for a while
 *   not named                       ──> released here: the node is gone, or its agent stopped half way
 */
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach } from "../../datastore/read-each.ts";
import { formatAddress } from "../../ip/address.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { NODE_ATTRIBUTE } from "../../model/ipam-block.ts";
import { NODE } from "../../model/kinds.ts";
import type { Node } from "../../model/node.ts";
import { recordedTunnelAddress, TUNNEL_ADDRESSES, tunnelTitle } from "../../model/tunnel-address.ts";
import type { Context } from "../command.ts";
import { allocatorFor } from "../ipam/allocator.ts";
import { type Allocation, allocationsOf, blocksWithin } from "../ipam/blocks.ts";
import { claimsWithin, releaseClaims } from "./claims.ts";

const LOOKS = 10;
const PAUSE_MILLISECONDS = 500;

export function isOfTunnel({ secondary }: Allocation): boolean {
  return tunnelTitle(secondary) !== undefined;
}

/** With their blocks. What is named in the end stays. */
export async function releaseLeftTunnels(store: Datastore, range: Prefix, context: Context): Promise<void> {
  for (let look = 1; look <= LOOKS; look += 1) {
    const { readable } = await blocksWithin(store, range);
    const tunnels = readable.flatMap(allocationsOf).filter(isOfTunnel);
    const isNamed = tunnels.length === 0 ? () => false : await readNames(store);
    await release(
      store,
      context,
      tunnels.filter((tunnel) => !isNamed(tunnel)),
    );
    if (!tunnels.some(isNamed)) break;
    if (look < LOOKS) await context.wait(PAUSE_MILLISECONDS);
  }
  const { claims } = await claimsWithin(store, range);
  // A block without a node is deleted with its last address.
  await releaseClaims(store, claims, { context, inUse: "release" });
}

/** Whether the record of its node names an address; a record that cannot be read may. */
async function readNames(store: Datastore): Promise<(tunnel: Allocation) => boolean> {
  const nodes = readEach(await readAllEntries(store, NODE.prefix()), ({ value, key }) => NODE.codec.read(value, key));
  const named = new Set(nodes.readable.flatMap(({ metadata, spec }) => tunnelsOf(metadata.name, spec)));
  const unknown = new Set(nodes.unreadable.map(({ key }) => key));
  return ({ address, secondary }) => {
    const name = secondary[NODE_ATTRIBUTE] ?? "";
    return unknown.has(NODE.key({ name })) || named.has(`${name} ${formatAddress(address)}`);
  };
}

function tunnelsOf(node: string, spec: Node["spec"]): readonly string[] {
  return TUNNEL_ADDRESSES.flatMap(({ kind }) => {
    const address = recordedTunnelAddress(spec, kind);
    return address === undefined ? [] : `${node} ${address}`;
  });
}

async function release(store: Datastore, context: Context, tunnels: readonly Allocation[]): Promise<void> {
  if (tunnels.length === 0) return;
  await allocatorFor(store, context).releaseAddresses(
    tunnels.map(({ address, handle, sequenceNumber }) => ({
      address,
      ...(handle === undefined ? {} : { handle }),
      ...(sequenceNumber === undefined ? {} : { sequenceNumber }),
    })),
  );
}
