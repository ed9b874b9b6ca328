/**
 * Which blocks concern this node, for its search for leaks on the orchestrator's API. To select the claims of one node, the
 * API server reads those of all: lists of all nodes would cost it the square of their number. The agent follows the blocks
 * of the cluster anyway, and these name their node and the nodes of their addresses.
 *
 *   followed blocks ──> blocks of the node, blocks with addresses of it ──┐
 *   its claims, listed in the second pass and about once a day ───────────┴──> blocks that are read by their names
 *
 * A record that the node borrowed from a block outlives the addresses, and no block tells of it: so a block that has
 * concerned the node does so until its record is gone. What comes and goes too fast to be followed, the next list finds.
 */
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { Update } from "../../datastore/replica.ts";
import { formatPrefix, type Prefix } from "../../ip/prefix.ts";
import { type Borrowing, readBorrowings, readBorrowingsOf } from "../../ipam/leaks/borrowings.ts";
import { decodeAffinity } from "../../ipam/records.ts";
import { affinitiesPrefix } from "../../model/keys.ts";
import type { RoutedBlock } from "../../routing/facts.ts";
import type { RoutedBlockValues } from "../../routing/inputs.ts";
import type { KnownClaims } from "../../upkeep/host-leaks.ts";

/** On average: agents that start together do not list together. */
const LIST_MILLISECONDS = 24 * 60 * 60 * 1000;

export interface ClaimsMeans {
  readonly store: Datastore;
  readonly node: string;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

export class FollowedClaims implements KnownClaims {
  /** Blocks that concern the node, or have done so, by their names. */
  private readonly concerned = new Map<string, Prefix>();
  /** The names of those that concern it now. */
  private readonly current = new Set<string>();
  private readonly firstUpdate = Promise.withResolvers<void>();
  /** `undefined` until the first pass, which all agents of a cluster may begin together. */
  private listAt: number | undefined;

  constructor(private readonly means: ClaimsMeans) {}

  /** Resolves when all blocks have been listed once. */
  get areKnown(): Promise<void> {
    return this.firstUpdate.promise;
  }

  /** Until the updates end. */
  async follow(updates: AsyncIterable<Update<RoutedBlockValues>>): Promise<void> {
    for await (const { changes } of updates) {
      for (const change of [...changes.blocks4, ...changes.blocks6]) this.learn(change);
      this.firstUpdate.resolve();
    }
  }

  /** Before a search. */
  async listIfDue(): Promise<void> {
    const { store, node, elapsed, random } = this.means;
    if (this.listAt === undefined) {
      this.listAt = elapsed();
      return;
    }
    if (elapsed() < this.listAt) return;
    const claims = (await readAllEntries(store, affinitiesPrefix(node))).flatMap(
      (entry) => decodeAffinity(entry) ?? [],
    );
    for (const { cidr } of [...claims, ...(await readBorrowings(store, node))]) {
      this.concerned.set(formatPrefix(cidr), cidr);
    }
    this.listAt = elapsed() + LIST_MILLISECONDS * (0.5 + random());
  }

  blocks(): readonly Prefix[] {
    return [...this.concerned.values()];
  }

  async borrowings(): Promise<readonly Borrowing[]> {
    const { store, node } = this.means;
    const former = [...this.concerned].filter(([name]) => !this.current.has(name));
    const found = await readBorrowingsOf(
      store,
      node,
      former.map(([, cidr]) => cidr),
    );
    const recorded = new Set(found.map(({ cidr }) => formatPrefix(cidr)));
    for (const [name] of former) {
      if (!recorded.has(name) && !this.current.has(name)) this.concerned.delete(name);
    }
    return found;
  }

  /** An unreadable block still concerns whom it has concerned. */
  private learn(change: RecordChange<RoutedBlock>): void {
    const block = change.kind === "put" ? change.value : change.previous;
    if (block === undefined) return;
    const name = formatPrefix(block.prefix);
    const isConcerned = change.kind === "put" && concerns(block, this.means.node);
    if (isConcerned) {
      this.concerned.set(name, block.prefix);
      this.current.add(name);
    } else if (change.kind !== "unreadable") this.current.delete(name);
  }
}

function concerns({ node: owner, borrowed }: RoutedBlock, node: string): boolean {
  return owner === node || borrowed.values().some((address) => address.node === node);
}
