/** Finds and releases nodes' claims on blocks: both in blocks and in affinities, since a crash may have left one without the other. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import type { Unreadable } from "../../datastore/read-each.ts";
import { type Prefix, prefixCovers } from "../../ip/prefix.ts";
import type { AffinityRequest } from "../../ipam/release/decide-affinity.ts";
import { affineNode, type IPAMBlock } from "../../model/ipam-block.ts";
import { ALL_AFFINITIES_PREFIX, affinitiesPrefix, affinityKey, blockKey, parseKey } from "../../model/keys.ts";
import type { Context } from "../command.ts";
import { allocatorFor } from "../ipam/allocator.ts";
import { blocksWithin, findBlocks } from "../ipam/blocks.ts";
import { openProgress } from "../progress.ts";

export interface Claim {
  readonly node: string;
  readonly cidr: Prefix;
}

/** Claims that can be released, and unreadable blocks, on which claims cannot be released. */
interface Claims {
  readonly claims: readonly Claim[];
  readonly unreadable: readonly Unreadable[];
}

export async function claimsWithin(store: Datastore, range: Prefix): Promise<Claims> {
  const blocks = await blocksWithin(store, range);
  const claims = claimsOf(blocks.readable, await readAllEntries(store, ALL_AFFINITIES_PREFIX));
  return withoutUnreadable(
    claims.filter(({ cidr }) => prefixCovers(range, cidr)),
    blocks.unreadable,
  );
}

export async function claimsOfNode(store: Datastore, node: string): Promise<Claims> {
  const blocks = await findBlocks(store);
  const claims = claimsOf(blocks.readable, await readAllEntries(store, affinitiesPrefix(node)));
  return withoutUnreadable(
    claims.filter((claim) => claim.node === node),
    blocks.unreadable,
  );
}

/** Returns the claims that were released; others were already gone. */
export async function releaseClaims(
  store: Datastore,
  claims: readonly Claim[],
  { context, inUse }: { readonly context: Context; readonly inUse: AffinityRequest["inUse"] },
): Promise<readonly Claim[]> {
  const allocator = allocatorFor(store, context);
  const progress = openProgress(context, "Releasing blocks", claims.length);
  const released: Claim[] = [];
  for (const claim of claims) {
    const outcome = await allocator.releaseAffinity({ node: claim.node, block: claim.cidr, inUse, resting: "forget" });
    if (outcome === "released") released.push(claim);
    progress.step();
  }
  progress.end();
  return released;
}

function withoutUnreadable(claims: readonly Claim[], blocks: readonly Unreadable[]): Claims {
  const isOn = (claim: Claim, { key }: Unreadable) => blockKey(claim.cidr) === key;
  return {
    claims: claims.filter((claim) => !blocks.some((block) => isOn(claim, block))),
    unreadable: blocks.filter((block) => claims.some((claim) => isOn(claim, block))),
  };
}

function claimsOf(blocks: readonly IPAMBlock[], affinities: readonly Entry[]): readonly Claim[] {
  const inBlocks = blocks.flatMap((block): Claim[] => {
    const node = affineNode(block);
    return node === undefined ? [] : [{ node, cidr: block.cidr }];
  });
  const inAffinities = affinities.flatMap(({ key }): Claim[] => {
    const parts = parseKey(key);
    return parts?.kind === "affinity" ? [parts] : [];
  });
  return [
    ...new Map([...inBlocks, ...inAffinities].map((claim) => [affinityKey(claim.node, claim.cidr), claim])).values(),
  ];
}
