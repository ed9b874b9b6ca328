/**
 * The allocator: gives and takes addresses on any datastore.
 *
 *   assign          all addresses of a request, or none; a second time the same ones
 *   releaseHandle   everything an attachment holds; nothing held is success
 *
 * Both take an `Alongside`: keys the caller wants read, and changes it wants
 * committed, in the same round trips. A steady ADD and a DEL are two round
 * trips, one if the datastore remembers, whatever the caller adds
 * (docs/decisions/ipam-round-trips.md).
 */
import { counted } from "../counted.ts";
import type { Datastore, Wanted } from "../datastore/datastore.ts";
import type { Address } from "../ip/address.ts";
import { blockOf } from "../ip/block.ts";
import type { Prefix } from "../ip/prefix.ts";
import { BLOCK_SIZES } from "../model/block-sizes.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";
import { affinityKey, blockKey, handleKey, parseKey } from "../model/keys.ts";
import { type AssignOutcome, decideAssign } from "./assign/decide.ts";
import { addressAt, handlesOf, isEmpty, type Owner, ordinalsOf } from "./block.ts";
import { type Alongside, type Pace, settle } from "./commit-loop.ts";
import { openHintMemory } from "./hint-file.ts";
import {
  type BlockHint,
  blocksToAssignFrom,
  blocksToReleaseFrom,
  type HintStore,
  type HostHints,
  withSeenBlocks,
} from "./hints.ts";
import type { Turn } from "./host-turn.ts";
import { requirePrefix } from "./records.ts";
import { ADDRESSES_AT_ONCE, decideReleaseAddresses, wantedBlocksOf } from "./release/decide-addresses.ts";
import { type AffinityOutcome, type AffinityRequest, decideReleaseAffinity } from "./release/decide-affinity.ts";
import { decideReleaseHandle, type ReleaseOutcome } from "./release/decide-handle.ts";
import type { Assignment, AssignRequest, GuardedAddress, Released, ReleaseHandleRequest } from "./request.ts";
import { baseWanted, blockName, View } from "./view.ts";

/** What the allocator needs of the world. */
export interface AllocatorMeans extends Pace {
  readonly now: () => Date;
  readonly warn?: (message: string) => void;
  /** Where the blocks this host used last are remembered; for the life of the process when absent. */
  readonly hints?: HintStore;
  /** Lets the processes of one host go one after another instead of losing races to each other. */
  readonly turn?: Turn;
}

/** An address and the block it lies in. */
export interface HeldAddress {
  readonly address: Address;
  readonly block: Prefix;
}

export interface Allocator {
  assign(request: AssignRequest, alongside?: Alongside<Assignment>): Promise<Assignment>;
  releaseHandle(request: ReleaseHandleRequest, alongside?: Alongside<readonly Address[]>): Promise<readonly Address[]>;
  /** Each only if it still belongs to whom it is thought to belong. */
  releaseAddresses(addresses: readonly GuardedAddress[]): Promise<Released>;
  /** Ends a host's claim on a block. */
  releaseAffinity(request: AffinityRequest): Promise<AffinityOutcome>;
  /** Reads only: what the owner holds. */
  held(request: ReleaseHandleRequest): Promise<readonly HeldAddress[]>;
}

export function openAllocator(store: Datastore, means: AllocatorMeans): Allocator {
  const hints = means.hints ?? openHintMemory();
  const turn: Turn = means.turn ?? ((work) => work(() => {}));
  return {
    assign: (request, alongside) =>
      turn((leave) => assign({ store, means: { ...means, leave }, hints }, request, alongside)),
    releaseHandle: (request, alongside) => turn(() => releaseHandle({ store, means, hints }, request, alongside)),
    releaseAddresses: (addresses) => turn(() => releaseAddresses(store, means, addresses)),
    releaseAffinity: (request) => turn(() => releaseAffinity(store, means, request)),
    held: (request) => held({ store, means, hints }, request),
  };
}

interface Parts {
  readonly store: Datastore;
  readonly means: AllocatorMeans;
  readonly hints: HintStore;
}

async function assign(
  { store, means, hints }: Parts,
  request: AssignRequest,
  alongside: Alongside<Assignment> | undefined,
): Promise<Assignment> {
  const remembered = await hints.load();
  const likely = request.wishes.flatMap((wish) =>
    wish.kind === "given"
      ? [blockName(blockOf(wish.address, BLOCK_SIZES[wish.address.family].usual))]
      : blocksToAssignFrom(remembered, wish.family),
  );
  const { outcome } = await settle<AssignOutcome>(
    store,
    {
      action: `assign addresses to "${request.handle}"`,
      first: (again) => [...baseWanted(request.node, request.handle), ...wantedBlocks(likely, again)],
      decide: (facts) => decideAssign(request, facts, means.now()),
    },
    means,
    alongside && {
      ...alongside,
      changes: (answers, planned) => alongside.changes(answers, { addresses: planned.addresses }),
    },
  );
  await remember({ hints, means }, remembered, { node: request.node, outcome });
  return { addresses: outcome.addresses };
}

