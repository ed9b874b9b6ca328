/**
 * One address out of each set, written down or given back together.
 *
 * Runs with the lock held. What was asked for is settled before the first file
 * is made.
 */
import { PluginError } from "../../errors.ts";
import { type Address, formatAddress, isSameAddress, parseAddress } from "../../ip/address.ts";
import { doubt, type OwnerIndex, vouchFor } from "./owner-index.ts";
import { type Candidate, candidates, formatSet, type RangeSet, rangeHolding } from "./range-set.ts";
import { type Owner, ownerText, readReservation, release, reserve, writeLastReserved } from "./store.ts";

export interface AssignRequest {
  readonly owner: Owner;
  readonly rangeSets: readonly RangeSet[];
  readonly requested: readonly Address[];
  /** What a second ADD of the same attachment gets: an error, as upstream's plugin gives, or what it holds. */
  readonly whenHeld: "refuse" | "same addresses";
}

export function assign(request: AssignRequest, index: OwnerIndex): readonly Candidate[] {
  const wishes = matchRequested(request.rangeSets, request.requested);
  const heldBefore = index.holdingOf(request.owner).addresses;
  const held = heldBefore.map(parseAddress);
  const plan = request.rangeSets.map((set, number) => {
    const wish = wishes[number];
    return { set, number, wish, kept: keptAddress(request, set, { wish, held }) };
  });
  if (plan.every(({ kept }) => kept !== undefined)) return plan.flatMap(({ kept }) => kept ?? []);

  doubt(index);
  const lastReserved = request.rangeSets.map((_, number) => index.lastReserved[number] ?? "");
  const stillReserved = index.lastReserved.slice(lastReserved.length);
  const taken: string[] = [];
  try {
    const given = plan.map(({ set, number, wish, kept }) => {
      if (kept !== undefined) return kept;
      const { owner } = request;
      const one = wish === undefined ? takeNext(owner, set, { index, number }) : take(owner, wish, index);
      const address = formatAddress(one.address);
      taken.push(address);
      writeLastReserved(index.directory, number, address, lastReserved[number] ?? "");
      lastReserved[number] = address;
      return one;
    });
    const holding = { owner: request.owner, addresses: [...heldBefore, ...taken] };
    vouchFor(index, [...lastReserved, ...stillReserved], holding);
    return given;
  } catch (failure) {
    for (const address of taken) release(index.directory, address);
    vouchFor(index, [...lastReserved, ...stillReserved]);
    throw failure;
  }
}

/** Gives each set the first address asked for that lies in it; an address left over could never be given. */
function matchRequested(sets: readonly RangeSet[], requested: readonly Address[]): readonly (Candidate | undefined)[] {
  let left = requested;
  const matched = sets.map((set) => {
    const address = left.find((one) => rangeHolding(set, one) !== undefined);
    const range = address === undefined ? undefined : rangeHolding(set, address);
    if (address === undefined || range === undefined) return undefined;
    left = left.filter((one) => one !== address);
    return { address, range };
  });
  if (left.length === 0) return matched;
  const state = `the ranges ${sets.map(formatSet).join("; ")} give one address each, and none of them can give it`;
  throw new PluginError("address-outside-pools", `Cannot give ${left.map(formatAddress).join(", ")}: ${state}`);
}

/** What the owner holds of this set already, if it is to have it again. */
function keptAddress(
  { owner, whenHeld }: AssignRequest,
  set: RangeSet,
  { wish, held }: { readonly wish: Candidate | undefined; readonly held: readonly (Address | undefined)[] },
): Candidate | undefined {
  const address = held.find((one) => one !== undefined && rangeHolding(set, one) !== undefined);
  const range = address === undefined ? undefined : rangeHolding(set, address);
  if (address === undefined || range === undefined) return undefined;
  if (wish !== undefined && !(whenHeld === "same addresses" && isSameAddress(wish.address, address))) return undefined;
  if (whenHeld === "same addresses") return { address, range };
  const state = `${describeOwner(owner)} already holds ${formatAddress(address)}: DEL comes before a second ADD`;
  throw new PluginError("address-taken", `Cannot give an address: ${state}`);
}

function take(owner: Owner, wish: Candidate, { directory }: OwnerIndex): Candidate {
  const address = formatAddress(wish.address);
  if (isSameAddress(wish.address, wish.range.gateway)) {
    throw new PluginError("address-taken", `Cannot give ${address}: it is the gateway of its subnet`);
  }
  if (reserve(directory, address, owner)) return wish;
  const holder = readReservation(directory, address)?.owner;
  const state = holder === undefined ? "it was taken meanwhile" : `${describeOwner(holder)} holds it`;
  throw new PluginError("address-taken", `Cannot give ${address}: ${state}`);
}

function takeNext(
  owner: Owner,
  set: RangeSet,
  { index, number }: { readonly index: OwnerIndex; readonly number: number },
): Candidate {
  const { directory, lastReserved } = index;
  for (const candidate of candidates(set, parseAddress(lastReserved[number] ?? ""))) {
    if (reserve(directory, formatAddress(candidate.address), owner)) return candidate;
  }
  const state = `every address of ${formatSet(set)} is taken (set ${number} of "${directory}")`;
  throw new PluginError("addresses-exhausted", `Cannot give an address: ${state}`);
}

function describeOwner(owner: Owner): string {
  return `container "${ownerText(owner).replace("\r\n", '" by "')}"`;
}
