/**
 * What a deleted node leaves in the address management: its claims go, and with
 * them the blocks that are empty. A block in use becomes nobody's and goes with
 * its last address. A node that still runs may claim again.
 */
import { counted } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import type { Unreadable } from "../../datastore/read-each.ts";
import { PluginError } from "../../errors.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import type { ResourceName } from "../../model/keys.ts";
import type { Context } from "../command.ts";
import { allocationsOf, findBlocks } from "../ipam/blocks.ts";
import { type Claim, claimsOfNode, releaseClaims } from "./claims.ts";
import type { Done } from "./done.ts";
import { wayOutOfRecord } from "./record-way-out.ts";

/** Without a note: there was nothing to release. Fails, after all others, for a claim on a block that cannot be read. */
export async function releaseNode(
  store: Datastore,
  { name: node }: ResourceName,
  context: Context,
): Promise<Pick<Done, "note">> {
  const { claims, unreadable } = await claimsOfNode(store, node);
  const released = await releaseClaims(store, claims, { context, inUse: "release" });
  if (unreadable[0]) throw claimLeft(node, unreadable[0]);
  if (released.length === 0) return {};
  const its = released.length === 1 ? "its claim on 1 block was" : `its claims on ${released.length} blocks were`;
  const count = await countLeft(store, released);
  const left =
    count === 0 ? "" : `; ${counted(count, "address stays", "addresses stay")} in use in blocks that are no node's now`;
  return { note: `${its} released${left}` };
}

/** The addresses in blocks that lost their node and were not empty. */
async function countLeft(store: Datastore, released: readonly Claim[]): Promise<number> {
  const names = new Set(released.map(({ cidr }) => formatPrefix(cidr)));
  const blocks = await findBlocks(store);
  const left = blocks.readable.filter(({ cidr, affinity }) => affinity === undefined && names.has(formatPrefix(cidr)));
  return left.flatMap(allocationsOf).length;
}

function claimLeft(node: string, { key, failure }: Unreadable): PluginError {
  return new PluginError(
    failure.kind,
    `Cannot release a claim of node "${node}", whose record and other claims are gone: ${failure.message}`,
    { details: `${wayOutOfRecord(key)}; then delete the node again`, cause: failure },
  );
}
