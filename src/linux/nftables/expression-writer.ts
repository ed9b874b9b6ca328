/** Encodes the instructions of a rule, with the attributes in the same order as `nft`. Pure. */
import type { MessageWriter } from "../netlink/message-writer.ts";
import {
  COMPARISON,
  CT_KEY,
  type Expression,
  FIB_FLAG,
  FIB_RESULT,
  LIMIT_UNIT,
  META_KEY,
  PAYLOAD_BASE,
  REJECT_TYPE,
  type Register,
} from "./expression.ts";
import { EXPRESSION, REMOVE_ELEMENT } from "./expression-wire.ts";
import type { SetHandle } from "./set-writer.ts";
import { writeValue, writeVerdict } from "./verdict.ts";
import { FAMILY, LIST_ENTRY } from "./wire.ts";

const VERDICT_REGISTER = 0;

export function writeExpression(writer: MessageWriter, expression: Expression, set: SetHandle): void {
  const entry = writer.open(LIST_ENTRY);
  writer.text(EXPRESSION.name, nameOf(expression));
  if (expression.kind !== "notrack") {
    const data = writer.open(EXPRESSION.data);
    writeBody(writer, expression, set);
    writer.close(data);
  }
  writer.close(entry);
}

const NAMES: Partial<Record<Expression["kind"], string>> = {
  "set-meta": "meta",
  "set-ct": "ct",
  compare: "cmp",
  verdict: "immediate",
  masquerade: "masq",
  "remove-element": "dynset",
};

function nameOf(expression: Expression): string {
  return expression.kind === "other" ? expression.name : (NAMES[expression.kind] ?? expression.kind);
}

function writeBody(writer: MessageWriter, expression: Expression, set: SetHandle): void {
  switch (expression.kind) {
    case "meta":
      writer.u32Big(EXPRESSION.meta.key, META_KEY[expression.key]);
      writer.u32Big(EXPRESSION.meta.to, registerNumber(expression.to));
      break;
    case "set-meta":
      writer.u32Big(EXPRESSION.meta.key, META_KEY[expression.key]);
      writer.u32Big(EXPRESSION.meta.from, registerNumber(expression.from));
      break;
    case "ct":
      writer.u32Big(EXPRESSION.ct.key, CT_KEY[expression.key]);
      writer.u32Big(EXPRESSION.ct.to, registerNumber(expression.to));
      break;
    case "set-ct":
      writer.u32Big(EXPRESSION.ct.key, CT_KEY[expression.key]);
      writer.u32Big(EXPRESSION.ct.from, registerNumber(expression.from));
      break;
    case "payload":
      writer.u32Big(EXPRESSION.payload.to, registerNumber(expression.to));
      writer.u32Big(EXPRESSION.payload.base, PAYLOAD_BASE[expression.base]);
      writer.u32Big(EXPRESSION.payload.offset, expression.offset);
      writer.u32Big(EXPRESSION.payload.length, expression.length);
      break;
    case "compare":
      writer.u32Big(EXPRESSION.compare.from, registerNumber(expression.from));
      writer.u32Big(EXPRESSION.compare.operator, COMPARISON[expression.operator]);
      writeValue(writer, EXPRESSION.compare.value, expression.value);
      break;
    case "range":
      writer.u32Big(EXPRESSION.range.from, registerNumber(expression.from));
      writer.u32Big(EXPRESSION.range.operator, expression.operator === "within" ? 0 : 1);
      writeValue(writer, EXPRESSION.range.first, expression.first);
      writeValue(writer, EXPRESSION.range.last, expression.last);
      break;
    case "bitwise":
      writeBitwise(writer, expression);
      break;
    case "lookup":
      writeLookup(writer, expression, set);
      break;
    case "remove-element":
      writeRemoval(writer, expression, set);
      break;
    case "immediate":
      writer.u32Big(EXPRESSION.immediate.to, registerNumber(expression.to));
      writeValue(writer, EXPRESSION.immediate.data, expression.value);
      break;
    case "verdict":
      writer.u32Big(EXPRESSION.immediate.to, VERDICT_REGISTER);
      writeVerdict(writer, EXPRESSION.immediate.data, expression.verdict);
      break;
    case "nat":
      writeNat(writer, expression);
      break;
    case "fib":
      writeFib(writer, expression);
      break;
    case "log":
      writer.text(EXPRESSION.log.prefix, fittingPrefix(expression.prefix));
      if (expression.group !== undefined) writer.u16Big(EXPRESSION.log.group, expression.group);
      if (expression.level !== undefined) writer.u32Big(EXPRESSION.log.level, expression.level);
      break;
    case "limit":
      writeLimit(writer, expression);
      break;
    case "reject":
      writer.u32Big(EXPRESSION.reject.type, REJECT_TYPE[expression.type]);
      writer.u8(EXPRESSION.reject.code, expression.code);
      break;
    case "counter":
      if (expression.bytes !== undefined) writer.u64Big(EXPRESSION.counter.bytes, BigInt(expression.bytes));
      if (expression.packets !== undefined) writer.u64Big(EXPRESSION.counter.packets, BigInt(expression.packets));
      break;
    case "masquerade":
    case "notrack":
    case "target":
    case "other":
      break;
  }
}

