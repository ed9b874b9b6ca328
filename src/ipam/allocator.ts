/**
 * The allocator: gives and takes addresses on any datastore.
 *
 *   assign          all addresses of a request, or none; a second time the same ones
 *   releaseHandle   everything an attachment holds; nothing held is success
 *
 * Neither changes a locked datastore.
 * Both take an `Alongside`: keys the caller wants read, and changes it wants
 * committed, in the same round trips. A steady ADD and a DEL are two round
 * trips, one if the datastore remembers, whatever the caller adds
 * (docs/decisions/ipam-round-trips.md).
 */

import type { Datastore } from "../datastore/datastore.ts";
import { type Address, formatAddress, isSameAddress } from "../ip/address.ts";
import { blockOf } from "../ip/block.ts";
import type { Prefix } from "../ip/prefix.ts";
import { BLOCK_SIZES } from "../model/block-sizes.ts";
import { quoted } from "../quote.ts";
import { type AllocatorMeans, type AllocatorParts, datastoreTime } from "./allocator-means.ts";
import { type AssignOutcome, decideAssign } from "./assign/decide.ts";
import { KeptIsOver } from "./assign/kept-address.ts";
import { addressAt } from "./block.ts";
import { type Alongside, settle } from "./commit-loop.ts";
import { openHintMemory } from "./hint-file.ts";
import {
  blocksToAssignFrom,
  blocksToReleaseFrom,
  type HintStore,
  type HostHints,
  hintOf,
  poolsOf,
  withSeenBlocks,
} from "./hints.ts";
import type { Turn } from "./host-turn.ts";
import type { AffinityOutcome, AffinityRequest } from "./release/decide-affinity.ts";
import { decideReleaseHandle, ordinalsHeldBy } from "./release/decide-handle.ts";
import { recountHandle, releaseAddresses, releaseAffinity, releaseHandle, wantedToRelease } from "./release/release.ts";
import type {
  AddressRequest,
  Assignment,
  AssignRequest,
  GuardedAddress,
  RecountRequest,
  Released,
  ReleaseHandleRequest,
  ReleaseRule,
} from "./request.ts";
import { respectingLock } from "./respecting-lock.ts";
import {
  baseWanted,
  blockName,
  LISTED_PREFIXES,
  View,
  WANTED_CONFIGURATION,
  wantedAddressList,
  wantedBlocks,
  wantedHandle,
} from "./view.ts";

/** An address and the block it lies in. */
export interface HeldAddress {
  readonly address: Address;
  readonly block: Prefix;
}

export interface Allocator {
  assign(request: AssignRequest, alongside?: Alongside<Assignment>): Promise<Assignment>;
  releaseHandle(request: ReleaseHandleRequest, alongside?: Alongside<readonly Address[]>): Promise<readonly Address[]>;
  /** Each only if it still belongs to whom it is thought to belong. */
  releaseAddresses(addresses: readonly GuardedAddress[], rule?: ReleaseRule): Promise<Released>;
  /** Ends a host's claim on a block. */
  releaseAffinity(request: AffinityRequest): Promise<AffinityOutcome>;
  /** Makes a handle count what its blocks hold; no address is released. */
  recountHandle(request: RecountRequest): Promise<void>;
  /** The pools of these addresses, as far as this host remembers them: nothing is read from the datastore. */
  rememberedPools(addresses: readonly Address[]): Promise<readonly string[]>;
  /** Reads only: what the owner holds. */
  held(request: ReleaseHandleRequest): Promise<readonly HeldAddress[]>;
}

