/** The ways to give something back: what a handle holds, these addresses, a host's claim on a block, what is only counted. */
import { counted } from "../../counted.ts";
import type { Datastore, Wanted } from "../../datastore/datastore.ts";
import type { Address } from "../../ip/address.ts";
import { hostAffinity, type IPAMBlock } from "../../model/ipam-block.ts";
import { affinityKey, blockKey, handleKey } from "../../model/keys.ts";
import { type AllocatorMeans, type AllocatorParts, datastoreTime } from "../allocator-means.ts";
import { handlesOf, isEmpty, type Owner } from "../block.ts";
import { type Alongside, type Pace, settle } from "../commit-loop.ts";
import { changesToGive } from "../handle.ts";
import {
  blocksToReleaseFrom,
  type HostHints,
  hasSpareBeside,
  hintOf,
  restedBlocks,
  withLeftBlock,
  withSeenBlocks,
} from "../hints.ts";
import { requirePrefix } from "../records.ts";
import type { GuardedAddress, RecountRequest, Released, ReleaseHandleRequest, ReleaseRule } from "../request.ts";
import { respectingLock } from "../respecting-lock.ts";
import { hasCooling, longestRestLeft, REST_MILLISECONDS } from "../rest.ts";
import { blockName, View, wantedBlocks } from "../view.ts";
import { deleteUnneededBlock, isEmptyWithoutNode, isUnneededBlock } from "./block-after-release.ts";
import { ADDRESSES_AT_ONCE, decideReleaseAddresses, wantedBlocksOf } from "./decide-addresses.ts";
import { type AffinityOutcome, type AffinityRequest, decideReleaseAffinity } from "./decide-affinity.ts";
import { decideReleaseHandle, type ReleaseOutcome } from "./decide-handle.ts";

export async function releaseHandle(
  { store, means, hints }: AllocatorParts,
  request: ReleaseHandleRequest,
  alongside: Alongside<readonly Address[]> | undefined,
): Promise<readonly Address[]> {
  const remembered = await hints.load();
  const before: Address[] = [];
  const { outcome } = await settle<ReleaseOutcome>(
    store,
    {
      action: `release "${request.handle}"`,
      first: (again) => wantedToRelease(request, blocksToReleaseFrom(remembered, request.likely ?? []), again),
      decide: (facts) => decideReleaseHandle(request, facts, datastoreTime(store, means)),
      partly: ({ released }) => before.push(...released),
    },
    means,
    alongside && { ...alongside, changes: (answers, planned) => alongside.changes(answers, planned.released) },
  );
  const [left, kept] = partition(outcome.blocks, isEmptyWithoutNode);
  const next = withSeenBlocks(
    remembered,
    kept.map((block) => hintOf(block)),
  );
  const emptied = kept.filter((block) => isEmpty(block) && block.affinity === hostAffinity(request.node));
  const latest = await giveBlocksBack(store, means, { node: request.node, hints: next, left, emptied });
  if (latest !== remembered) await hints.save(latest);
  return withoutRepeats([...before, ...outcome.released]);
}

/** The others are left to the next DEL. */
const DELETED_AT_ONCE = 2;

/**
 * A node keeps one spare block per pool: one that became empty while another has free addresses is given back. Any node may
 * claim it from then on; while its addresses rest, it stays without a node, and a later DEL deletes it. That is rare, and
 * costs round trips of its own. What fails here is done by the next search for leaks.
 */
async function giveBlocksBack(
  store: Datastore,
  means: AllocatorMeans,
  {
    node,
    hints,
    left,
    emptied,
  }: {
    readonly node: string;
    readonly hints: HostHints;
    /** Blocks without a node that have become empty. */
    readonly left: readonly IPAMBlock[];
    /** Blocks of the node that have become empty. */
    readonly emptied: readonly IPAMBlock[];
  },
): Promise<HostHints> {
  const unlocked = means.lock === "ignore" ? store : respectingLock(store);
  const now = datastoreTime(store, means);
  const restedAt = (block: IPAMBlock) =>
    means.now().getTime() + Math.max(REST_MILLISECONDS, longestRestLeft(block, now));
  let latest = left.reduce((hinted, block) => withLeftBlock(hinted, blockName(block.cidr), restedAt(block)), hints);
  for (const block of emptied) {
    const name = blockName(block.cidr);
    // Of two empty blocks one stays. One whose addresses rest by a setting is left to the search for leaks.
    if (!hasSpareBeside(latest, name) || hasCooling(block, now)) continue;
    const request = { node, block: block.cidr, inUse: "keep" } as const;
    const outcome = await releaseAffinity(unlocked, means, request).catch(() => "kept");
    if (outcome === "released") latest = withLeftBlock(latest, name, restedAt(block));
  }
  for (const name of restedBlocks(latest, means.now().getTime()).slice(0, DELETED_AT_ONCE)) {
    const isUnneeded = (block: IPAMBlock) => isUnneededBlock(block, now);
    await deleteUnneededBlock(unlocked, requirePrefix(name), isUnneeded).catch(() => {});
    latest = withSeenBlocks(latest, [], [name]);
  }
  return latest;
}

