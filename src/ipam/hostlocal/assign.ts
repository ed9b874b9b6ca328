/**
 * Reserves one address from each set: all of them, or none.
 *
 * The caller holds the lock. Requested addresses are matched to sets before the
 * first file is created.
 */
import { PluginError } from "../../errors.ts";
import { type Address, formatAddress, isSameAddress, parseAddress } from "../../ip/address.ts";
import { quoted } from "../../quote.ts";
import { markStale, markValid, type OwnerIndex } from "./owner-index.ts";
import { type Candidate, candidates, formatSet, type RangeSet, rangeContaining } from "./range-set.ts";
import { type Owner, ownerText, readReservation, release, reserve, writeLastReserved } from "./store.ts";

export interface AssignRequest {
  readonly owner: Owner;
  readonly rangeSets: readonly RangeSet[];
  readonly requested: readonly Address[];
  /** What a second ADD of the same attachment gets: an error, as from upstream's plugin, or the addresses it has. */
  readonly whenHeld: "refuse" | "same addresses";
}

export function assign(request: AssignRequest, index: OwnerIndex): readonly Candidate[] {
  const requests = matchRequested(request.rangeSets, request.requested);
  const heldBefore = index.addressesOf(request.owner).addresses;
  const held = heldBefore.map(parseAddress);
  const plan = request.rangeSets.map((set, number) => {
    const requested = requests[number];
    return { set, number, requested, existing: existingAddress(request, set, { requested, held }) };
  });
  if (plan.every(({ existing }) => existing !== undefined)) return plan.flatMap(({ existing }) => existing ?? []);

  markStale(index);
  const lastReserved = request.rangeSets.map((_, number) => index.lastReserved[number] ?? "");
  const otherSets = index.lastReserved.slice(lastReserved.length);
  const reserved: string[] = [];
  try {
    const assigned = plan.map(({ set, number, requested, existing }) => {
      if (existing !== undefined) return existing;
      const { owner } = request;
      const one =
        requested === undefined
          ? reserveNext(owner, set, { index, number })
          : reserveRequested(owner, requested, index);
      const address = formatAddress(one.address);
      reserved.push(address);
      writeLastReserved(index.directory, number, address, lastReserved[number] ?? "");
      lastReserved[number] = address;
      return one;
    });
    const owned = { owner: request.owner, addresses: [...heldBefore, ...reserved] };
    markValid(index, [...lastReserved, ...otherSets], owned);
    return assigned;
  } catch (failure) {
    for (const address of reserved) release(index.directory, address);
    markValid(index, [...lastReserved, ...otherSets]);
    throw failure;
  }
}

/** Finds for each set the first requested address in it; throws if an address is left over. */
function matchRequested(sets: readonly RangeSet[], requested: readonly Address[]): readonly (Candidate | undefined)[] {
  let left = requested;
  const matched = sets.map((set) => {
    const address = left.find((one) => rangeContaining(set, one) !== undefined);
    const range = address === undefined ? undefined : rangeContaining(set, address);
    if (address === undefined || range === undefined) return undefined;
    left = left.filter((one) => one !== address);
    return { address, range };
  });
  if (left.length === 0) return matched;
  const state = `it is in none of the range sets ${sets.map(formatSet).join("; ")}, or the set has another requested address`;
  throw new PluginError("address-outside-pools", `Cannot assign ${left.map(formatAddress).join(", ")}: ${state}`);
}

/** The address of this set that the owner has already, if it is to be returned again. */
function existingAddress(
  { owner, whenHeld }: AssignRequest,
  set: RangeSet,
  { requested, held }: { readonly requested: Candidate | undefined; readonly held: readonly (Address | undefined)[] },
): Candidate | undefined {
  const address = held.find((one) => one !== undefined && rangeContaining(set, one) !== undefined);
  const range = address === undefined ? undefined : rangeContaining(set, address);
  if (address === undefined || range === undefined) return undefined;
  if (requested !== undefined && !(whenHeld === "same addresses" && isSameAddress(requested.address, address)))
    return undefined;
  if (whenHeld === "same addresses") return { address, range };
  const state = `${describeOwner(owner)} already has ${formatAddress(address)}; call DEL before a second ADD`;
  throw new PluginError("address-taken", `Cannot assign an address: ${state}`);
}

function reserveRequested(owner: Owner, requested: Candidate, { directory }: OwnerIndex): Candidate {
  const address = formatAddress(requested.address);
  if (isSameAddress(requested.address, requested.range.gateway)) {
    throw new PluginError("address-taken", `Cannot assign ${address}: it is the gateway of its subnet`);
  }
  if (reserve(directory, address, owner)) return requested;
  const current = readReservation(directory, address)?.owner;
  const state = current === undefined ? "another process reserved it meanwhile" : `${describeOwner(current)} has it`;
  throw new PluginError("address-taken", `Cannot assign ${address}: ${state}`);
}

function reserveNext(
  owner: Owner,
  set: RangeSet,
  { index, number }: { readonly index: OwnerIndex; readonly number: number },
): Candidate {
  const { directory, lastReserved } = index;
  for (const candidate of candidates(set, parseAddress(lastReserved[number] ?? ""))) {
    if (reserve(directory, formatAddress(candidate.address), owner)) return candidate;
  }
  const state = `no address of ${formatSet(set)} is free (set ${number} of ${quoted(directory)})`;
  throw new PluginError("addresses-exhausted", `Cannot assign an address: ${state}`);
}

function describeOwner(owner: Owner): string {
  return `container "${ownerText(owner).replace("\r\n", '", interface "')}"`;
}
