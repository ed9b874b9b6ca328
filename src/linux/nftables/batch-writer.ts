/**
 * Encodes changes as one atomic batch of messages. Pure.
 *
 *   batch begin | message … message (the last one to be acknowledged) | batch end
 *
 * A change may need several messages: a rule with an anonymous set, or more elements
 * than fit in one attribute. `changeOfMessage` maps a message that the kernel refused
 * to its change.
 */
import { MessageWriter } from "../netlink/message-writer.ts";
import { FLAG } from "../netlink/wire.ts";
import { writeElement } from "./element-writer.ts";
import type { AnonymousSet, Expression } from "./expression.ts";
import { writeExpression } from "./expression-writer.ts";
import { inRangeOrder } from "./intervals.ts";
import type { NftChain, NftChange, NftRule, TableReference } from "./ruleset.ts";
import type { NftElement } from "./set.ts";
import { type AnySet, type SetHandle, writeSet } from "./set-writer.ts";
import { encodeComment } from "./userdata.ts";
import * as wire from "./wire.ts";

export interface EncodedBatch {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The index of the change of each message, without the batch's begin message. */
  readonly changeOfMessage: readonly number[];
}

/** The message after the begin message has the sequence number `firstSequence` + 1. */
export function encodeBatch(changes: readonly NftChange[], firstSequence: number, generation?: number): EncodedBatch {
  const batch = new BatchWriter(firstSequence);
  batch.begin(generation);
  for (const change of changes) batch.write(change);
  return batch.finish();
}

interface TableOptions {
  readonly comment?: string;
  readonly isOwned?: true;
}

// Well below the 64 KiB of one attribute, whatever the size of the last element.
const FULL_LIST = 60_000;

class BatchWriter {
  readonly #writer = new MessageWriter();
  readonly #changeOfMessage: number[] = [];
  #sequence: number;
  #change = -1;
  #setId = 0;
  /** The numbers of the sets of this batch: by table, then by name. */
  readonly #setIds = new Map<string, Map<string, number>>();
  #lastMessage = 0;

  constructor(firstSequence: number) {
    this.#sequence = firstSequence;
  }

