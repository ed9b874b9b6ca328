import type { Family } from "../ip/address.ts";
import type { Prefix } from "../ip/prefix.ts";

/** The allowed prefix lengths of blocks. */
export const BLOCK_SIZES = {
  4: { shortest: 20, longest: 32, usual: 26 },
  6: { shortest: 116, longest: 128, usual: 122 },
} as const satisfies Record<Family, BlockSizeLimits>;

export interface BlockSizeLimits {
  readonly shortest: number;
  readonly longest: number;
  readonly usual: number;
}

/** The block size of a pool that does not choose one: a pool smaller than the usual block is one block. */
export function defaultBlockSize({ network, length }: Prefix): number {
  const { usual, longest } = BLOCK_SIZES[network.family];
  return Math.min(Math.max(usual, length), longest);
}
