/**
 * A given address.
 *
 * It must be in an enabled pool, and in one of the network's own pools if the
 * network lists any; node selectors, allowed uses and reservations do not apply.
 * A block that does not exist yet, or is empty and has no node, is claimed for this host.
 */

import { type ErrorKind, PluginError } from "../../errors.ts";
import { type Address, formatAddress } from "../../ip/address.ts";
import { blockOf } from "../../ip/block.ts";
import { prefixContains } from "../../ip/prefix.ts";
import type { BlockAttribute, Release } from "../../model/ipam-block.ts";
import { hostAffinity } from "../../model/ipam-block.ts";
import { isWaiting } from "../../model/kept-address.ts";
import { quoted } from "../../quote.ts";
import { addressAt, assignOrdinal, attributesOf, emptyBlock, ordinalIn, ordinalsOf, type Taken } from "../block.ts";
import { type Pool, poolHolding } from "../pools.ts";
import { isEmptyWithoutNode } from "../release/block-after-release.ts";
import type { AddressRequest } from "../request.ts";
import { describeFormerOwner, isFormerOwner, restLeft, withCooldown } from "../rest.ts";
import type { KnownBlock } from "../view.ts";
import { type Choice, type Search, takeAndClaim, takeFrom } from "./choice.ts";
import { heldAddress, keepAddress } from "./held-address.ts";
import { otherBlocksIn } from "./other-blocks.ts";

export type GivenRequest = Extract<AddressRequest, { kind: "given" }>;

/** Why an address cannot be assigned. */
export interface Unavailable {
  readonly kind: "unavailable";
  readonly error: ErrorKind;
  /** `it is taken by …` */
  readonly reason: string;
  readonly details?: string;
  /** Who has it. */
  readonly owner?: BlockAttribute;
}

export function givenAddress(search: Search, addressRequest: GivenRequest): Choice {
  return (
    whatIsHeld(search, addressRequest.address) ??
    otherThanHeld(search, addressRequest) ??
    fromPool(search, addressRequest)
  );
}

/** Who holds it gets it back, whatever became of its pool. */
function whatIsHeld(search: Search, address: Address): Choice | undefined {
  const { view, request } = search;
  for (const known of view.knownBlocks(address.family)) {
    const ordinal = ordinalIn(known.block, address);
    if (ordinal !== undefined && ordinalsOf(known.block, request).includes(ordinal)) {
      return keepAddress(search, known, ordinal);
    }
  }
  const unread = view.handleBlocks(request.handle, address.family).filter((cidr) => prefixContains(cidr, address));
  const wanted = unread.filter((cidr) => view.block(cidr).kind === "unknown").map((cidr) => view.wantedBlock(cidr));
  return wanted.length > 0 ? { kind: "read", wanted } : undefined;
}

/** An attachment has one address of a family: a second one would stay unrecorded in the container. */
function otherThanHeld(search: Search, addressRequest: GivenRequest): Choice | undefined {
  const held = heldAddress(search);
  if (held === undefined || held.kind === "read") return held;
  const { block, ordinal } = held.kind === "take" ? held.taken : held;
  const current = formatAddress(addressAt(block, ordinal));
  throw new PluginError(
    "address-taken",
    `Cannot assign address ${describeGiven(addressRequest)}: the container already has "${current}" in this network`,
    { details: "run DEL first" },
  );
}

/** `"10.0.0.5"`, and the annotation that asks for it. */
export function describeGiven({ address, place }: Pick<GivenRequest, "address" | "place">): string {
  const text = `"${formatAddress(address)}"`;
  return place === undefined ? text : `${text} (${place})`;
}

function fromPool(search: Search, addressRequest: GivenRequest): Choice {
  const { address, pools: asked, poolsPlace } = addressRequest;
  const shown = describeGiven(addressRequest);
  const { view } = search;
  const found =
    unavailableHere(search, address) ??
    takeAddress(
      search,
      address,
      poolHolding(view.pools(), address, { asked, place: poolsPlace, shown, unreadable: view.unreadablePools() }),
    );
  if (found.kind !== "unavailable") return found;
  const { error, reason, details = "" } = found;
  throw new PluginError(error, `Cannot assign address ${shown}: ${reason}`, { details });
}

