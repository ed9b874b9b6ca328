/** Writes the kernel's descriptions of tables, chains, rules, sets and elements, in replies and in messages to listeners. */
import type { MessageWriter } from "../../../src/linux/netlink/message-writer.ts";
import { writeElement } from "../../../src/linux/nftables/element-writer.ts";
import { writeExpression } from "../../../src/linux/nftables/expression-writer.ts";
import type { NftElement } from "../../../src/linux/nftables/set.ts";
import { writeSet } from "../../../src/linux/nftables/set-writer.ts";
import { encodeComment } from "../../../src/linux/nftables/userdata.ts";
import * as wire from "../../../src/linux/nftables/wire.ts";
import type { ModelChain, ModelRule, ModelSet, ModelTable } from "./state.ts";

/** The fixed part of each message. */
export function writeFamily(writer: MessageWriter, family: ModelTable["family"] | undefined, generation: number): void {
  const number = family === undefined ? 0 : wire.FAMILY[family];
  writer.raw(Uint8Array.of(number, 0, (generation >> 8) & 255, generation & 255));
}

const TABLE_USE = 3;

export function describeTable(writer: MessageWriter, table: ModelTable): void {
  writer.text(wire.TABLE.name, table.name);
  writer.u32Big(wire.TABLE.flags, table.owner === undefined ? 0 : wire.TABLE_OWNED);
  writer.u32Big(TABLE_USE, table.chains.size + table.sets.size);
  writer.u64Big(wire.TABLE.handle, table.handle);
  writeComment(writer, wire.TABLE.userdata, table.comment);
}

const CHAIN_USE = 6;

export function describeChain(writer: MessageWriter, table: ModelTable, chain: ModelChain): void {
  const { name, base, comment } = chain.chain;
  writer.text(wire.CHAIN.table, table.name);
  writer.text(wire.CHAIN.name, name);
  writer.u64Big(wire.CHAIN.handle, chain.handle);
  if (base !== undefined) {
    const hook = writer.open(wire.CHAIN.hook);
    writer.u32Big(wire.HOOK.number, wire.HOOK_NUMBER[base.hook]);
    writer.u32Big(wire.HOOK.priority, base.priority);
    writer.close(hook);
    writer.u32Big(wire.CHAIN.policy, wire.POLICY[base.policy]);
    writer.text(wire.CHAIN.type, base.type);
  }
  writer.u32Big(CHAIN_USE, chain.rules.length + chain.jumps);
  writeComment(writer, wire.CHAIN.userdata, comment);
}

export function describeRule(writer: MessageWriter, table: ModelTable, chain: ModelChain, rule: ModelRule): void {
  writer.text(wire.RULE.table, table.name);
  writer.text(wire.RULE.chain, chain.chain.name);
  writer.u64Big(wire.RULE.handle, rule.handle);
  const list = writer.open(wire.RULE.expressions);
  for (const expression of rule.expressions) {
    const name = expression.kind === "lookup" && typeof expression.set === "string" ? expression.set : "";
    writeExpression(writer, expression, { name });
  }
  writer.close(list);
  writeComment(writer, wire.RULE.userdata, rule.comment);
}

export function describeSet(writer: MessageWriter, table: ModelTable, set: ModelSet): void {
  writer.text(wire.SET.table, table.name);
  const anonymous = set.isAnonymous ? wire.SET_FLAG.anonymous | wire.SET_FLAG.constant : 0;
  writeSet(writer, set.set, { name: set.set.name, id: 0 }, anonymous);
  writer.u64Big(wire.SET.handle, set.handle);
}

/** Well below the size of a datagram. */
const FULL_LIST = 16_000;

/** Writes as many as fit; returns how many. */
export function describeElements(
  writer: MessageWriter,
  table: ModelTable,
  set: ModelSet,
  elements: readonly NftElement[],
): number {
  writer.text(wire.ELEMENT_LIST.table, table.name);
  writer.text(wire.ELEMENT_LIST.set, set.set.name);
  const list = writer.open(wire.ELEMENT_LIST.elements);
  let count = 0;
  for (const element of elements) {
    if (writer.length - list >= FULL_LIST) break;
    writeElement(writer, element, wire.LIST_ENTRY);
    count++;
  }
  writer.close(list);
  return count;
}

const GENERATION = { id: 1, processId: 2, processName: 3 } as const;

/** The process that made the last change. */
export interface Author {
  readonly processId: number;
  readonly processName: string;
}

export function describeGeneration(writer: MessageWriter, generation: number, author: Author): void {
  writer.u32Big(GENERATION.id, generation);
  writer.u32Big(GENERATION.processId, author.processId);
  writer.text(GENERATION.processName, author.processName);
}

function writeComment(writer: MessageWriter, attribute: number, comment: string | undefined): void {
  if (comment !== undefined) writer.bytes(attribute, encodeComment(comment));
}
