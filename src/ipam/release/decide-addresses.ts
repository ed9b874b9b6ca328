/**
 * Releases these addresses, each only if it still has the expected owner: by
 * handle, by the sequence number of its allocation, or by the container that uses
 * it. An address with another owner is kept and reported.
 *
 * The block of an address is found without the pools, which may be deleted:
 * every block that could contain it is read in one request.
 */
import type { Decision, Wanted } from "../../datastore/datastore.ts";
import { type Address, formatAddress } from "../../ip/address.ts";
import { blockOf } from "../../ip/block.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { BLOCK_SIZES } from "../../model/block-sizes.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { CONTAINER_ATTRIBUTE, isWaiting } from "../../model/kept-address.ts";
import * as keys from "../../model/keys.ts";
import {
  attributesOf,
  isAllocated,
  ordinalIn,
  ordinalsOf,
  type ReleaseManner,
  releaseOrdinals,
  touched,
} from "../block.ts";
import type { Facts } from "../facts.ts";
import { changesToGiveOf } from "../handle.ts";
import type { GuardedAddress, Released, ReleaseRule } from "../request.ts";
import { blockName, type KnownBlock, View } from "../view.ts";
import { changeAfterRelease } from "./block-after-release.ts";

/** More addresses at once would not fit into one transaction. */
export const ADDRESSES_AT_ONCE = 8;

export function wantedBlocksOf(addresses: readonly GuardedAddress[]): readonly Wanted[] {
  return addresses.flatMap(({ address }) =>
    possibleBlocksOf(address).map((cidr): Wanted => ({ kind: "key", key: keys.blockKey(cidr) })),
  );
}

export function possibleBlocksOf(address: Address): readonly Prefix[] {
  const { shortest, longest } = BLOCK_SIZES[address.family];
  const lengths = Array.from({ length: longest - shortest + 1 }, (_, index) => shortest + index);
  return lengths.map((length) => blockOf(address, length));
}

export function decideReleaseAddresses(
  addresses: readonly GuardedAddress[],
  facts: Facts,
  { now, rule = "each" }: { readonly now: Date; readonly rule?: ReleaseRule | undefined },
): Decision<Released> {
  const view = new View(facts, "");
  const sorted = addresses.map((addressRequest) => ({ addressRequest, verdict: judgeAll(addressRequest, view) }));
  if (rule === "all or none" && sorted.some(({ verdict }) => verdict.kind === "refused")) {
    const refused = addresses.map(({ address }) => address);
    return { kind: "commit", changes: [], outcome: { released: [], absent: [], refused } };
  }
  const leaving = sorted.flatMap(({ verdict }) => (verdict.kind === "release" ? verdict : []));
  const released = sorted.flatMap(({ verdict }) =>
    verdict.kind === "absent" && verdict.released ? verdict.released : [],
  );

  const handles = [...new Set([...leaving, ...released].flatMap(({ handle }) => handle ?? []))];
  const unread = handles.filter((handle) => !facts.knows(keys.handleKey(handle)));
  if (unread.length > 0) {
    return { kind: "read", wanted: unread.map((handle) => ({ kind: "key", key: keys.handleKey(handle) })) };
  }

  const surplus = released.filter(({ known, handle }) => countsTooMany(view, handle, known));
  const blocks = [...groupByBlock([...leaving, ...surplus])].map(([known, ordinals]) => ({
    known,
    left: ordinals.length > 0 ? release(known.block, ordinals, now) : touched(known.block),
  }));
  const left: readonly IPAMBlock[] = blocks.map((each) => each.left);
  const addressesThat = (kind: Verdict["kind"]) =>
    sorted.filter(({ verdict }) => verdict.kind === kind).map(({ addressRequest }) => addressRequest.address);
  return {
    kind: "commit",
    changes: [
      ...blocks.map((each) => changeAfterRelease(each.left, each.known.revision)),
      ...handles.flatMap((handle) => changesToGiveOf(view, handle, left)),
    ],
    outcome: {
      released: withoutRepeats(addressesThat("release")),
      absent: addressesThat("absent"),
      refused: addressesThat("refused"),
    },
  };
}

type Verdict =
  | {
      readonly kind: "release";
      readonly known: KnownBlock;
      readonly ordinal: number;
      readonly handle?: string;
      readonly how?: ReleaseManner;
    }
  /** `released`: its handle may still count it, if the release was interrupted. */
  | { readonly kind: "absent"; readonly released?: { readonly known: KnownBlock; readonly handle: string } }
  | { readonly kind: "refused" };

/** Of blocks that overlap, the one counts that has the address allocated to the expected owner. */
function judgeAll(addressRequest: GuardedAddress, view: View): Verdict {
  const verdicts = [...view.knownBlocks(addressRequest.address.family)].flatMap(
    (known) => judge(addressRequest, known) ?? [],
  );
  const first = (kind: Verdict["kind"]) => verdicts.find((verdict) => verdict.kind === kind);
  return first("release") ?? first("refused") ?? first("absent") ?? { kind: "absent" };
}

/** `undefined` if the address is not in the block. */
function judge(addressRequest: GuardedAddress, known: KnownBlock): Verdict | undefined {
  const ordinal = ordinalIn(known.block, addressRequest.address);
  if (ordinal === undefined) return undefined;
  if (!isAllocated(known.block, ordinal)) {
    return addressRequest.handle === undefined
      ? { kind: "absent" }
      : { kind: "absent", released: { known, handle: addressRequest.handle } };
  }

  const attributes = attributesOf(known.block, ordinal);
  const handle = attributes?.handleId;
  const sequenceNumber = known.block.sequenceNumberForAllocation[ordinal];
  const isOthers =
    (addressRequest.handle !== undefined && addressRequest.handle !== handle) ||
    (addressRequest.sequenceNumber !== undefined && addressRequest.sequenceNumber !== sequenceNumber) ||
    (addressRequest.containerId !== undefined &&
      addressRequest.containerId !== attributes?.secondary[CONTAINER_ATTRIBUTE]);
  if (isOthers) return { kind: "refused" };
  const { how } = addressRequest;
  if (how === undefined && isWaiting(attributes)) return { kind: "absent" };
  return {
    kind: "release",
    known,
    ordinal,
    ...(handle === undefined ? {} : { handle }),
    ...(how === undefined ? {} : { how }),
  };
}

function countsTooMany(view: View, handle: string, { block }: KnownBlock): boolean {
  return (view.handle(handle)?.blocks[blockName(block.cidr)] ?? 0) > ordinalsOf(block, { handle }).length;
}

interface Leaving {
  readonly ordinal: number;
  readonly how?: ReleaseManner;
}

function groupByBlock(
  leaving: readonly ({ readonly known: KnownBlock } & Partial<Leaving>)[],
): ReadonlyMap<KnownBlock, readonly Leaving[]> {
  const groups = new Map<KnownBlock, Leaving[]>();
  for (const { known, ordinal, ...how } of leaving) {
    groups.set(known, [...(groups.get(known) ?? []), ...(ordinal === undefined ? [] : [{ ...how, ordinal }])]);
  }
  return groups;
}

function release(block: IPAMBlock, leaving: readonly Leaving[], now: Date): IPAMBlock {
  const ordinals = (how: ReleaseManner | undefined) =>
    leaving.filter((each) => each.how === how).map(({ ordinal }) => ordinal);
  return releaseOrdinals(releaseOrdinals(block, ordinals(undefined), now), ordinals("for good"), now, "for good");
}

function withoutRepeats(addresses: readonly Address[]): readonly Address[] {
  return [...new Map(addresses.map((address) => [formatAddress(address), address])).values()];
}
