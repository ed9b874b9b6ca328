/** Messages of a batch about elements of sets and maps. */
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import { typeLength } from "../../../src/linux/nftables/data-type.ts";
import { readElements } from "../../../src/linux/nftables/object-reader.ts";
import type { NftElement } from "../../../src/linux/nftables/set.ts";
import * as wire from "../../../src/linux/nftables/wire.ts";
import { findSet } from "./apply-set.ts";
import { findTable } from "./apply-table.ts";
import {
  beginningOf,
  type Conflict,
  conflictOfEnd,
  conflictOfRange,
  isEndOfDeleted,
  isNull,
  isRange,
  rangeWith,
} from "./intervals.ts";
import { Refused, required } from "./refused.ts";
import type { Request } from "./request.ts";
import { elementKey, hasOrderedKeys, type ModelSet, type ModelTable } from "./state.ts";
import type { Transaction } from "./transaction.ts";
import { validateJump } from "./validate.ts";

export function addElements(transaction: Transaction, request: Request, port: number): void {
  const table = findTable(transaction.state, request, port);
  const name = request.text(wire.ELEMENT_LIST.set);
  const set = findSet(transaction, table, name, request.number(wire.ELEMENT_LIST.setId));
  if (!request.has(wire.ELEMENT_LIST.elements)) throw new Refused("EINVAL");
  if (set.isAnonymous && set.lookups > 0) throw new Refused("EBUSY");
  const added: NftElement[] = [];
  for (const element of elementsOf(request)) {
    checkElement(table, set, element);
    const conflict = conflictOf(transaction, set, element);
    if (conflict === undefined) {
      transaction.addElement(table, set, element);
      added.push(element);
    } else if (conflict.kind === "ignored") continue;
    else if (conflict.kind === "overlap" || !hasSameData(conflict.element, element) || isExclusive(request))
      throw new Refused("EEXIST");
  }
  if (added.length > 0) transaction.tell({ kind: "elements", table, set, elements: added, isNew: true });
}

function isExclusive(request: Request): boolean {
  return request.hasFlag(FLAG.exclusive);
}

function conflictOf(transaction: Transaction, set: ModelSet, element: NftElement): Conflict | undefined {
  if (hasOrderedKeys(set)) return conflictOfEnd(set, element, transaction.namedBeginnings);
  if (set.set.holdsIntervals === true) {
    const conflict = conflictOfRange(set, element);
    if (conflict === undefined && !isRange(set, element)) throw new Refused("EINVAL");
    return conflict;
  }
  const same = set.elements.get(elementKey(element));
  return same === undefined ? undefined : { kind: "same", element: same };
}

function hasSameData({ data }: NftElement, other: NftElement): boolean {
  return Bun.deepEquals(data, other.data);
}

function checkElement(table: ModelTable, set: ModelSet, element: NftElement): void {
  const { data, interval, comment } = element;
  checkKey(set, element);
  if (set.set.data === undefined ? data !== undefined : data === undefined && interval !== "end")
    throw new Refused("EINVAL");
  if (interval === "end" && (data !== undefined || comment !== undefined)) throw new Refused("EINVAL");
  if (data !== undefined) checkData(table, set, data);
}

function checkKey(set: ModelSet, { key, keyEnd, interval }: NftElement): void {
  if (interval === "end" && !hasOrderedKeys(set)) throw new Refused("EINVAL");
  if (keyEnd !== undefined && (set.set.holdsIntervals !== true || hasOrderedKeys(set))) throw new Refused("EINVAL");
  const length = typeLength(set.set.key);
  if (key.length !== length || (keyEnd !== undefined && keyEnd.length !== length)) throw new Refused("EINVAL");
}

function checkData(table: ModelTable, { set }: ModelSet, data: Exclude<NftElement["data"], undefined>): void {
  if (data instanceof Uint8Array) {
    if (set.data === undefined || set.data === "verdict" || data.length !== typeLength(set.data))
      throw new Refused("EINVAL");
    return;
  }
  if (set.data !== "verdict") throw new Refused("EINVAL");
  validateJump(table, data);
}

export function deleteElements(transaction: Transaction, request: Request, port: number): void {
  const isTolerant = request.message.type === wire.MESSAGE.destroyElement;
  const table = findTable(transaction.state, request, port);
  const set = required(table.sets.get(required(request.text(wire.ELEMENT_LIST.set), "EINVAL")), "ENOENT");
  if (set.isAnonymous) throw new Refused("EOPNOTSUPP");
  const isFlush = !request.has(wire.ELEMENT_LIST.elements);
  const removed: NftElement[] = [];
  for (const wanted of isFlush ? [...set.elements.values()] : elementsOf(request)) {
    checkKey(set, wanted);
    const element = isFlush ? wanted : elementToDelete(transaction, set, wanted);
    if (element === undefined && isTolerant) continue;
    if (element === undefined) throw new Refused("ENOENT");
    transaction.removeElement(table, set, element);
    removed.push(element);
  }
  if (removed.length > 0) transaction.tell({ kind: "elements", table, set, elements: removed, isNew: false });
}

function elementToDelete(transaction: Transaction, set: ModelSet, wanted: NftElement): NftElement | undefined {
  if (hasOrderedKeys(set)) return endToDelete(transaction, set, wanted);
  // The kernel compares only the first key with the ranges.
  return set.set.holdsIntervals === true ? rangeWith(set, wanted.key) : set.elements.get(elementKey(wanted));
}

function endToDelete({ namedBeginnings }: Transaction, set: ModelSet, wanted: NftElement): NftElement | undefined {
  if (wanted.interval !== "end" || isNull(wanted)) namedBeginnings.delete(set);
  const found = set.elements.get(elementKey(wanted));
  if (found === undefined) return undefined;
  if (found.interval !== "end") namedBeginnings.set(set, found);
  else if (!isEndOfDeleted(set, found, namedBeginnings)) return undefined;
  return found;
}

/** The element that a program gets which asks for the key. */
export function elementAt(set: ModelSet, wanted: NftElement): NftElement | undefined {
  checkKey(set, wanted);
  if (hasOrderedKeys(set)) return beginningOf(set, wanted.key);
  if (set.set.holdsIntervals === true) return rangeWith(set, wanted.key);
  return set.elements.get(elementKey(wanted));
}

export function elementsOf({ message }: Request): readonly NftElement[] {
  // The elements of a request are encoded like those of a reply.
  const { type } = message;
  message.type = wire.MESSAGE.newElement;
  const elements = readElements(message) ?? [];
  message.type = type;
  return elements;
}
