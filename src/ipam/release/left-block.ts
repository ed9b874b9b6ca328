/** Updates a block after a release: an empty block without a node is deleted. */
import type { Change } from "../../datastore/datastore.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import * as keys from "../../model/keys.ts";
import { isEmpty } from "../block.ts";
import { blockChange } from "../records.ts";

export function leftBlockChange(block: IPAMBlock, revision: string): Change {
  if (isEmpty(block) && block.affinity === undefined) {
    return { kind: "delete", key: keys.blockKey(block.cidr), revision };
  }
  return blockChange(block, revision);
}
