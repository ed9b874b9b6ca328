/**
 * Applies changes: all of them or none, in one system call.
 *
 * `tryCommit` returns refusals that the caller expects (EEXIST of an element, ENOENT of
 * a table); `commit` throws any refusal.
 */
import { isKernelError, KernelError } from "../kernel-error.ts";
import { attempt, type NetlinkSocket, reserveSequences, sendBatch } from "../netlink-socket.ts";
import { encodeBatch } from "./batch-writer.ts";
import type { NftChange } from "./ruleset.ts";
import * as wire from "./wire.ts";

/** Why nothing was changed. */
export interface Refusal {
  /** The change that the kernel refused; absent if it refused the batch as a whole (EPERM, ERESTART). */
  readonly change?: NftChange;
  readonly error: KernelError;
}

/** Returns the refusals in the order of the changes; none means that all changes were applied. */
export function tryCommit(
  socket: NetlinkSocket,
  changes: readonly NftChange[],
  /** The kernel refuses with ERESTART if any ruleset was changed since this generation. */
  generation?: number,
): readonly Refusal[] {
  if (changes.length === 0) return [];
  const batch = encodeBatch(changes, socket.nextSequence, generation);
  const { changeOfMessage } = batch;
  const first = reserveSequences(socket, changeOfMessage.length + 2);

  const refusals: Refusal[] = [];
  const range = { bytes: batch.bytes, first, last: first + changeOfMessage.length };
  sendBatch(socket, range, (sequence, { errno, text }) => {
    const change = changes[changeOfMessage[sequence - first - 1] ?? -1];
    const error = new KernelError(change === undefined ? "change the ruleset" : describeChange(change), errno, text);
    refusals.push(change === undefined ? { error } : { change, error });
  });
  return refusals;
}

/** Throws the first refusal. */
export function commit(socket: NetlinkSocket, changes: readonly NftChange[]): void {
  const [refusal] = tryCommit(socket, changes);
  if (refusal !== undefined) throw refusal.error;
}

/** How often changes are compared again that another program has overtaken. */
const COMPARISONS = 5;

/**
 * For changes that follow from a comparison with the kernel: another program may change the same at the same time, so they
 * are compared again if something was there already, or not any more. Returns whether something was written.
 */
export function commitCompared(socket: NetlinkSocket, compare: () => readonly NftChange[]): boolean {
  for (let comparison = 1; ; comparison++) {
    const changes = compare();
    const [refusal] = tryCommit(socket, changes);
    if (refusal === undefined) return changes.length > 0;
    if (comparison === COMPARISONS || !isKernelError(refusal.error, "ENOENT", "EEXIST")) throw refusal.error;
  }
}

/** The generation of the ruleset in this namespace: every batch of any process increments it. */
export function readGeneration(socket: NetlinkSocket): number {
  let generation = 0;
  const request = {
    action: "read the ruleset's generation",
    type: wire.MESSAGE.getGeneration,
    flags: 0,
    write: (writer: { raw(bytes: Uint8Array): void }) => writer.raw(new Uint8Array(wire.HEADER_LENGTH)),
  };
  const [error] = attempt(socket, [request], (message) => {
    if (message.type !== wire.MESSAGE.newGeneration) return;
    const attributes = message.attributes(wire.HEADER_LENGTH);
    while (attributes.next()) if (attributes.type === 1) generation = attributes.u32Big();
  });
  if (error !== undefined) throw error;
  return generation;
}

/** The text that follows "Cannot". */
function describeChange(change: NftChange): string {
  const table = `table ${change.table.family} "${change.table.name}"`;
  const verb = change.kind.slice(0, change.kind.indexOf("-"));
  switch (change.kind) {
    case "add-table":
    case "create-table":
    case "delete-table":
      return `${verb} ${table}`;
    case "add-chain":
      return `add chain "${change.chain.name}" of ${table}`;
    case "delete-chain":
    case "flush-chain":
      return `${verb} chain "${change.chain}" of ${table}`;
    case "add-rule":
      return `add a rule to chain "${change.rule.chain}" of ${table}`;
    case "delete-rule":
      return `delete rule ${change.handle} of chain "${change.chain}" of ${table}`;
    case "add-set":
      return `add set "${change.set.name}" of ${table}`;
    case "delete-set":
    case "flush-set":
      return `${verb} set "${change.set}" of ${table}`;
    case "add-elements":
    case "create-elements":
    case "delete-elements":
    case "destroy-elements":
      return `${verb} elements of set "${change.set}" of ${table}`;
  }
}
