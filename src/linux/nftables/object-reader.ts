/** Decodes the kernel's descriptions of tables, chains, rules, sets and elements. Pure. */
import type { AttributeCursor, MessageCursor } from "../netlink/message-reader.ts";
import { type DataType, typesOfNumber } from "./data-type.ts";
import type { Expression } from "./expression.ts";
import { readExpressions } from "./expression-reader.ts";
import type { BaseChain, NftChain, NftRule, NftTable } from "./ruleset.ts";
import type { NftElement, NftSet } from "./set.ts";
import { COMMENT, findComment, findEntry, SET_COMMENT } from "./userdata.ts";
import { readData } from "./verdict.ts";
import * as wire from "./wire.ts";

const OPEN_INTERVAL = 1;

export function readTable(message: MessageCursor): NftTable | undefined {
  if (message.type !== wire.MESSAGE.newTable) return undefined;
  const family = readFamily(message);
  if (family === undefined) return undefined;
  let name = "";
  let comment: string | undefined;
  const attributes = message.attributes(wire.HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === wire.TABLE.name) name = attributes.text();
    if (attributes.type === wire.TABLE.userdata) comment = findComment(attributes.copy());
  }
  return { family, name, ...commented(comment) };
}

/** `undefined` for a family that this program does not know. */
export function readFamily(message: MessageCursor): NftTable["family"] | undefined {
  return nameOf(wire.FAMILY, message.view.getUint8(message.start));
}

export function readChain(message: MessageCursor): { readonly table: string; readonly chain: NftChain } | undefined {
  if (message.type !== wire.MESSAGE.newChain) return undefined;
  let table = "";
  let name = "";
  let type = "";
  let comment: string | undefined;
  let policy: BaseChain["policy"] = "accept";
  let hook: Pick<BaseChain, "hook" | "priority"> | undefined;
  const attributes = message.attributes(wire.HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === wire.CHAIN.table) table = attributes.text();
    else if (attributes.type === wire.CHAIN.name) name = attributes.text();
    else if (attributes.type === wire.CHAIN.type) type = attributes.text();
    else if (attributes.type === wire.CHAIN.policy) policy = nameOf(wire.POLICY, attributes.u32Big()) ?? "accept";
    else if (attributes.type === wire.CHAIN.hook) hook = readHook(attributes.nested());
    else if (attributes.type === wire.CHAIN.userdata) comment = findComment(attributes.copy());
  }
  if (hook === undefined || !isChainType(type)) return { table, chain: { name, ...commented(comment) } };
  return { table, chain: { name, base: { type, ...hook, policy }, ...commented(comment) } };
}

function readHook(attributes: AttributeCursor): Pick<BaseChain, "hook" | "priority"> | undefined {
  let hook: BaseChain["hook"] | undefined;
  let priority = 0;
  while (attributes.next()) {
    if (attributes.type === wire.HOOK.number) hook = nameOf(wire.HOOK_NUMBER, attributes.u32Big());
    if (attributes.type === wire.HOOK.priority) priority = attributes.i32Big();
  }
  return hook === undefined ? undefined : { hook, priority };
}

function isChainType(type: string): type is BaseChain["type"] {
  return type === "filter" || type === "nat" || type === "route";
}

export function readRule(message: MessageCursor): (NftRule & { readonly handle: bigint }) | undefined {
  if (message.type !== wire.MESSAGE.newRule) return undefined;
  let chain = "";
  let handle = 0n;
  let comment: string | undefined;
  let expressions: Expression[] = [];
  const attributes = message.attributes(wire.HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === wire.RULE.chain) chain = attributes.text();
    else if (attributes.type === wire.RULE.handle) handle = attributes.u64Big();
    else if (attributes.type === wire.RULE.expressions) expressions = readExpressions(attributes.nested());
    else if (attributes.type === wire.RULE.userdata) comment = findComment(attributes.copy());
  }
  return { chain, handle, expressions, ...commented(comment) };
}

