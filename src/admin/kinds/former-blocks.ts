import type { Datastore } from "../../datastore/datastore.ts";
import type { Unreadable } from "../../datastore/read-each.ts";
import { PluginError } from "../../errors.ts";
import { formatPrefix, type Prefix, prefixesOverlap } from "../../ip/prefix.ts";
import { type IPPool, poolPrefix } from "../../model/ip-pool.ts";
import type { Problem } from "../../model/problem.ts";
import { blockAt, findBlocks } from "../ipam/blocks.ts";
import { ipamRecordRemedy } from "../resources/ipam-record-remedy.ts";

/** Blocks still in use from a former pool must fit into the new one: an address must never be in two blocks. */
export async function checkPoolBlocks(store: Datastore, pool: IPPool): Promise<readonly Problem[]> {
  const range = poolPrefix(pool);
  const { readable, unreadable } = await findBlocks(store, range.network.family);
  const misfit = [...readable.map(({ cidr }) => cidr), ...unreadable.map(placeOf)].find(
    (cidr) => prefixesOverlap(range, cidr) && (cidr.length !== pool.spec.blockSize || cidr.length < range.length),
  );
  if (!misfit) return [];
  const message = `does not fit block ${formatPrefix(misfit)}, which is still in use; use ${misfit.length}, or another CIDR`;
  return [{ path: "spec.blockSize", value: pool.spec.blockSize, message }];
}

/** The CIDR of an unreadable block, from its key. */
function placeOf({ key, failure }: Unreadable): Prefix {
  const cidr = blockAt(key);
  if (cidr) return cidr;
  throw new PluginError(failure.kind, failure.message, { details: ipamRecordRemedy(key), cause: failure });
}