type Of<Kind extends Expression["kind"]> = Extract<Expression, { kind: Kind }>;

function writeBitwise(writer: MessageWriter, { from, to, mask, flip }: Of<"bitwise">): void {
  writer.u32Big(EXPRESSION.bitwise.from, registerNumber(from));
  writer.u32Big(EXPRESSION.bitwise.to, registerNumber(to));
  writer.u32Big(EXPRESSION.bitwise.operation, 0);
  writer.u32Big(EXPRESSION.bitwise.length, mask.length);
  writeValue(writer, EXPRESSION.bitwise.mask, mask);
  writeValue(writer, EXPRESSION.bitwise.flip, flip);
}

function writeLookup(writer: MessageWriter, { from, to, isInverted }: Of<"lookup">, set: SetHandle): void {
  writer.u32Big(EXPRESSION.lookup.from, registerNumber(from));
  if (to !== undefined) writer.u32Big(EXPRESSION.lookup.to, to === "verdict" ? VERDICT_REGISTER : registerNumber(to));
  writer.text(EXPRESSION.lookup.set, set.name);
  if (set.id !== undefined) writer.u32Big(EXPRESSION.lookup.setId, set.id);
  if (isInverted === true) writer.u32Big(EXPRESSION.lookup.flags, 1);
}

function writeRemoval(writer: MessageWriter, { from }: Of<"remove-element">, set: SetHandle): void {
  writer.u32Big(EXPRESSION.dynset.from, registerNumber(from));
  writer.u32Big(EXPRESSION.dynset.operation, REMOVE_ELEMENT);
  writer.text(EXPRESSION.dynset.set, set.name);
  if (set.id !== undefined) writer.u32Big(EXPRESSION.dynset.setId, set.id);
}

function writeFib(writer: MessageWriter, { by, result, to }: Of<"fib">): void {
  writer.u32Big(
    EXPRESSION.fib.flags,
    by.reduce((flags, each) => flags | FIB_FLAG[each], 0),
  );
  writer.u32Big(EXPRESSION.fib.result, FIB_RESULT[result]);
  writer.u32Big(EXPRESSION.fib.to, registerNumber(to));
}

function writeNat(writer: MessageWriter, { type, family, address, port }: Of<"nat">): void {
  writer.u32Big(EXPRESSION.nat.type, type === "snat" ? 0 : 1);
  writer.u32Big(EXPRESSION.nat.family, FAMILY[family]);
  if (address !== undefined) writer.u32Big(EXPRESSION.nat.address, registerNumber(address));
  if (port !== undefined) writer.u32Big(EXPRESSION.nat.port, registerNumber(port));
}

const LONGEST_LOG_PREFIX = 127;
const encoder = new TextEncoder();

/** Cut after a whole character if it is longer than the kernel accepts, which would refuse the whole batch. */
function fittingPrefix(text: string): string {
  if (text.length * 3 <= LONGEST_LOG_PREFIX) return text;
  return text.slice(0, encoder.encodeInto(text, new Uint8Array(LONGEST_LOG_PREFIX)).read);
}

function writeLimit(writer: MessageWriter, { rate, per, burst }: Of<"limit">): void {
  writer.u64Big(EXPRESSION.limit.rate, rate);
  writer.u64Big(EXPRESSION.limit.unit, BigInt(LIMIT_UNIT[per]));
  writer.u32Big(EXPRESSION.limit.burst, burst);
  writer.u32Big(EXPRESSION.limit.type, 0);
  writer.u32Big(EXPRESSION.limit.flags, 0);
}

/** Every fourth slot is the start of one of the four long registers, which have their own numbers. */
function registerNumber(slot: Register): number {
  return slot % 4 === 0 ? 1 + slot / 4 : 8 + slot;
}