export function readRuleHead(message: MessageCursor): Pick<NftRule, "chain" | "comment"> | undefined {
  if (message.type !== wire.MESSAGE.newRule) return undefined;
  let chain = "";
  let comment: string | undefined;
  const attributes = message.attributes(wire.HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === wire.RULE.chain) chain = attributes.text();
    else if (attributes.type === wire.RULE.userdata) comment = findComment(attributes.copy());
  }
  return { chain, ...commented(comment) };
}

/** Returns `undefined` for anonymous sets, and for sets with types that this program does not know. */
export function readSet(message: MessageCursor): NftSet | undefined {
  if (message.type !== wire.MESSAGE.newSet) return undefined;
  let name = "";
  let flags = 0;
  let key: readonly DataType[] | undefined;
  let data: readonly DataType[] | "verdict" | undefined;
  let comment: string | undefined;
  const attributes = message.attributes(wire.HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === wire.SET.name) name = attributes.text();
    else if (attributes.type === wire.SET.flags) flags = attributes.u32Big();
    else if (attributes.type === wire.SET.keyType) key = typesOfNumber(attributes.u32Big());
    else if (attributes.type === wire.SET.dataType) data = dataTypeOf(attributes.u32Big());
    else if (attributes.type === wire.SET.userdata) comment = findComment(attributes.copy(), SET_COMMENT);
  }
  if (key === undefined || (flags & wire.SET_FLAG.anonymous) !== 0) return undefined;
  return {
    name,
    key,
    ...((flags & wire.SET_FLAG.map) !== 0 && data !== undefined ? { data } : {}),
    ...((flags & wire.SET_FLAG.interval) !== 0 ? { holdsIntervals: true } : {}),
    ...commented(comment),
  };
}

function dataTypeOf(number: number): readonly DataType[] | "verdict" | undefined {
  return number === wire.VERDICT_TYPE ? "verdict" : typesOfNumber(number);
}

/** The elements in one message. */
export function readElements(message: MessageCursor): NftElement[] | undefined {
  if (message.type !== wire.MESSAGE.newElement) return undefined;
  const elements: NftElement[] = [];
  const attributes = message.attributes(wire.HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type !== wire.ELEMENT_LIST.elements) continue;
    const list = attributes.nested();
    while (list.next()) {
      const element = readElement(list.nested());
      if (element !== undefined) elements.push(element);
    }
  }
  return elements;
}

function readElement(attributes: AttributeCursor): NftElement | undefined {
  const element: { -readonly [Field in keyof NftElement]: NftElement[Field] } = { key: EMPTY };
  while (attributes.next()) {
    if (attributes.type === wire.ELEMENT.key) element.key = readBytes(attributes.nested()) ?? EMPTY;
    else if (attributes.type === wire.ELEMENT.keyEnd) element.keyEnd = readBytes(attributes.nested()) ?? EMPTY;
    else if (attributes.type === wire.ELEMENT.flags) {
      if ((attributes.u32Big() & wire.ELEMENT_FLAG.intervalEnd) !== 0) element.interval = "end";
    } else if (attributes.type === wire.ELEMENT.data) {
      const data = readData(attributes.nested());
      if (data !== undefined) element.data = data;
    } else if (attributes.type === wire.ELEMENT.userdata) {
      const userdata = attributes.copy();
      const comment = findComment(userdata, COMMENT);
      if (comment !== undefined) element.comment = comment;
      if (findEntry(userdata, OPEN_INTERVAL) !== undefined) element.interval = "open";
    }
  }
  return element.key.length === 0 ? undefined : element;
}

const EMPTY = new Uint8Array(0);

function readBytes(attributes: AttributeCursor): Uint8Array | undefined {
  const data = readData(attributes);
  return data instanceof Uint8Array ? data : undefined;
}

function commented(comment: string | undefined): { readonly comment?: string } {
  return comment === undefined ? {} : { comment };
}

function nameOf<Name extends string>(table: Readonly<Record<Name, number>>, wanted: number): Name | undefined {
  for (const name in table) if (table[name] === wanted) return name;
  return undefined;
}
