import type { Datastore } from "../../datastore/datastore.ts";
import { formatPrefix, prefixesOverlap } from "../../ip/prefix.ts";
import { ipPool, poolPrefix } from "../../model/ip-pool.ts";
import type { Problem } from "../../model/problem.ts";
import type { Resource } from "../../model/resource.ts";
import { readBlocks } from "../ipam/blocks.ts";

/** Blocks that a former pool left in use must fit into the new one: one address must never lie in two blocks. */
export async function checkPoolBlocks(store: Datastore, resource: Resource): Promise<readonly Problem[]> {
  const pool = ipPool.readObject(resource, resource.metadata.name);
  const range = poolPrefix(pool);
  const blocks = await readBlocks(store, range.network.family);
  const misfit = blocks.find(
    ({ cidr }) => prefixesOverlap(range, cidr) && (cidr.length !== pool.spec.blockSize || cidr.length < range.length),
  );
  if (!misfit) return [];
  const message = `does not fit block ${formatPrefix(misfit.cidr)}, which is still in use; use ${misfit.cidr.length}, or another range`;
  return [{ path: "spec.blockSize", value: pool.spec.blockSize, message }];
}
