/**
 * Confirms claims on blocks of this host that are unconfirmed or missing, because
 * a call was killed between the block and its claim, or while it released the
 * claim. An assignment from such a block confirms the claim after a write of the
 * block, so that a concurrent release of the claim loses its race.
 */
import type { OrderedChange } from "../../datastore/datastore.ts";
import { hostAffinity, type IPAMBlock } from "../../model/ipam-block.ts";
import { touched } from "../block.ts";
import { affinityChange, blockChange } from "../records.ts";
import type { View } from "../view.ts";

/** `busy`: keys that the commit writes earlier. */
export function unconfirmedClaimChanges(
  view: View,
  node: string,
  { held, busy }: { readonly held: readonly IPAMBlock[]; readonly busy: ReadonlySet<string> },
): readonly OrderedChange[] {
  return held.flatMap(({ cidr }) => {
    const known = view.block(cidr);
    const affinity = view.affinity(cidr);
    if (known.kind !== "present" || known.block.affinity !== hostAffinity(node)) return [];
    if (affinity?.state === "confirmed") return [];
    const touching = busy.has(view.blockKey(cidr)) ? [] : [blockChange(touched(known.block), known.revision)];
    return [...touching, affinityChange({ node, cidr }, "confirmed", affinity?.revision)];
  });
}