  begin(generation: number | undefined): void {
    this.#frame(wire.BATCH.begin, () => {
      if (generation !== undefined) this.#writer.u32Big(wire.BATCH.generation, generation);
    });
  }

  finish(): EncodedBatch {
    const last = this.#lastMessage;
    this.#frame(wire.BATCH.end, () => {});
    const bytes = this.#writer.written();
    // Refusals are always sent; one acknowledgement shows that all have arrived.
    const view = new DataView(bytes.buffer);
    if (last > 0) view.setUint16(last + 6, view.getUint16(last + 6, true) | FLAG.acknowledge, true);
    return { bytes, changeOfMessage: this.#changeOfMessage };
  }

  write(change: NftChange): void {
    this.#change++;
    const { table } = change;
    switch (change.kind) {
      case "add-table":
        this.#table(table, change, 0);
        break;
      case "create-table":
        this.#table(table, change, FLAG.create | FLAG.exclusive);
        break;
      case "delete-table":
        this.#named(wire.MESSAGE.deleteTable, table, {});
        break;
      case "add-chain":
        this.#chain(table, change.chain);
        break;
      case "delete-chain":
        this.#named(wire.MESSAGE.deleteChain, table, { [wire.CHAIN.name]: change.chain });
        break;
      case "flush-chain":
        this.#named(wire.MESSAGE.deleteRule, table, { [wire.RULE.chain]: change.chain });
        break;
      case "add-rule":
        this.#rule(table, change.rule);
        break;
      case "delete-rule":
        this.#message(wire.MESSAGE.deleteRule, 0, table, (writer) => {
          writer.text(wire.RULE.table, table.name);
          writer.text(wire.RULE.chain, change.chain);
          writer.u64Big(wire.RULE.handle, change.handle);
        });
        break;
      case "add-set":
        this.#set(table, change.set, { name: change.set.name, id: ++this.#setId }, 0);
        this.#setIdsOf(table).set(change.set.name, this.#setId);
        break;
      case "delete-set":
        this.#named(wire.MESSAGE.deleteSet, table, { [wire.SET.name]: change.set });
        break;
      case "flush-set":
        this.#named(wire.MESSAGE.deleteElement, table, { [wire.ELEMENT_LIST.set]: change.set });
        break;
      case "add-elements":
        this.#elements(wire.MESSAGE.newElement, FLAG.create, table, this.#handleOf(table, change.set), change.elements);
        break;
      case "create-elements": {
        const flags = FLAG.create | FLAG.exclusive;
        this.#elements(wire.MESSAGE.newElement, flags, table, this.#handleOf(table, change.set), change.elements);
        break;
      }
      case "delete-elements":
        this.#elements(wire.MESSAGE.deleteElement, 0, table, { name: change.set }, change.elements);
        break;
      case "destroy-elements":
        this.#elements(wire.MESSAGE.destroyElement, 0, table, { name: change.set }, change.elements);
        break;
    }
  }

  #table(table: TableReference, { comment, isOwned }: TableOptions, flags: number): void {
    this.#message(wire.MESSAGE.newTable, flags, table, (writer) => {
      writer.text(wire.TABLE.name, table.name);
      writer.u32Big(wire.TABLE.flags, isOwned ? wire.TABLE_OWNED : 0);
      writeComment(writer, wire.TABLE.userdata, comment);
    });
  }

  #chain(table: TableReference, { name, base, comment }: NftChain): void {
    this.#message(wire.MESSAGE.newChain, FLAG.create, table, (writer) => {
      writer.text(wire.CHAIN.table, table.name);
      writer.text(wire.CHAIN.name, name);
      if (base !== undefined) {
        writer.text(wire.CHAIN.type, base.type);
        writer.u32Big(wire.CHAIN.policy, wire.POLICY[base.policy]);
        const hook = writer.open(wire.CHAIN.hook);
        writer.u32Big(wire.HOOK.number, wire.HOOK_NUMBER[base.hook]);
        writer.u32Big(wire.HOOK.priority, base.priority);
        writer.close(hook);
      }
      writeComment(writer, wire.CHAIN.userdata, comment);
    });
  }

  #rule(table: TableReference, { chain, expressions, comment }: NftRule): void {
    const sets: SetHandle[] = [];
    for (const expression of expressions) sets.push(this.#setOf(table, expression));
    this.#message(wire.MESSAGE.newRule, FLAG.create | FLAG.append, table, (writer) => {
      writer.text(wire.RULE.table, table.name);
      writer.text(wire.RULE.chain, chain);
      const list = writer.open(wire.RULE.expressions);
      let index = 0;
      for (const expression of expressions) writeExpression(writer, expression, sets[index++] ?? NO_SET);
      writer.close(list);
      writeComment(writer, wire.RULE.userdata, comment);
    });
  }

  /** The set that it refers to; an anonymous set is added first. */
  #setOf(table: TableReference, expression: Expression): SetHandle {
    if (expression.kind !== "lookup" && expression.kind !== "remove-element") return NO_SET;
    if (typeof expression.set === "string") return this.#handleOf(table, expression.set);
    const set: AnonymousSet = expression.set;
    const handle = { name: set.data === undefined ? "__set%d" : "__map%d", id: ++this.#setId };
    this.#set(table, set, handle, wire.SET_FLAG.anonymous | wire.SET_FLAG.constant);
    this.#elements(wire.MESSAGE.newElement, FLAG.create, table, handle, set.elements);
    return handle;
  }

  #handleOf(table: TableReference, name: string): SetHandle {
    const id = this.#setIdsOf(table).get(name);
    return id === undefined ? { name } : { name, id };
  }

  #setIdsOf({ family, name }: TableReference): Map<string, number> {
    const key = `${family} ${name}`;
    const known = this.#setIds.get(key);
    if (known !== undefined) return known;
    const ids = new Map<string, number>();
    this.#setIds.set(key, ids);
    return ids;
  }

  #set(table: TableReference, set: AnySet, handle: Required<SetHandle>, flags: number): void {
    this.#message(wire.MESSAGE.newSet, FLAG.create, table, (writer) => {
      writer.text(wire.SET.table, table.name);
      writeSet(writer, set, handle, flags);
    });
  }

  #elements(type: number, flags: number, table: TableReference, set: SetHandle, given: readonly NftElement[]): void {
    const elements = given.some(({ interval }) => interval === "end") ? inRangeOrder(given) : given;
    let next = 0;
    while (next < elements.length) {
      this.#message(type, flags, table, (writer) => {
        writer.text(wire.ELEMENT_LIST.table, table.name);
        writer.text(wire.ELEMENT_LIST.set, set.name);
        if (set.id !== undefined) writer.u32Big(wire.ELEMENT_LIST.setId, set.id);
        const list = writer.open(wire.ELEMENT_LIST.elements);
        for (let position = 1; next < elements.length && writer.length - list < FULL_LIST; position++) {
          const element = elements[next++];
          if (element !== undefined) writeElement(writer, element, position);
        }
        writer.close(list);
      });
    }
  }

  /** A message that contains only the table's name and other names. */
  #named(type: number, table: TableReference, names: Readonly<Record<number, string>>): void {
    this.#message(type, 0, table, (writer) => {
      writer.text(wire.TABLE.name, table.name);
      for (const [attribute, name] of Object.entries(names)) writer.text(Number(attribute), name);
    });
  }

  #message(type: number, flags: number, table: TableReference, write: (writer: MessageWriter) => void): void {
    this.#lastMessage = this.#writer.length;
    this.#changeOfMessage.push(this.#change);
    this.#writer.beginMessage(type, FLAG.request | flags, this.#sequence++);
    this.#writer.raw(FAMILY_HEADER[table.family]);
    write(this.#writer);
    this.#writer.endMessage();
  }

  #frame(type: number, write: () => void): void {
    this.#writer.beginMessage(type, FLAG.request, this.#sequence++);
    this.#writer.raw(Uint8Array.of(0, 0, 0, wire.SUBSYSTEM >> 8));
    write();
    this.#writer.endMessage();
  }
}

const FAMILY_HEADER = Object.fromEntries(
  Object.entries(wire.FAMILY).map(([family, number]) => [family, Uint8Array.of(number, 0, 0, 0)]),
) as Record<TableReference["family"], Uint8Array>;

const NO_SET: SetHandle = { name: "" };

function writeComment(writer: MessageWriter, attribute: number, comment: string | undefined): void {
  if (comment !== undefined) writer.bytes(attribute, encodeComment(comment));
}
