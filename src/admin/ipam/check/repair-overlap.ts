/**
 * Merges blocks that overlap (`ipam/merge-blocks.ts`), in an order in which every
 * address is allocated, and counted by its handle, wherever a crash happens:
 *
 *   missing blocks, empty -> handles count the new places too -> blocks get the addresses
 *   -> surplus blocks and their affinities are deleted -> handles count exactly
 *
 * Every change is guarded by the revision it was decided from: after a lost race the
 * next run continues.
 */
import type { Change, Datastore, OrderedChange } from "../../../datastore/datastore.ts";
import { MOST_IN_ONE_REQUEST } from "../../../datastore/preconditions.ts";
import { identity } from "../../../identity.ts";
import { formatAddress } from "../../../ip/address.ts";
import { formatPrefix, type Prefix, prefixCovers } from "../../../ip/prefix.ts";
import { emptyBlock, ordinalsOf } from "../../../ipam/block.ts";
import { type Contradiction, type Merged, mergeBlocks } from "../../../ipam/merge-blocks.ts";
import { blockChange, decodeAffinity, decodeBlock, decodeHandle, handleRecordChange } from "../../../ipam/records.ts";
import { endOfClaim } from "../../../ipam/release/end-of-claim.ts";
import { affineNode, type IPAMBlock } from "../../../model/ipam-block.ts";
import { affinityKey, blockKey, handleKey } from "../../../model/keys.ts";
import { findPools } from "../pools.ts";
import { confirmAffinity } from "./confirm-affinity.ts";
import type { RepairContext } from "./repair-context.ts";

/** Returns what the operator can do if the blocks contradict each other. */
export async function repairOverlap(inner: Prefix, context: RepairContext): Promise<string | undefined> {
  const { store, records, allocator } = context;
  const cidrs = records.blocks.map(({ cidr }) => cidr);
  const [outer] = cidrs.filter((cidr) => prefixCovers(cidr, inner)).sort((left, right) => left.length - right.length);
  if (outer === undefined) return undefined;
  const present = await readBlocks(
    store,
    cidrs.filter((cidr) => prefixCovers(outer, cidr)),
  );
  if (present.size < 2) return undefined;
  const merged = mergeBlocks(blocksIn(present), await wantedLength(store, outer, blocksIn(present)));
  if (merged.kind === "contradiction") return remedyFor(merged);

  const missing = merged.blocks.filter(({ cidr }) => !present.has(formatPrefix(cidr)));
  for (const { cidr, affinity, sequenceNumber } of missing) {
    const created = await store.commit([blockChange(emptyBlock(cidr, affinity, sequenceNumber), undefined)]);
    if (!created.ok) return undefined;
  }
  const created = await readBlocks(
    store,
    missing.map(({ cidr }) => cidr),
  );
  if (!(await moveAddresses(store, merged, new Map([...present, ...created])))) return undefined;
  for (const block of missing) await confirmAffinity(block.cidr, affineNode(block) ?? "", store);
  for (const handle of handlesOf(merged.blocks)) {
    await allocator.recountHandle({ handle, likely: merged.blocks.map(({ cidr }) => cidr) });
  }
  return undefined;
}

interface PresentBlock {
  readonly block: IPAMBlock;
  readonly revision: string;
}

type PresentBlocks = ReadonlyMap<string, PresentBlock>;

async function readBlocks(store: Datastore, cidrs: readonly Prefix[]): Promise<PresentBlocks> {
  if (cidrs.length === 0) return new Map();
  const { answers } = await store.read(cidrs.map((cidr) => ({ kind: "key", key: blockKey(cidr) })));
  const present = answers.flat().map((entry): PresentBlock => {
    return { block: decodeBlock(entry), revision: entry.revision };
  });
  return new Map(present.map((each) => [formatPrefix(each.block.cidr), each]));
}

function blocksIn(present: PresentBlocks): readonly IPAMBlock[] {
  return [...present.values()].map(({ block }) => block);
}

/** The block size of the pool, if one of the blocks has it; otherwise that of the largest block. */
async function wantedLength(store: Datastore, outer: Prefix, blocks: readonly IPAMBlock[]): Promise<number> {
  const { readable } = await findPools(store);
  const lengths = readable.filter(({ cidr }) => prefixCovers(cidr, outer)).map(({ blockLength }) => blockLength);
  return lengths.find((length) => blocks.some(({ cidr }) => cidr.length === length)) ?? outer.length;
}

async function moveAddresses(store: Datastore, { blocks, surplus }: Merged, present: PresentBlocks): Promise<boolean> {
  const revisionOf = ({ cidr }: IPAMBlock) => present.get(formatPrefix(cidr))?.revision ?? "";
  const changed = blocks.filter((block) => present.get(formatPrefix(block.cidr))?.block !== block);
  for (const handle of handlesOf(changed)) {
    if (!(await countToo(store, handle, changed))) return false;
  }
  const steps: (readonly OrderedChange[])[] = changed.map((block) => [blockChange(block, revisionOf(block))]);
  for (const block of surplus) steps.push(await changesToDelete(store, block, revisionOf(block)));
  for (const commit of packed(steps)) {
    if (!(await store.commit(commit)).ok) return false;
  }
  return true;
}

/** As few commits as possible; usually one. */
function packed(steps: readonly (readonly OrderedChange[])[]): readonly (readonly OrderedChange[])[] {
  const commits: OrderedChange[][] = [];
  for (const step of steps) {
    const last = commits.at(-1);
    if (last && last.length + step.length <= MOST_IN_ONE_REQUEST) last.push(...step);
    else commits.push([...step]);
  }
  return commits;
}

/** Counts the addresses in these blocks too: a handle may count more than its blocks have, never less. */
async function countToo(store: Datastore, handle: string, blocks: readonly IPAMBlock[]): Promise<boolean> {
  const { answers } = await store.read([{ kind: "key", key: handleKey(handle) }]);
  const stored = answers.flat().map(decodeHandle)[0];
  const counts: Record<string, number> = { ...stored?.blocks };
  for (const block of blocks) {
    const name = formatPrefix(block.cidr);
    const count = ordinalsOf(block, { handle }).length;
    if (count > 0) counts[name] = Math.max(counts[name] ?? 0, count);
  }
  return (await store.commit(handleRecordChange(handle, counts, { revision: stored?.revision }))).ok;
}

async function changesToDelete(
  store: Datastore,
  block: IPAMBlock,
  revision: string,
): Promise<readonly OrderedChange[]> {
  const deletion: Change = { kind: "delete", key: blockKey(block.cidr), revision };
  const node = affineNode(block);
  if (node === undefined) return [deletion];
  const { answers } = await store.read([{ kind: "key", key: affinityKey(node, block.cidr) }]);
  const affinity = answers.flat().map((entry) => decodeAffinity(entry))[0];
  return affinity ? endOfClaim({ node, ...affinity }, deletion) : [deletion];
}

function handlesOf(blocks: readonly IPAMBlock[]): readonly string[] {
  return [...new Set(blocks.flatMap(({ attributes }) => attributes.flatMap(({ handleId }) => handleId ?? [])))];
}

function remedyFor({ address, handles }: Contradiction): string {
  const commands = handles.map((handle) => `"${identity.adminTool} ipam release --handle ${handle} --force"`);
  return `${formatAddress(address)} is allocated in both blocks; end one of its containers, or, if one no longer exists, release its addresses: ${commands.join(" or ")}`;
}
