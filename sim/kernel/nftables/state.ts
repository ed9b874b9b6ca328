/**
 * The rulesets of one network namespace, as the kernel has them: plain data, in the product's own terms, so that a test can
 * read them and `verdict.ts` can judge packets by them. Only `Transaction` changes them.
 */
import type { NftChain, NftFamily } from "../../../src/linux/nftables/ruleset.ts";
import type { NftElement } from "../../../src/linux/nftables/set.ts";
import type { DesiredChain, DesiredRule, DesiredSet, DesiredTable } from "../../../src/policy/table/desired-table.ts";
import { Connections } from "./conntrack.ts";
import { NetfilterFaults } from "./faults.ts";

export class NetfilterState {
  /** By family and name, in the order of creation. */
  readonly tables = new Map<string, ModelTable>();
  /** Incremented by every batch that changes something. */
  generation = 1;
  /** How many batches have changed something: the work that was done. */
  changes = 0;
  /** The name of the process that made the last change. */
  changedBy: string | undefined;
  lastTableHandle = 0n;
  readonly faults = new NetfilterFaults();
  readonly connections: Connections;

  /** `now`: virtual milliseconds, for what the kernel forgets after some time. */
  constructor(now: () => number = () => 0) {
    this.connections = new Connections(now);
  }
}

export interface ModelTable extends DesiredTable {
  readonly family: NftFamily;
  readonly name: string;
  readonly handle: bigint;
  readonly comment?: string;
  /** The address of the socket with which it is deleted. */
  readonly owner?: number;
  readonly chains: Map<string, ModelChain>;
  /** With the anonymous ones. */
  readonly sets: Map<string, ModelSet>;
  /** Of chains, rules and sets. It never falls, not even if a batch is refused. */
  lastHandle: bigint;
}

export interface ModelChain extends DesiredChain {
  readonly handle: bigint;
  chain: NftChain;
  rules: ModelRule[];
  /** How many rules and elements jump here. */
  jumps: number;
}

/** In its instructions, a set is always its name, and counters have their present values. */
export interface ModelRule extends DesiredRule {
  readonly handle: bigint;
}

export interface ModelSet extends DesiredSet {
  readonly handle: bigint;
  /** Part of one rule, and gone with it. */
  readonly isAnonymous: boolean;
  /** By `elementKey`. */
  readonly elements: Map<string, NftElement>;
  /** In an interval set of single fields, from the greatest key to the least. */
  readonly ordered: NftElement[];
  /** How many rules look something up in it. */
  lookups: number;
}

export function tableKey(family: NftFamily, name: string): string {
  return `${family} ${name}`;
}

/** The same text for equal keys. */
export function elementKey({ key, keyEnd, interval }: NftElement): string {
  if (keyEnd !== undefined) return `${key.toHex()}-${keyEnd.toHex()}`;
  return interval === "end" ? `${key.toHex()}-` : key.toHex();
}

/** Ranges are elements of their own, one for each end. */
export function hasOrderedKeys({ set: { key, holdsIntervals } }: DesiredSet): boolean {
  return holdsIntervals === true && key.length === 1;
}
