/** Sets, maps and their elements as plain data. */
import type { DataType } from "./data-type.ts";
import type { Verdict } from "./verdict.ts";

/** What an element is found by, and what it then gives. Several types make a concatenation. */
export interface SetShape {
  readonly key: readonly DataType[];
  /** A map's values; a set has none. */
  readonly data?: readonly DataType[] | "verdict";
  /** Elements are ranges: see intervals.ts. */
  readonly holdsIntervals?: boolean;
}

export interface NftSet extends SetShape {
  readonly name: string;
  readonly comment?: string;
}

export interface NftElement {
  /** One field, or the fields of a concatenation: see `concatenate`. */
  readonly key: Uint8Array;
  /** The last key of a range in a concatenation that holds intervals. */
  readonly keyEnd?: Uint8Array;
  /** `end`: the first key behind a range; `open`: a range that reaches the end of the key space. */
  readonly interval?: "end" | "open";
  readonly data?: Uint8Array | Verdict;
  readonly comment?: string;
}
