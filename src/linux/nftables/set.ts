/** Sets, maps and their elements as plain data. */
import type { DataType } from "./data-type.ts";
import type { Verdict } from "./verdict.ts";

/** The types of keys and values. Several types are a concatenation. */
export interface SetShape {
  readonly key: readonly DataType[];
  /** The values of a map; absent for a set. */
  readonly data?: readonly DataType[] | "verdict";
  /** Elements are ranges: see intervals.ts. */
  readonly holdsIntervals?: boolean;
}

export interface NftSet extends SetShape {
  readonly name: string;
  readonly comment?: string;
  /** The kernel removes an element after this time, and rules can remove it. */
  readonly timeoutMilliseconds?: number;
}

export interface NftElement {
  /** One field, or the fields of a concatenation: see `concatenate`. */
  readonly key: Uint8Array;
  /** The last key of a range, in a set of concatenations with intervals. */
  readonly keyEnd?: Uint8Array;
  /** `end`: the first key after a range; `open`: a range up to the end of the key space. */
  readonly interval?: "end" | "open";
  readonly data?: Uint8Array | Verdict;
  readonly comment?: string;
}