async function releaseHandle(
  { store, means, hints }: Parts,
  request: ReleaseHandleRequest,
  alongside: Alongside<readonly Address[]> | undefined,
): Promise<readonly Address[]> {
  const remembered = await hints.load();
  const { outcome } = await settle<ReleaseOutcome>(
    store,
    {
      action: `release "${request.handle}"`,
      first: (again) => wantedToRelease(request, blocksToReleaseFrom(remembered, request.likely ?? []), again),
      decide: (facts) => decideReleaseHandle(request, facts),
    },
    means,
    alongside && { ...alongside, changes: (answers, planned) => alongside.changes(answers, planned.released) },
  );
  const [gone, left] = partition(outcome.blocks, (block) => isEmpty(block) && block.affinity === undefined);
  const next = withSeenBlocks(remembered, left.map(hintOf), gone.map(nameOf));
  if (next !== remembered) await hints.save(next);
  return outcome.released;
}

async function releaseAddresses(store: Datastore, pace: Pace, addresses: readonly GuardedAddress[]): Promise<Released> {
  let all: Released = { released: [], absent: [], refused: [] };
  for (let start = 0; start < addresses.length; start += ADDRESSES_AT_ONCE) {
    const some = addresses.slice(start, start + ADDRESSES_AT_ONCE);
    const { outcome } = await settle<Released>(
      store,
      {
        action: `release ${counted(some.length, "address", "addresses")}`,
        first: () => wantedBlocksOf(some),
        decide: (facts) => decideReleaseAddresses(some, facts),
      },
      pace,
    );
    all = {
      released: [...all.released, ...outcome.released],
      absent: [...all.absent, ...outcome.absent],
      refused: [...all.refused, ...outcome.refused],
    };
  }
  return all;
}

async function releaseAffinity(store: Datastore, pace: Pace, request: AffinityRequest): Promise<AffinityOutcome> {
  const wanted: readonly Wanted[] = [
    { kind: "key", key: affinityKey(request.node, request.block) },
    { kind: "key", key: blockKey(request.block) },
  ];
  const { outcome } = await settle<AffinityOutcome>(
    store,
    {
      action: `release block ${blockName(request.block)} of node "${request.node}"`,
      first: () => wanted,
      decide: (facts) => decideReleaseAffinity(request, facts),
    },
    pace,
  );
  return outcome;
}

async function held({ store, means, hints }: Parts, request: ReleaseHandleRequest): Promise<readonly HeldAddress[]> {
  const likely = blocksToReleaseFrom(await hints.load(), request.likely ?? []);
  const { facts } = await settle<undefined>(
    store,
    {
      action: `read "${request.handle}"`,
      first: (again) => wantedToRelease(request, likely, again),
      decide: (facts) => {
        const needed = decideReleaseHandle(request, facts);
        return needed.kind === "read" ? needed : { kind: "commit", changes: [], outcome: undefined };
      },
    },
    means,
  );
  return [...new View(facts, request.node).knownBlocks()].flatMap(({ block }) =>
    ordinalsOf(block, request).map((ordinal) => ({ address: addressAt(block, ordinal), block: block.cidr })),
  );
}

function wantedToRelease(owner: Owner, likely: readonly string[], again: readonly string[]): readonly Wanted[] {
  const handles = handlesOf(owner).map((handle): Wanted => ({ kind: "key", key: handleKey(handle) }));
  return [...handles, ...wantedBlocks(likely, again)];
}

/** The blocks that are thought to be needed and those that a lost attempt needed, each once. */
function wantedBlocks(likely: readonly string[], again: readonly string[]): readonly Wanted[] {
  const lost = again.filter((key) => parseKey(key)?.kind === "block");
  const keys = new Set([...likely.map((cidr) => blockKey(requirePrefix(cidr))), ...lost]);
  return [...keys].map((key) => ({ kind: "key", key }));
}

/** What was seen, for the next call. `before`: the hints of this one; mostly they say it already. */
async function remember(
  { hints, means }: Pick<Parts, "hints" | "means">,
  before: HostHints,
  { node, outcome }: { readonly node: string; readonly outcome: AssignOutcome },
): Promise<void> {
  if (hintsAfter(before, outcome) === before) return;
  // Loaded again: another process of this host may have been quicker.
  const latest = await hints.load();
  if (!outcome.nodeRegistered && !latest.warnedUnregistered) {
    means.warn?.(`Node "${node}" is not registered: it counts as a node without labels`);
  }
  const next = hintsAfter(latest, outcome);
  if (next !== latest) await hints.save(next);
}

/** The same object when nothing is new. */
function hintsAfter(hints: HostHints, { blocks, nodeRegistered }: AssignOutcome): HostHints {
  const seen = withSeenBlocks(hints, blocks.map(hintOf));
  const warnedUnregistered = !nodeRegistered;
  return seen.warnedUnregistered === warnedUnregistered ? seen : { ...seen, warnedUnregistered };
}

function hintOf(block: IPAMBlock): BlockHint {
  return { cidr: blockName(block.cidr), full: block.unallocated.length === 0 };
}

function nameOf(block: IPAMBlock): string {
  return blockName(block.cidr);
}

function partition<T>(all: readonly T[], isFirst: (each: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [all.filter(isFirst), all.filter((each) => !isFirst(each))];
}