export async function releaseAddresses(
  store: Datastore,
  means: AllocatorMeans,
  addresses: readonly GuardedAddress[],
  rule: ReleaseRule = "each",
): Promise<Released> {
  let all: Released = { released: [], absent: [], refused: [] };
  for (let start = 0; start < addresses.length; start += ADDRESSES_AT_ONCE) {
    const some = addresses.slice(start, start + ADDRESSES_AT_ONCE);
    const before: Address[] = [];
    const { outcome } = await settle<Released>(
      store,
      {
        action: `release ${counted(some.length, "address", "addresses")}`,
        first: () => wantedBlocksOf(some),
        decide: (facts) => decideReleaseAddresses(some, facts, { now: datastoreTime(store, means), rule }),
        partly: ({ released }) => before.push(...released),
      },
      means,
    );
    const released = withoutRepeats([...before, ...outcome.released]);
    all = {
      released: [...all.released, ...released],
      absent: [...all.absent, ...outcome.absent.filter((address) => !isAmong(released, address))],
      refused: [...all.refused, ...outcome.refused],
    };
  }
  return all;
}

export async function releaseAffinity(
  store: Datastore,
  means: AllocatorMeans,
  request: AffinityRequest,
): Promise<AffinityOutcome> {
  const wanted: readonly Wanted[] = [
    { kind: "key", key: affinityKey(request.node, request.block) },
    { kind: "key", key: blockKey(request.block) },
  ];
  const { outcome } = await settle<AffinityOutcome>(
    store,
    {
      action: `release block ${blockName(request.block)} of node "${request.node}"`,
      first: () => wanted,
      decide: (facts) => decideReleaseAffinity(request, facts, datastoreTime(store, means)),
    },
    means,
  );
  return outcome;
}

/**
 * Makes the handle count what its blocks hold, and takes nothing from it: finishes what an operation left that stopped
 * half way. `likely`: blocks that may hold addresses of it though it does not name them.
 */
export async function recountHandle(
  store: Datastore,
  pace: Pace,
  { handle, likely = [] }: RecountRequest,
): Promise<void> {
  await settle<undefined>(
    store,
    {
      action: `count the addresses of "${handle}"`,
      first: (again) => wantedToRelease({ handle }, likely.map(blockName), again),
      decide: (facts) => {
        const view = new View(facts, "");
        const unread = view.handleBlocks(handle).filter((cidr) => view.block(cidr).kind === "unknown");
        if (unread.length > 0) return { kind: "read", wanted: unread.map((cidr) => view.wantedBlock(cidr)) };
        return { kind: "commit", changes: changesToGive(view, [handle], []), outcome: undefined };
      },
    },
    pace,
  );
}

export function wantedToRelease(
  { kept, ...owner }: Owner & Pick<ReleaseHandleRequest, "kept">,
  likely: readonly string[],
  again: readonly string[],
): readonly Wanted[] {
  const ofKept = kept?.forGood === undefined || kept.handle === undefined ? [] : [kept.handle];
  const handles = [...handlesOf(owner), ...ofKept].map((handle): Wanted => ({ kind: "key", key: handleKey(handle) }));
  // The handle says which blocks are needed.
  const blocks = wantedBlocks(likely, again).map((wanted) => ({ ...wanted, optional: true }) as const);
  return [...handles, ...blocks];
}

/** What an attempt was to release that was written only in part, a later one finds released. */
function withoutRepeats(addresses: readonly Address[]): readonly Address[] {
  return addresses.filter((address, index) => !isAmong(addresses.slice(0, index), address));
}

function isAmong(addresses: readonly Address[], address: Address): boolean {
  return addresses.some((each) => each.family === address.family && each.value === address.value);
}

function partition<T>(all: readonly T[], isFirst: (each: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [all.filter(isFirst), all.filter((each) => !isFirst(each))];
}