export function openAllocator(store: Datastore, means: AllocatorMeans): Allocator {
  const hints = means.hints ?? openHintMemory();
  const turn: Turn = means.turn ?? ((work) => work(() => {}));
  const unlocked = means.lock === "ignore" ? store : respectingLock(store);
  // The plugins read the lock with their own records.
  const storeFor = (alongside: unknown) => (alongside === undefined ? unlocked : store);
  return {
    assign: (request, alongside) => {
      // An API server may need 100 ms for a list: those of all waiting calls overlap.
      store.prefetch?.(LISTED_PREFIXES);
      return turn((leave) =>
        assign({ store: storeFor(alongside), unlocked, means: { ...means, leave }, hints }, request, alongside),
      );
    },
    releaseHandle: (request, alongside) =>
      turn(() => releaseHandle({ store: storeFor(alongside), means, hints }, request, alongside)),
    releaseAddresses: (addresses, rule) => turn(() => releaseAddresses(unlocked, means, addresses, rule)),
    releaseAffinity: (request) =>
      turn(async () => {
        await forgetBlock(hints, request.block);
        return releaseAffinity(unlocked, means, request);
      }),
    recountHandle: (request) => turn(() => recountHandle(unlocked, means, request)),
    rememberedPools: async (addresses) => poolsOf(await hints.load(), addresses),
    held: (request) => held({ store, means, hints }, request),
  };
}

/** First, so that the next assignment looks at the claims: this one may stop half way. */
async function forgetBlock(hints: HintStore, block: Prefix): Promise<void> {
  const before = await hints.load();
  const after = withSeenBlocks(before, [], [blockName(block)]);
  if (after !== before) await hints.save(after);
}

/** For the log of a DEL. */
export async function releaseFields(
  allocator: Pick<Allocator, "rememberedPools">,
  released: readonly Address[],
): Promise<{ readonly addresses: readonly string[]; readonly pools?: readonly string[] }> {
  const addresses = released.map(formatAddress);
  const pools = await allocator.rememberedPools(released);
  return pools.length === 0 ? { addresses } : { addresses, pools };
}

/** `unlocked`: the store as long as it is not locked, for writes that no caller checks. */
async function assign(
  { unlocked, ...parts }: AllocatorParts & { readonly unlocked: Datastore },
  request: AssignRequest,
  alongside: Alongside<Assignment> | undefined,
): Promise<Assignment> {
  const written: AssignOutcome[] = [];
  const attempt = () => assignOrFail(parts, request, { alongside, partly: (outcome) => void written.push(outcome) });
  try {
    const assignment = await attempt().catch(async (failure: unknown) => {
      if (!(failure instanceof KeptIsOver)) throw failure;
      await releaseAddresses(unlocked, parts.means, failure.addresses);
      return attempt();
    });
    return { ...assignment, addresses: withOrigin(assignment.addresses, written) };
  } catch (failure) {
    // Should that fail, too, the DEL that follows does it; as it does after a failure of the datastore itself, or a lock.
    await giveBack({ ...parts, store: unlocked }, request, written).catch(() => {});
    throw failure;
  }
}

/** What a lost attempt has written, the next one finds: how it got it, the first one says. */
function withOrigin(addresses: Assignment["addresses"], written: readonly AssignOutcome[]): Assignment["addresses"] {
  const before = written.flatMap((outcome) =>
    outcome.addresses.filter(({ held, kept }) => !held && kept !== undefined),
  );
  if (before.length === 0) return addresses;
  return addresses.map((each) => before.find(({ address }) => isSameAddress(address, each.address)) ?? each);
}

/** Gives back what lost attempts wrote; what the owner held before them stays. */
async function giveBack(
  parts: AllocatorParts,
  request: AssignRequest,
  written: readonly AssignOutcome[],
): Promise<void> {
  const [first] = written;
  if (first === undefined) return;
  const isOrdinary = written.every(({ handle }) => handle === request.handle);
  const heldNothing = isOrdinary && request.replaced === undefined && !first.addresses.some(({ held }) => held);
  if (heldNothing) return void (await releaseHandle(parts, request, undefined));
  const taken = written.flatMap(({ handle, addresses }) =>
    addresses.flatMap(({ address, held, kept }): GuardedAddress[] => {
      if (held) return [];
      if (kept === undefined || request.keep === undefined) return [{ address, handle }];
      const { containerId } = request.keep;
      return [{ address, handle, containerId, ...(kept === "from now on" ? { how: "for good" } : {}) }];
    }),
  );
  await releaseAddresses(parts.store, parts.means, taken);
}

