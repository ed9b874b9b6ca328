import type { Datastore } from "../../../datastore/datastore.ts";
import type { Prefix } from "../../../ip/prefix.ts";
import { touched } from "../../../ipam/block.ts";
import { affinityChange, blockChange } from "../../../ipam/records.ts";
import { affineNode, readBlock } from "../../../model/ipam-block.ts";
import { affinityKey, blockKey } from "../../../model/keys.ts";

/**
 * Confirms the affinity of a node for its block; does nothing if the block belongs to another node. The block is written
 * first, so that a concurrent release of the affinity fails.
 */
export async function confirmAffinity(cidr: Prefix, node: string, store: Datastore): Promise<void> {
  const keys = [blockKey(cidr), affinityKey(node, cidr)];
  const { answers } = await store.read(keys.map((key) => ({ kind: "key", key })));
  const [[entry] = [], [affinity] = []] = answers;
  const block = entry && readBlock(entry.value, entry.key);
  if (!block || affineNode(block) !== node) return;
  await store.commit([
    blockChange(touched(block), entry.revision),
    affinityChange({ node, cidr }, "confirmed", affinity?.revision),
  ]);
}
