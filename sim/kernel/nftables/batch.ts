/**
 * Applies a batch: completely, or not at all. Every message is tried, so that all refusals are known.
 *
 * If only what is behind the jumps is wrong, the kernel tries the batch again and looks after each message, to find the one
 * that it must refuse.
 */
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import * as wire from "../../../src/linux/nftables/wire.ts";
import { addElements, deleteElements } from "./apply-element.ts";
import { addRule, deleteRules } from "./apply-rule.ts";
import { addSet, deleteSet } from "./apply-set.ts";
import { addChain, addTable, deleteChain, deleteTable, findTable } from "./apply-table.ts";
import { Refused } from "./refused.ts";
import type { Request } from "./request.ts";
import type { NetfilterState } from "./state.ts";
import { type ChangeEvent, Transaction } from "./transaction.ts";
import { validateTable } from "./validate.ts";

type Apply = (transaction: Transaction, request: Request, port: number) => void;

const APPLY: Readonly<Record<number, Apply | undefined>> = {
  [wire.MESSAGE.newTable]: addTable,
  [wire.MESSAGE.deleteTable]: deleteTable,
  [wire.MESSAGE.newChain]: addChain,
  [wire.MESSAGE.deleteChain]: deleteChain,
  [wire.MESSAGE.newRule]: addRule,
  [wire.MESSAGE.deleteRule]: deleteRules,
  [wire.MESSAGE.newSet]: addSet,
  [wire.MESSAGE.deleteSet]: deleteSet,
  [wire.MESSAGE.newElement]: addElements,
  [wire.MESSAGE.deleteElement]: deleteElements,
  [wire.MESSAGE.destroyElement]: deleteElements,
};

export interface BatchOutcome {
  /** Of the messages that were refused, and of those that asked for it; 0 is success. */
  readonly replies: readonly { readonly request: Request; readonly errno: number }[];
  /** What listeners are told; none if nothing was changed. */
  readonly events: readonly ChangeEvent[];
}

export function applyBatch(state: NetfilterState, requests: readonly Request[], port: number): BatchOutcome {
  const transaction = new Transaction(state);
  const errors = applyAll(transaction, requests, port, "validate at the end");
  if (errors.every((errno) => errno === 0) && isValid(transaction)) {
    if (transaction.events.length > 0) {
      state.generation++;
      state.changes++;
    }
    return { replies: repliesOf(requests, errors), events: transaction.events };
  }
  transaction.takeBack();
  if (errors.some((errno) => errno !== 0)) return { replies: repliesOf(requests, errors), events: [] };
  const second = new Transaction(state);
  const found = applyAll(second, requests, port, "validate each");
  second.takeBack();
  return { replies: repliesOf(requests, found), events: [] };
}

function applyAll(
  transaction: Transaction,
  requests: readonly Request[],
  port: number,
  when: "validate at the end" | "validate each",
): readonly number[] {
  return requests.map((request) => {
    transaction.sequence = request.sequence;
    try {
      const apply = APPLY[request.message.type];
      if (apply === undefined) throw new Refused("EINVAL");
      apply(transaction, request, port);
      const { type } = request.message;
      const canBreakJumps = type === wire.MESSAGE.newRule || type === wire.MESSAGE.newElement;
      if (when === "validate each" && canBreakJumps) validateTable(findTable(transaction.state, request));
      return 0;
    } catch (failure) {
      if (failure instanceof Refused) return failure.errno;
      throw failure;
    }
  });
}

function isValid(transaction: Transaction): boolean {
  try {
    validateChanged(transaction);
    return true;
  } catch (failure) {
    if (failure instanceof Refused) return false;
    throw failure;
  }
}

function validateChanged({ events, state }: Transaction): void {
  const changed = new Set(
    events.flatMap(({ table, kind, isNew }) => (isNew && (kind === "rule" || kind === "elements") ? [table] : [])),
  );
  for (const table of state.tables.values()) if (changed.has(table)) validateTable(table);
}

function repliesOf(requests: readonly Request[], errors: readonly number[]): BatchOutcome["replies"] {
  return requests.flatMap((request, index) => {
    const errno = errors[index] ?? 0;
    return errno !== 0 || request.hasFlag(FLAG.acknowledge) ? [{ request, errno }] : [];
  });
}
