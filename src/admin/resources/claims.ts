/** Nodes' claims on blocks, and their end. As blocks tell it and as nodes tell it: a crash may have left one without the other. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/read-all.ts";
import { type Prefix, prefixCovers } from "../../ip/prefix.ts";
import type { AffinityRequest } from "../../ipam/release/decide-affinity.ts";
import { affineNode, type IPAMBlock } from "../../model/ipam-block.ts";
import { ALL_AFFINITIES_PREFIX, affinitiesPrefix, affinityKey, parseKey } from "../../model/keys.ts";
import type { Context } from "../command.ts";
import { allocatorFor } from "../ipam/allocator.ts";
import { blocksWithin, readAllBlocks } from "../ipam/blocks.ts";
import { openProgress } from "../progress.ts";

export interface Claim {
  readonly node: string;
  readonly cidr: Prefix;
}

export async function claimsWithin(store: Datastore, range: Prefix): Promise<readonly Claim[]> {
  const claims = claimsOf(await blocksWithin(store, range), await readAllEntries(store, ALL_AFFINITIES_PREFIX));
  return claims.filter(({ cidr }) => prefixCovers(range, cidr));
}

export async function claimsOfNode(store: Datastore, node: string): Promise<readonly Claim[]> {
  const claims = claimsOf(await readAllBlocks(store), await readAllEntries(store, affinitiesPrefix(node)));
  return claims.filter((claim) => claim.node === node);
}

/** Answers those that were still there to be released. */
export async function releaseClaims(
  store: Datastore,
  claims: readonly Claim[],
  { context, inUse }: { readonly context: Context; readonly inUse: AffinityRequest["inUse"] },
): Promise<readonly Claim[]> {
  const allocator = allocatorFor(store, context);
  const progress = openProgress(context, "Releasing blocks", claims.length);
  const released: Claim[] = [];
  for (const claim of claims) {
    const outcome = await allocator.releaseAffinity({ node: claim.node, block: claim.cidr, inUse });
    if (outcome === "released") released.push(claim);
    progress.step();
  }
  progress.end();
  return released;
}

function claimsOf(blocks: readonly IPAMBlock[], affinities: readonly Entry[]): readonly Claim[] {
  const ofBlocks = blocks.flatMap((block): Claim[] => {
    const node = affineNode(block);
    return node === undefined ? [] : [{ node, cidr: block.cidr }];
  });
  const ofNodes = affinities.flatMap(({ key }): Claim[] => {
    const parts = parseKey(key);
    return parts?.kind === "affinity" ? [parts] : [];
  });
  return [...new Map([...ofBlocks, ...ofNodes].map((claim) => [affinityKey(claim.node, claim.cidr), claim])).values()];
}
