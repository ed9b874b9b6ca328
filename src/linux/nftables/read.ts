/**
 * Reads tables, chains, rules, sets and elements from the kernel, as described in
 * ruleset.ts. Finding one object by name costs the same however many others there
 * are; listing chains reads those of every table of the family.
 */
import { errnoOf } from "../errno.ts";
import { isKernelError, KernelError } from "../kernel-error.ts";
import type { MessageCursor } from "../netlink/message-reader.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { attempt, dump, type NetlinkSocket } from "../netlink-socket.ts";
import { writeElement } from "./element-writer.ts";
import { readChain, readElements, readFamily, readRule, readRuleHead, readSet, readTable } from "./object-reader.ts";
import { type RuleCount, readRuleCount } from "./rule-counts.ts";
import type { NftChain, NftRule, NftTable, TableReference } from "./ruleset.ts";
import type { NftElement, NftSet } from "./set.ts";
import * as wire from "./wire.ts";

const LIST_ATTEMPTS = 20;
/** Milliseconds: the kernel has finished with a table of 50,000 elements well within the sum of these. */
const PAUSE = 5;
const LONGEST_PAUSE = 50;

/** An existing rule; its handle is needed to delete it. */
export interface KnownRule extends NftRule {
  readonly handle: bigint;
}

export function listTables(socket: NetlinkSocket): NftTable[] {
  const request: NetlinkRequest = {
    action: "list tables",
    type: wire.MESSAGE.getTable,
    flags: 0,
    write: (writer) => writer.raw(new Uint8Array(wire.HEADER_LENGTH)),
  };
  return dump(socket, request, readTable);
}

export function findTable(socket: NetlinkSocket, table: TableReference): NftTable | undefined {
  const request = named("read the table", wire.MESSAGE.getTable, table, {});
  return findOne(socket, request, readTable);
}

export function findChain(socket: NetlinkSocket, table: TableReference, name: string): NftChain | undefined {
  const request = named(`read chain "${name}" of`, wire.MESSAGE.getChain, table, { [wire.CHAIN.name]: name });
  return findOne(socket, request, (message) => readChain(message)?.chain);
}

export function listChains(socket: NetlinkSocket, table: TableReference): NftChain[] {
  return dump(socket, named("list chains of", wire.MESSAGE.getChain, table, {}), (message) => {
    const read = readChain(message);
    return read?.table === table.name ? read.chain : undefined;
  });
}

/** The chains of all tables of all families. */
export function listAllChains(
  socket: NetlinkSocket,
): readonly { readonly table: TableReference; readonly chain: NftChain }[] {
  const request: NetlinkRequest = {
    action: "list chains",
    type: wire.MESSAGE.getChain,
    flags: 0,
    write: (writer) => writer.raw(new Uint8Array(wire.HEADER_LENGTH)),
  };
  return dump(socket, request, (message) => {
    const read = readChain(message);
    const family = readFamily(message);
    if (read === undefined || family === undefined) return undefined;
    return { table: { family, name: read.table }, chain: read.chain };
  });
}

/** In the order of evaluation. */
export function listRules(socket: NetlinkSocket, table: TableReference, chain?: string): KnownRule[] {
  const names = chain === undefined ? {} : { [wire.RULE.chain]: chain };
  return orNone(() => dump(socket, named("list rules of", wire.MESSAGE.getRule, table, names), readRule));
}

/** The rules without their instructions, to check whether they exist, at a tenth of the cost. */
export function listRuleHeads(socket: NetlinkSocket, table: TableReference): Pick<NftRule, "chain" | "comment">[] {
  return orNone(() => dump(socket, named("list rules of", wire.MESSAGE.getRule, table, {}), readRuleHead));
}

/** The counters of rules that have one; of one chain if it is given. */
export function listRuleCounts(socket: NetlinkSocket, table: TableReference, chain?: string): RuleCount[] {
  const names = chain === undefined ? {} : { [wire.RULE.chain]: chain };
  return orNone(() => dump(socket, named("list rules of", wire.MESSAGE.getRule, table, names), readRuleCount));
}

