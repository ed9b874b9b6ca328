/**
 * Keeps an address for a pod before the pod exists: it waits from then on, as if the pod had used it already
 * (model/kept-address.ts). For administrators: all blocks of the family are read.
 *
 *   in a block that exists    whoever it belongs to
 *   in no block               in a new block without a node, which the next node that needs one claims
 */
import type { Datastore, Decision, OrderedChange, Wanted } from "../datastore/datastore.ts";
import type { Address } from "../ip/address.ts";
import { blockOf } from "../ip/block.ts";
import { formatPrefix, prefixesOverlap } from "../ip/prefix.ts";
import type { BlockAttribute, IPAMBlock, Release } from "../model/ipam-block.ts";
import { INTERFACE_ATTRIBUTE, NETWORK_ATTRIBUTE } from "../model/ipam-block.ts";
import { KEPT_ATTRIBUTE, keepHandle, keptOf } from "../model/kept-address.ts";
import { blocksPrefix, handleKey, IPAM_CONFIGURATION_KEY } from "../model/keys.ts";
import { type AllocatorMeans, datastoreTime } from "./allocator-means.ts";
import { addressAt, assignOrdinal, attributesOf, emptyBlock, ordinalIn, releaseOrdinals } from "./block.ts";
import { settle } from "./commit-loop.ts";
import type { Facts } from "./facts.ts";
import { changesToTake } from "./handle.ts";
import { poolHolding } from "./pools.ts";
import { blockChange, blockRewrite } from "./records.ts";
import { wantedBlocksOf } from "./release/decide-addresses.ts";
import { respectingLock } from "./respecting-lock.ts";
import { isFormerOwner, restLeft, withCooldown } from "./rest.ts";
import { type KnownBlock, LISTED_PREFIXES, View } from "./view.ts";

export interface Reservation {
  readonly network: string;
  readonly interface: string;
  readonly namespace: string;
  readonly pod: string;
  readonly address: Address;
  readonly keepForSeconds: number;
}

export type ReserveOutcome =
  | { readonly kind: "reserved" | "in use by the pod"; readonly handle: string; readonly pool: string }
  | { readonly kind: "keeps another"; readonly address: Address }
  | { readonly kind: "taken"; readonly by: BlockAttribute | undefined }
  | { readonly kind: "rests"; readonly milliseconds: number; readonly release: Release }
  | { readonly kind: "overlaps"; readonly block: string };

/** Fails if the address is in no enabled pool. */
export async function reserveAddress(
  store: Datastore,
  means: AllocatorMeans,
  reservation: Reservation,
): Promise<ReserveOutcome> {
  const { namespace, pod, network, address } = reservation;
  const handle = keepHandle({ network, namespace, identity: `pod/${pod}` });
  const { outcome } = await settle<ReserveOutcome>(
    respectingLock(store),
    {
      action: `reserve an address for pod "${namespace}/${pod}"`,
      first: () => wantedToReserve(handle, address),
      decide: (facts) => decideReserve({ ...reservation, handle }, facts, datastoreTime(store, means)),
    },
    means,
  );
  return outcome;
}

function wantedToReserve(handle: string, address: Address): readonly Wanted[] {
  return [
    ...LISTED_PREFIXES.map((prefix): Wanted => ({ kind: "prefix", prefix })),
    { kind: "prefix", prefix: blocksPrefix(address.family) },
    { kind: "key", key: handleKey(handle) },
    { kind: "key", key: IPAM_CONFIGURATION_KEY },
    ...wantedBlocksOf([{ address }]),
  ];
}

type Request = Reservation & { readonly handle: string };

function decideReserve(request: Request, facts: Facts, now: Date): Decision<ReserveOutcome> {
  const { address, handle } = request;
  const view = new View(facts, "");
  const pool = poolHolding(view.pools(), address, { unreadable: view.unreadablePools() });
  const blocks = [...view.knownBlocks(address.family)];
  const nothing = (outcome: ReserveOutcome): Decision<ReserveOutcome> => ({ kind: "commit", changes: [], outcome });
  const own = blocks.flatMap((known) => keptFor(request, known));
  const [other] = own.filter((each) => each.address.value !== address.value);
  if (other !== undefined) return nothing({ kind: "keeps another", address: other.address });
  const [same] = own;
  if (same?.isInUse) return nothing({ kind: "in use by the pod", handle, pool: pool.name });

  const known = blocks.find(({ block }) => ordinalIn(block, address) !== undefined);
  const cidr = known?.block.cidr ?? blockOf(address, pool.blockLength);
  const overlapping = blocks.find(({ block }) => block !== known?.block && prefixesOverlap(block.cidr, cidr));
  if (known === undefined && overlapping !== undefined) {
    return nothing({ kind: "overlaps", block: formatPrefix(overlapping.block.cidr) });
  }
  const before = known?.block ?? emptyBlock(cidr, undefined, BigInt(now.getTime()) * 1_000_000n);
  const ordinal = ordinalIn(before, address) ?? -1;
  const attributes = waitingFor(request, same && attributesOf(before, ordinal), now);
  const free = same === undefined ? before : releaseOrdinals(before, [ordinal], now, "for good");
  const release = before.released?.[ordinal];
  const cooldown = view.cooldownOf(before);
  const milliseconds = restLeft(release, now, cooldown);
  const taken = assignOrdinal(withCooldown(free, cooldown), ordinal, attributes);
  if (taken === undefined) return nothing({ kind: "taken", by: attributesOf(before, ordinal) });
  if (release !== undefined && milliseconds > 0 && !isFormerOwner(release, attributes)) {
    return nothing({ kind: "rests", milliseconds, release });
  }
  return {
    kind: "commit",
    changes: [
      { kind: "expect", key: pool.key, revision: pool.revision },
      ...changesOf(view, handle, { known, before, after: taken.block }),
    ],
    outcome: { kind: "reserved", handle, pool: pool.name },
  };
}

/** A new block is created empty, and the handle counts up before the address is taken (handle.ts). */
function changesOf(
  view: View,
  handle: string,
  {
    known,
    before,
    after,
  }: { readonly known: KnownBlock | undefined; readonly before: IPAMBlock; readonly after: IPAMBlock },
): readonly OrderedChange[] {
  const counts = changesToTake(view, handle, [after]);
  const [create, take] =
    known === undefined
      ? [[blockChange(before, undefined)], blockRewrite(after)]
      : [[], blockChange(after, known.revision)];
  return [...counts.first, ...create, ...counts.before, take, ...counts.after];
}

interface Kept {
  readonly address: Address;
  readonly isInUse: boolean;
}

/** What the pod keeps on the interface. */
function keptFor({ handle, interface: ifname }: Request, { block }: KnownBlock): readonly Kept[] {
  return [...block.allocations.keys()].flatMap((ordinal): readonly Kept[] => {
    const kept = keptOf(attributesOf(block, ordinal));
    if (kept?.handle !== handle || (kept.interface ?? ifname) !== ifname) return [];
    return [{ address: addressAt(block, ordinal), isInUse: kept.user !== undefined }];
  });
}

/** `before`: it waits already, and waits from now on again. */
function waitingFor(request: Request, before: BlockAttribute | undefined, now: Date): BlockAttribute {
  const { handle, network, interface: ifname, namespace, pod, keepForSeconds } = request;
  return {
    handleId: handle,
    secondary: {
      ...before?.secondary,
      pod,
      namespace,
      [NETWORK_ATTRIBUTE]: network,
      [INTERFACE_ATTRIBUTE]: ifname,
      [KEPT_ATTRIBUTE]: `${keepForSeconds}`,
      timestamp: now.toISOString(),
    },
  };
}
