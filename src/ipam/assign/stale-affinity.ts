/** Claims of this host on blocks that turned out to be another's, or nobody's: they go with the next commit. */
import type { Change } from "../../datastore/datastore.ts";
import { hostAffinity } from "../../model/ipam-block.ts";
import type { View } from "../view.ts";

/** The rest is left to the next commit. */
const AT_ONCE = 16;

export function staleAffinityChanges(view: View, node: string): readonly Change[] {
  const stale = [...view.affinities(4), ...view.affinities(6)].flatMap((affinity): Change[] => {
    const known = view.block(affinity.cidr);
    if (known.kind !== "present" || known.block.affinity === hostAffinity(node)) return [];
    return [{ kind: "delete", key: affinity.key, revision: affinity.revision }];
  });
  return stale.slice(0, AT_ONCE);
}
