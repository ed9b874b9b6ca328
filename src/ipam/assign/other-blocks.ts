/**
 * Blocks of another length than their pool's. The API server refuses to change `blockSize`, but one without validation
 * rules does not, and a new block would then overlap the old ones: one address would be assigned twice. So no block is
 * created in a pool that has a block of another length.
 *
 *   claims of this node       always looked at; one of the pool's length proves that there was no other when it was made
 *   all blocks of the cluster  listed only for the first block of a node in a pool that was edited
 */
import type { Wanted } from "../../datastore/datastore.ts";
import { formatPrefix, type Prefix, prefixCovers } from "../../ip/prefix.ts";
import { parseKey } from "../../model/keys.ts";
import type { Pool } from "../pools.ts";
import type { Search } from "./choice.ts";

const PAGE = 512;

export type OtherBlocks =
  | { readonly kind: "none" }
  | { readonly kind: "found"; readonly reason: string }
  | { readonly kind: "unread"; readonly wanted: Wanted };

const NONE: OtherBlocks = { kind: "none" };

export function otherBlocksIn(search: Search, pool: Pool): OtherBlocks {
  const { view, family } = search;
  const inPool = (cidrs: readonly Prefix[]) => cidrs.filter((cidr) => prefixCovers(pool.cidr, cidr));
  if (pool.wasEdited !== true) return NONE;
  const own = inPool(view.affinities(family).map(({ cidr }) => cidr));
  const [other] = own.filter(({ length }) => length !== pool.blockLength);
  if (other) return found(pool, other);
  if (own.length > 0) return NONE;
  const listed = listBlocks(search);
  const [foreign] = inPool(listed.cidrs).filter(({ length }) => length !== pool.blockLength);
  if (foreign) return found(pool, foreign);
  return listed.next === undefined ? NONE : { kind: "unread", wanted: listed.next };
}

function found({ name, blockLength }: Pool, cidr: Prefix): OtherBlocks {
  const reason =
    `pool "${name}" has blockSize ${blockLength}, but block ${formatPrefix(cidr)} in it was made with ${cidr.length}, and ` +
    `blocks must not overlap: set blockSize back to ${cidr.length}, or create another pool and disable this one`;
  return { kind: "found", reason };
}

/** Those that were read so far, and the next page. */
function listBlocks({ view, family }: Search): { readonly cidrs: readonly Prefix[]; readonly next?: Wanted } {
  const cidrs: Prefix[] = [];
  let after: string | undefined;
  for (;;) {
    const wanted = view.wantedBlockPage(family, PAGE, after);
    const page = view.answer(wanted);
    if (page === undefined) return { cidrs, next: wanted };
    for (const { key } of page) {
      const parts = parseKey(key);
      if (parts?.kind === "block") cidrs.push(parts.cidr);
    }
    after = page.at(-1)?.key;
    if (page.length < PAGE) return { cidrs };
  }
}