export function listSets(socket: NetlinkSocket, table: TableReference): NftSet[] {
  return orNone(() => dump(socket, named("list sets of", wire.MESSAGE.getSet, table, {}), readSet));
}

/** Returns none if the set does not exist. */
export function listElements(socket: NetlinkSocket, table: TableReference, set: string): NftElement[] {
  const request = named(`list elements of set "${set}" of`, wire.MESSAGE.getElement, table, {
    [wire.ELEMENT_LIST.set]: set,
  });
  for (let tries = 1; tries <= LIST_ATTEMPTS; tries++) {
    const parts = orNone(() => dump(socket, request, readElements));
    if (parts.length <= 1 || hasNoRepetition(parts)) return parts.flat();
    Bun.sleepSync(Math.min(tries * PAUSE, LONGEST_PAUSE));
  }
  throw new KernelError(`${request.action}: the set kept changing`, errnoOf("EAGAIN"));
}

/**
 * The kernel resumes a long list by counting elements, and for a moment after a hash
 * table has grown it is rehashed: then some elements come twice and others not at all.
 * Only the repetition can be detected.
 */
function hasNoRepetition(parts: readonly (readonly NftElement[])[]): boolean {
  const seen = new Set<string>();
  let count = 0;
  for (const part of parts) {
    count += part.length;
    for (const { key, interval } of part) seen.add(interval === "end" ? `${key.toHex()}-` : key.toHex());
  }
  return seen.size === count;
}

/** The elements with these keys, in the order of the keys; `undefined` if there is none. One system call. */
export function findElements(
  socket: NetlinkSocket,
  table: TableReference,
  set: string,
  keys: readonly Uint8Array[],
): readonly (NftElement | undefined)[] {
  const first = socket.nextSequence;
  const found = new Array<NftElement | undefined>(keys.length).fill(undefined);
  const requests = keys.map((key) => elementRequest(table, set, key));
  const outcomes = attempt(socket, requests, (message) => {
    found[message.sequence - first] = readElements(message)?.[0];
  });
  for (const error of outcomes) if (error !== undefined) throw error;
  return found;
}

function elementRequest(table: TableReference, set: string, key: Uint8Array): NetlinkRequest {
  const names = named(`read an element of set "${set}" of`, wire.MESSAGE.getElement, table, {
    [wire.ELEMENT_LIST.set]: set,
  });
  return {
    ...names,
    isQuestion: true,
    whenNone: "ENOENT",
    write(writer) {
      names.write(writer);
      const list = writer.open(wire.ELEMENT_LIST.elements);
      writeElement(writer, { key }, 1);
      writer.close(list);
    },
  };
}

function named(
  action: string,
  type: number,
  table: TableReference,
  names: Readonly<Record<number, string>>,
): NetlinkRequest {
  return {
    action: `${action} table ${table.family} "${table.name}"`,
    type,
    flags: 0,
    write(writer) {
      writer.raw(Uint8Array.of(wire.FAMILY[table.family], 0, 0, 0));
      writer.text(wire.TABLE.name, table.name);
      for (const [attribute, name] of Object.entries(names)) writer.text(Number(attribute), name);
    },
  };
}

function findOne<Row>(
  socket: NetlinkSocket,
  request: NetlinkRequest,
  read: (message: MessageCursor) => Row | undefined,
): Row | undefined {
  let found: Row | undefined;
  const [error] = attempt(socket, [request], (message) => {
    found = read(message);
  });
  if (error === undefined) return found;
  if (isKernelError(error, "ENOENT")) return undefined;
  throw error;
}

/** The kernel returns an error for a list of a table that does not exist. */
function orNone<Row>(list: () => Row[]): Row[] {
  try {
    return list();
  } catch (error) {
    if (isKernelError(error, "ENOENT")) return [];
    throw error;
  }
}