async function assignOrFail(
  { store, means, hints }: AllocatorParts,
  request: AssignRequest,
  {
    alongside,
    partly,
  }: { readonly alongside: Alongside<Assignment> | undefined; readonly partly: (outcome: AssignOutcome) => void },
): Promise<Assignment> {
  const remembered = await hints.load();
  const likely = request.addressRequests.flatMap((addressRequest) => likelyBlocks(addressRequest, remembered));
  const lists = request.addressRequests.flatMap((each) => (each.kind === "listed" ? wantedAddressList(each.list) : []));
  const { outcome } = await settle<AssignOutcome>(
    store,
    {
      action: `assign addresses to ${quoted(request.handle)}`,
      first: (again) => [
        ...baseWanted(request.node, request.handle, { isSteady: likely.length > 0 && again.length === 0 }),
        ...(request.keep?.when === "always" ? [request.handle, request.keep.handle].map(wantedHandle) : []),
        ...(request.keep?.limited === undefined ? [] : [WANTED_CONFIGURATION]),
        ...wantedBlocks(likely, again),
        ...lists,
      ],
      decide: (facts) =>
        decideAssign(request, facts, {
          now: means.now(),
          datastoreTime: datastoreTime(store, means),
          isHostAddress: means.isHostAddress,
        }),
      partly,
    },
    means,
    alongside && {
      ...alongside,
      changes: (answers, planned) => alongside.changes(answers, planned),
    },
  );
  await remember({ hints, means }, remembered, { node: request.node, outcome });
  return {
    handle: outcome.handle,
    addresses: outcome.addresses,
    pools: outcome.pools,
    unreadablePools: outcome.unreadablePools,
  };
}

/** Which block of a list has a free address is not known before the list. */
function likelyBlocks(addressRequest: AddressRequest, remembered: HostHints): readonly string[] {
  switch (addressRequest.kind) {
    case "given":
      return [blockName(blockOf(addressRequest.address, BLOCK_SIZES[addressRequest.address.family].usual))];
    case "automatic":
      return blocksToAssignFrom(remembered, addressRequest.family);
    case "listed":
      return [];
  }
}

async function held(
  { store, means, hints }: AllocatorParts,
  request: ReleaseHandleRequest,
): Promise<readonly HeldAddress[]> {
  const likely = blocksToReleaseFrom(await hints.load(), request.likely ?? []);
  const { facts } = await settle<undefined>(
    store,
    {
      action: `read ${quoted(request.handle)}`,
      first: (again) => wantedToRelease(request, likely, again),
      decide: (facts) => {
        const needed = decideReleaseHandle(request, facts, means.now());
        return needed.kind === "read" ? needed : { kind: "commit", changes: [], outcome: undefined };
      },
    },
    means,
  );
  return [...new View(facts, request.node).knownBlocks()].flatMap(({ block }) =>
    ordinalsHeldBy(block, request).map((ordinal) => ({ address: addressAt(block, ordinal), block: block.cidr })),
  );
}

/** What was seen, for the next call. `before`: the hints of this one; mostly they say it already. */
async function remember(
  { hints, means }: Pick<AllocatorParts, "hints" | "means">,
  before: HostHints,
  { node, outcome }: { readonly node: string; readonly outcome: AssignOutcome },
): Promise<void> {
  if (hintsAfter(before, outcome) === before) return;
  // Loaded again: another process of this host may have been quicker.
  const latest = await hints.load();
  if (!outcome.nodeRegistered && !latest.warnedUnregistered) {
    means.warn?.(`Node ${quoted(node)} is not registered: it counts as a node without labels`);
  }
  const next = hintsAfter(latest, outcome);
  if (next !== latest) await hints.save(next);
}

/** The same object when nothing is new. */
function hintsAfter(hints: HostHints, { blocks, pools, nodeRegistered }: AssignOutcome): HostHints {
  const seen = withSeenBlocks(
    hints,
    blocks.map((block) => hintOf(block, pools)),
  );
  const warnedUnregistered = !nodeRegistered;
  return seen.warnedUnregistered === warnedUnregistered ? seen : { ...seen, warnedUnregistered };
}
