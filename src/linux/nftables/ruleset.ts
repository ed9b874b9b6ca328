/**
 * A ruleset as plain data: what the rest of the program wants, and what is read back
 * from the kernel. The terms are those of `nft`.
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

/** The hook at which the kernel enters a chain; a chain without one is entered only by jumps. */
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
export type NftChange = {
  readonly table: TableReference;
} /** `isOwned`: it is gone when the socket is closed, and nobody else can change it. */ & (
  | { readonly kind: "add-table"; readonly comment?: string; readonly isOwned?: true }
  /** EEXIST if the table exists. */
  | { readonly kind: "create-table"; readonly comment?: string }
  | { readonly kind: "delete-table" }
  | { readonly kind: "add-chain"; readonly chain: NftChain }
  /** EBUSY unless its rules were flushed and all jumps to it removed before. */
  | { readonly kind: "delete-chain"; readonly chain: string }
  | { readonly kind: "flush-chain"; readonly chain: string }
  /** After the existing rules: adding it twice adds two rules. */
  | { readonly kind: "add-rule"; readonly rule: NftRule }
  | { readonly kind: "delete-rule"; readonly chain: string; readonly handle: bigint }
  | { readonly kind: "add-set"; readonly set: NftSet }
  | { readonly kind: "delete-set"; readonly set: string }
  | { readonly kind: "flush-set"; readonly set: string }
  /** Succeeds if the same element exists; EEXIST if the key exists with other data. */
  | { readonly kind: "add-elements"; readonly set: string; readonly elements: readonly NftElement[] }
  /** Like `add-elements`, but EEXIST if the key exists. */
  | { readonly kind: "create-elements"; readonly set: string; readonly elements: readonly NftElement[] }
  /** By key: data is not compared. ENOENT if one does not exist. */
  | { readonly kind: "delete-elements"; readonly set: string; readonly elements: readonly NftElement[] }
  /** Like `delete-elements`, but succeeds if one does not exist. Kernel 6.3 and later. */
  | { readonly kind: "destroy-elements"; readonly set: string; readonly elements: readonly NftElement[] }
);

/** Succeeds whether or not the table exists: deleting one that does not is an error, so it is added first. */
export function tableRemoval(table: TableReference): NftChange[] {
  return [
    { kind: "add-table", table },
    { kind: "delete-table", table },
  ];
}

/** The steps that create a table, each after what it refers to. */
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
