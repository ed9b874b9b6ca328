/** What becomes of a block that addresses were given back to: one that is empty and nobody's goes. */
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
