/**
 * A ruleset as plain data: what the rest of the program says, and what is read
 * back from the kernel. The words are those of `nft`.
 */
import type { Expression } from "./expression.ts";
import type { NftElement, NftSet } from "./set.ts";
import type { FAMILY, HOOK_NUMBER, POLICY } from "./wire.ts";

export type NftFamily = keyof typeof FAMILY;
export type Hook = keyof typeof HOOK_NUMBER;
export type ChainPolicy = keyof typeof POLICY;

export interface TableReference {
  readonly family: NftFamily;
  readonly name: string;
}

export interface NftTable extends TableReference {
  readonly comment?: string;
}

/** Where the kernel enters a chain; a chain without is entered by jumps alone. */
export interface BaseChain {
  readonly type: "filter" | "nat" | "route";
  readonly hook: Hook;
  readonly priority: number;
  readonly policy: ChainPolicy;
}

export interface NftChain {
  readonly name: string;
  readonly base?: BaseChain;
  readonly comment?: string;
}

export interface NftRule {
  readonly chain: string;
  readonly expressions: readonly Expression[];
  readonly comment?: string;
}

/** A whole table. */
export interface Ruleset {
  readonly table: NftTable;
  readonly sets: readonly NftSet[];
  readonly chains: readonly NftChain[];
  readonly rules: readonly NftRule[];
  readonly elements: readonly { readonly set: string; readonly elements: readonly NftElement[] }[];
}

/** One step of a batch. */
export type NftChange = { readonly table: TableReference } & (
  | { readonly kind: "add-table"; readonly comment?: string }
  /** EEXIST where the table is there. */
  | { readonly kind: "create-table"; readonly comment?: string }
  | { readonly kind: "delete-table" }
  | { readonly kind: "add-chain"; readonly chain: NftChain }
  /** Without its rules being flushed before, or jumps to it removed: EBUSY. */
  | { readonly kind: "delete-chain"; readonly chain: string }
  | { readonly kind: "flush-chain"; readonly chain: string }
  /** Behind the rules that are there: repeating it repeats the rule. */
  | { readonly kind: "add-rule"; readonly rule: NftRule }
  | { readonly kind: "delete-rule"; readonly chain: string; readonly handle: bigint }
  | { readonly kind: "add-set"; readonly set: NftSet }
  | { readonly kind: "delete-set"; readonly set: string }
  | { readonly kind: "flush-set"; readonly set: string }
  /** The same element again is well; the same key with other data is EEXIST. */
  | { readonly kind: "add-elements"; readonly set: string; readonly elements: readonly NftElement[] }
  /** As `add-elements`, and EEXIST where the key is there at all. */
  | { readonly kind: "create-elements"; readonly set: string; readonly elements: readonly NftElement[] }
  /** By key: data is not compared. ENOENT where one is missing. */
  | { readonly kind: "delete-elements"; readonly set: string; readonly elements: readonly NftElement[] }
  /** As `delete-elements`, and well where one is missing. Kernel 6.3 and newer. */
  | { readonly kind: "destroy-elements"; readonly set: string; readonly elements: readonly NftElement[] }
);

/** The steps that make a table from nothing, each behind what it refers to. */
export function changesOf(ruleset: Ruleset): NftChange[] {
  const { table, sets, chains, rules, elements } = ruleset;
  const comment = table.comment === undefined ? {} : { comment: table.comment };
  return [
    { kind: "add-table", table, ...comment },
    ...chains.map((chain): NftChange => ({ kind: "add-chain", table, chain })),
    ...sets.map((set): NftChange => ({ kind: "add-set", table, set })),
    ...elements.map((list): NftChange => ({ kind: "add-elements", table, ...list })),
    ...rules.map((rule): NftChange => ({ kind: "add-rule", table, rule })),
  ];
}
