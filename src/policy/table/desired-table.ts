/** The content that the policy table must have in the kernel, and what changed of it. The terms are those of `nft`. */
import type { Expression } from "../../linux/nftables/expression.ts";
import type { NftChain } from "../../linux/nftables/ruleset.ts";
import type { NftElement, NftSet } from "../../linux/nftables/set.ts";
import type { Point } from "../point.ts";

export interface DesiredTable {
  readonly chains: ReadonlyMap<string, DesiredChain>;
  /** Sets and maps by name. */
  readonly sets: ReadonlyMap<string, DesiredSet>;
}

/** Immutable: a changed chain is another object. */
export interface DesiredChain {
  readonly chain: NftChain;
  readonly rules: readonly DesiredRule[];
  /** Where its rules judge a packet; absent if they do not decide about connections. */
  readonly point?: Point;
}

export interface DesiredRule {
  readonly expressions: readonly Expression[];
  /** Names the policy and the rule in it, for people and for `policy trace`. */
  readonly comment?: string;
  /**
   * Which connections a rule that accepts labels while flows are observed; absent: all, since known ones do not come to it.
   * `none`: its packets belong to no flow, or a later stage decides about them.
   */
  readonly labels?: "new ones" | "none";
  /** It drops what policy denies: the settings say whether the sender is told. */
  readonly isDenial?: true;
}

export interface DesiredSet {
  readonly set: NftSet;
  /** By a text that is the same for equal keys. */
  readonly elements: ReadonlyMap<string, NftElement>;
}

/** What changed since the last delta. The new content is in the table. */
export interface TableDelta {
  readonly chains: ReadonlyMap<string, "created" | "changed" | "deleted">;
  /** With all their elements. */
  readonly sets: ReadonlyMap<string, "created" | "deleted">;
  /** Of sets that existed before and still do. An element whose data changed is in both lists. */
  readonly elements: ReadonlyMap<string, ElementChanges>;
}

export interface ElementChanges {
  readonly removed: readonly NftElement[];
  readonly added: readonly NftElement[];
}
