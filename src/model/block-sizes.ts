import type { Family } from "../ip/address.ts";

/** The allowed prefix lengths of blocks. */
export const BLOCK_SIZES = {
  4: { shortest: 20, longest: 32, usual: 26 },
  6: { shortest: 116, longest: 128, usual: 122 },
} as const satisfies Record<Family, { shortest: number; longest: number; usual: number }>;
