/**
 * Removes stale claims of this host. They are removed with the next commit, and
 * checked only if blocks are read anyway: this never costs a round trip.
 *
 *   the block belongs to another node or to none   the claim is removed
 *   its pool no longer selects the node            claim and block are removed, once the block is empty and has rested
 */
import type { OrderedChange, Wanted } from "../../datastore/datastore.ts";
import { prefixCovers } from "../../ip/prefix.ts";
import { hostAffinity } from "../../model/ipam-block.ts";
import { isEmpty } from "../block.ts";
import { isSelectedBy, whyNotUsable } from "../pools.ts";
import type { HostAffinity } from "../records.ts";
import { endOfClaim } from "../release/end-of-claim.ts";
import { hasResting } from "../rest.ts";
import type { View } from "../view.ts";

/** The rest is left to the next commit. */
const AT_ONCE = 16;

/** The blocks, not read yet, of claims in pools that do not select the node. */
export function unreadDeselected(view: View): readonly Wanted[] {
  if (!view.knowsAffinities()) return [];
  return allAffinities(view)
    .filter((affinity) => view.block(affinity.cidr).kind === "unknown" && isDeselected(view, affinity))
    .slice(0, AT_ONCE)
    .map((affinity) => view.wantedBlock(affinity.cidr));
}

/** `busy`: keys that the commit writes anyway. */
export function staleAffinityChanges(
  view: View,
  node: string,
  { busy, now }: { readonly busy: ReadonlySet<string>; readonly now: Date },
): readonly OrderedChange[] {
  return allAffinities(view)
    .filter((affinity) => !busy.has(affinity.key) && !busy.has(view.blockKey(affinity.cidr)))
    .map((affinity) => endOf(affinity, view, { node, now }))
    .filter((changes) => changes.length > 0)
    .slice(0, AT_ONCE)
    .flat();
}

function endOf(
  affinity: HostAffinity,
  view: View,
  { node, now }: { readonly node: string; readonly now: Date },
): readonly OrderedChange[] {
  const known = view.block(affinity.cidr);
  if (known.kind === "unknown") return [];
  const ending: OrderedChange = { kind: "delete", key: affinity.key, revision: affinity.revision };
  const block = view.blockKey(affinity.cidr);
  if (known.kind === "absent") {
    return isDeselected(view, affinity) ? [{ kind: "expect", key: block, revision: undefined }, ending] : [];
  }
  if (known.block.affinity !== hostAffinity(node)) return [ending];
  if (!isEmpty(known.block) || hasResting(known.block, now) || !isDeselected(view, affinity)) return [];
  return endOfClaim({ node, ...affinity }, { kind: "delete", key: block, revision: known.revision });
}

/** Disabled pools keep their blocks: they may be enabled again. */
function isDeselected(view: View, { cidr }: HostAffinity): boolean {
  const pool = view.pools().find((each) => whyNotUsable(each) === undefined && prefixCovers(each.cidr, cidr));
  return pool !== undefined && !isSelectedBy(pool, { labels: view.nodeLabels() ?? {} });
}

function allAffinities(view: View): readonly HostAffinity[] {
  return [...view.affinities(4), ...view.affinities(6)];
}