export function unavailableHere({ isHostAddress }: Search, address: Address): Unavailable | undefined {
  if (!isHostAddress(address)) return undefined;
  return { kind: "unavailable", error: "address-taken", reason: "this host, or its gateway, has it" };
}

/** This very address, which nobody holds under the request. `pool`: the one that it lies in. */
export function takeAddress(search: Search, address: Address, pool: Pool): Choice | Unavailable {
  const { view, request, sequenceNumber } = search;
  const cidr = blockOf(address, pool.blockLength);
  const known = view.block(cidr);
  if (known.kind === "unknown") return { kind: "read", wanted: [view.wantedBlock(cidr)] };
  if (known.kind === "present") return fromExistingBlock(search, address, known);

  const others = otherBlocksIn(search, pool);
  if (others.kind === "unread") return { kind: "read", wanted: [others.wanted] };
  if (others.kind === "found") return { kind: "unavailable", error: "addresses-exhausted", reason: others.reason };
  const block = emptyBlock(cidr, hostAffinity(request.node), sequenceNumber);
  const taken = assignOrdinal(
    withCooldown(block, view.cooldownOf(block)),
    ordinalIn(block, address) ?? -1,
    search.attributes,
  );
  if (!taken) return takenBy(undefined);
  return takeAndClaim(search, { taken, before: { block }, affinity: view.affinity(cidr) });
}

function fromExistingBlock(search: Search, address: Address, known: KnownBlock): Choice | Unavailable {
  const { view, request, attributes } = search;
  const { block } = known;
  const ordinal = ordinalIn(block, address) ?? -1;
  const owner = hostAffinity(request.node);
  if (view.configuration().strictAffinity && block.affinity !== owner && !isEmptyWithoutNode(block)) {
    const reason = `its block belongs to ${quoted(block.affinity ?? "nobody")} and strictAffinity is on`;
    return { kind: "unavailable", error: "address-taken", reason };
  }
  const cooldown = view.cooldownOf(block);
  const taken: Taken | undefined = assignOrdinal(
    withCooldown(isEmptyWithoutNode(block) ? { ...block, affinity: owner } : block, cooldown),
    ordinal,
    attributes,
  );
  if (!taken) return takenBy(attributesOf(block, ordinal));
  const resting = restOf(search, block.released?.[ordinal], cooldown);
  if (resting !== undefined) return resting;
  if (isEmptyWithoutNode(block))
    return takeAndClaim(search, { taken, before: known, affinity: view.affinity(block.cidr) });
  return takeFrom(search, known, taken);
}

/** The former owner may have it at once: connections of its own are its own. */
function restOf({ attributes, now }: Search, release: Release | undefined, cooldown: number): Unavailable | undefined {
  const left = Math.ceil(restLeft(release, now, cooldown) / 1000);
  if (release === undefined || left === 0 || isFormerOwner(release, attributes)) return undefined;
  const owner = describeFormerOwner(release);
  return {
    kind: "unavailable",
    error: "try-again-later",
    reason: `it was released${owner === undefined ? "" : ` by ${owner}`} and rests for another ${left} s`,
    details:
      "until then connections of its former owner may be tracked on other nodes; the runtime tries again, or choose another address",
  };
}

function takenBy(owner: BlockAttribute | undefined): Unavailable {
  const { pod, namespace, container, node } = owner?.secondary ?? {};
  const isKept = isWaiting(owner);
  const who = [
    container === undefined ? [] : `container ${quoted(container)}`,
    `handle ${quoted(owner?.handleId ?? "unknown")}`,
    pod === undefined ? [] : `pod "${namespace === undefined ? pod : `${namespace}/${pod}`}"`,
    node === undefined ? [] : `node ${quoted(node)}`,
  ].flat();
  return {
    kind: "unavailable",
    error: "address-taken",
    reason: `it is ${isKept ? "kept for" : "taken by"} ${who.join(", ")}`,
    ...(owner === undefined ? {} : { owner }),
  };
}
