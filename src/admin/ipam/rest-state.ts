/** What commands show of a free address that rests. Pure. */
import type { Address } from "../../ip/address.ts";
import { ordinalIn } from "../../ipam/block.ts";
import { describeFormerOwner, restLeftIn } from "../../ipam/rest.ts";
import type { IPAMBlock, Release } from "../../model/ipam-block.ts";

export interface RestState extends Omit<Release, "at"> {
  readonly at: string;
  readonly restsUntil: string;
}

/** `undefined` if it does not rest. `now`: the time of the datastore. */
export function restState(block: IPAMBlock, address: Address, now: Date): RestState | undefined {
  const ordinal = ordinalIn(block, address) ?? -1;
  const release = block.released?.[ordinal];
  const left = restLeftIn(block, ordinal, now);
  if (release === undefined || left === 0) return undefined;
  const { at, ...owner } = release;
  const until = new Date(now.getTime() + left);
  return { at: new Date(at * 1000).toISOString(), ...owner, restsUntil: until.toISOString() };
}

/** `2026-01-02T03:04:05.000Z by namespace "shop"; rests until 2026-01-02T03:07:05.000Z` */
export function describeRest({ at, restsUntil, ...owner }: RestState): string {
  const by = describeFormerOwner(owner);
  return `${at}${by === undefined ? "" : ` by ${by}`}; rests until ${restsUntil}`;
}
