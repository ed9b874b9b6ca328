/** Decodes the instructions of a rule: the inverse of expression-writer.ts. Pure. */
import { AttributeCursor } from "../netlink/message-reader.ts";
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
import { readData, type Verdict } from "./verdict.ts";
import { FAMILY } from "./wire.ts";

export function readExpressions(list: AttributeCursor): Expression[] {
  const expressions: Expression[] = [];
  while (list.next()) expressions.push(readExpression(list.nested()));
  return expressions;
}

function readExpression(entry: AttributeCursor): Expression {
  let name = "";
  let fields = new Fields();
  while (entry.next()) {
    if (entry.type === EXPRESSION.name) name = entry.text();
    if (entry.type === EXPRESSION.data) fields = new Fields(entry.nested());
  }
  return READERS[name]?.(fields) ?? { kind: "other", name };
}

type Reader = (fields: Fields) => Expression | undefined;

const READERS: Readonly<Record<string, Reader | undefined>> = {
  meta: readMeta,
  ct: readCt,
  payload: readPayload,
  cmp: readCompare,
  range: readRange,
  bitwise: readBitwise,
  lookup: readLookup,
  dynset: readRemoval,
  immediate: readImmediate,
  nat: readNat,
  fib: readFib,
  log: readLog,
  limit: readLimit,
  reject: readReject,
  target: readTarget,
  masq: () => ({ kind: "masquerade" }),
  counter: () => ({ kind: "counter" }),
  notrack: () => ({ kind: "notrack" }),
};

function readMeta(fields: Fields): Expression | undefined {
  const key = keyOf(META_KEY, fields.number(EXPRESSION.meta.key));
  const to = fields.register(EXPRESSION.meta.to);
  const from = fields.register(EXPRESSION.meta.from);
  if (key === undefined) return undefined;
  if (to !== undefined) return { kind: "meta", key, to };
  return from !== undefined && (key === "mark" || key === "nftrace") ? { kind: "set-meta", key, from } : undefined;
}

function readCt(fields: Fields): Expression | undefined {
  const key = keyOf(CT_KEY, fields.number(EXPRESSION.ct.key));
  const to = fields.register(EXPRESSION.ct.to);
  const from = fields.register(EXPRESSION.ct.from);
  if (key === undefined) return undefined;
  if (to !== undefined) return { kind: "ct", key, to };
  return from !== undefined && (key === "mark" || key === "label") ? { kind: "set-ct", key, from } : undefined;
}

function readPayload(fields: Fields): Expression | undefined {
  const base = keyOf(PAYLOAD_BASE, fields.number(EXPRESSION.payload.base));
  const to = fields.register(EXPRESSION.payload.to);
  const offset = fields.number(EXPRESSION.payload.offset);
  const length = fields.number(EXPRESSION.payload.length);
  if (base === undefined || to === undefined || offset === undefined || length === undefined) return undefined;
  return { kind: "payload", base, offset, length, to };
}

function readCompare(fields: Fields): Expression | undefined {
  const operator = keyOf(COMPARISON, fields.number(EXPRESSION.compare.operator));
  const from = fields.register(EXPRESSION.compare.from);
  const value = fields.value(EXPRESSION.compare.value);
  if (operator === undefined || from === undefined || value === undefined) return undefined;
  return { kind: "compare", operator, from, value };
}

function readRange(fields: Fields): Expression | undefined {
  const operator = fields.number(EXPRESSION.range.operator) === 0 ? "within" : "outside";
  const from = fields.register(EXPRESSION.range.from);
  const first = fields.value(EXPRESSION.range.first);
  const last = fields.value(EXPRESSION.range.last);
  if (from === undefined || first === undefined || last === undefined) return undefined;
  return { kind: "range", operator, from, first, last };
}

function readBitwise(fields: Fields): Expression | undefined {
  const from = fields.register(EXPRESSION.bitwise.from);
  const to = fields.register(EXPRESSION.bitwise.to);
  const mask = fields.value(EXPRESSION.bitwise.mask);
  const flip = fields.value(EXPRESSION.bitwise.flip);
  if (from === undefined || to === undefined || mask === undefined || flip === undefined) return undefined;
  return { kind: "bitwise", from, to, mask, flip };
}

function readLookup(fields: Fields): Expression | undefined {
  const set = fields.text(EXPRESSION.lookup.set);
  const from = fields.register(EXPRESSION.lookup.from);
  if (set === undefined || from === undefined) return undefined;
  const to = fields.number(EXPRESSION.lookup.to) === 0 ? "verdict" : fields.register(EXPRESSION.lookup.to);
  return {
    kind: "lookup",
    set,
    from,
    ...(to === undefined ? {} : { to }),
    ...(fields.number(EXPRESSION.lookup.flags) === 1 ? { isInverted: true } : {}),
  };
}

function readRemoval(fields: Fields): Expression | undefined {
  const [set, from] = [fields.text(EXPRESSION.dynset.set), fields.register(EXPRESSION.dynset.from)];
  if (set === undefined || from === undefined) return undefined;
  return fields.number(EXPRESSION.dynset.operation) === REMOVE_ELEMENT
    ? { kind: "remove-element", set, from }
    : undefined;
}

function readImmediate(fields: Fields): Expression | undefined {
  const data = fields.data(EXPRESSION.immediate.data);
  const to = fields.register(EXPRESSION.immediate.to);
  if (data instanceof Uint8Array) return to === undefined ? undefined : { kind: "immediate", to, value: data };
  return data === undefined ? undefined : { kind: "verdict", verdict: data };
}

function readNat(fields: Fields): Expression | undefined {
  const family = fields.number(EXPRESSION.nat.family) === FAMILY.ip6 ? "ip6" : "ip";
  const address = fields.register(EXPRESSION.nat.address);
  const port = fields.register(EXPRESSION.nat.port);
  return {
    kind: "nat",
    type: fields.number(EXPRESSION.nat.type) === 0 ? "snat" : "dnat",
    family,
    ...(address === undefined ? {} : { address }),
    ...(port === undefined ? {} : { port }),
  };
}

function readFib(fields: Fields): Expression | undefined {
  const result = keyOf(FIB_RESULT, fields.number(EXPRESSION.fib.result));
  const to = fields.register(EXPRESSION.fib.to);
  const flags = fields.number(EXPRESSION.fib.flags) ?? 0;
  if (result === undefined || to === undefined) return undefined;
  const by = keysOf(FIB_FLAG).filter((flag) => (flags & FIB_FLAG[flag]) !== 0);
  return { kind: "fib", result, by, to };
}

function readTarget(fields: Fields): Expression | undefined {
  const name = fields.text(EXPRESSION.target.name);
  return name === undefined ? undefined : { kind: "target", name };
}

function readLog(fields: Fields): Expression | undefined {
  const group = fields.short(EXPRESSION.log.group);
  const level = fields.number(EXPRESSION.log.level);
  return {
    kind: "log",
    prefix: fields.text(EXPRESSION.log.prefix) ?? "",
    ...(group === undefined ? {} : { group }),
    ...(level === undefined ? {} : { level }),
  };
}

function readLimit(fields: Fields): Expression | undefined {
  const rate = fields.long(EXPRESSION.limit.rate);
  const per = keyOf(LIMIT_UNIT, Number(fields.long(EXPRESSION.limit.unit)));
  const burst = fields.number(EXPRESSION.limit.burst);
  if (rate === undefined || per === undefined || burst === undefined) return undefined;
  return { kind: "limit", rate, per, burst };
}

function readReject(fields: Fields): Expression | undefined {
  const type = keyOf(REJECT_TYPE, fields.number(EXPRESSION.reject.type));
  return type === undefined ? undefined : { kind: "reject", type, code: fields.byte(EXPRESSION.reject.code) ?? 0 };
}

/** The attributes of one instruction, by number. */
class Fields {
  readonly #values = new Map<number, Uint8Array>();

  constructor(attributes?: AttributeCursor) {
    while (attributes?.next()) this.#values.set(attributes.type, attributes.copy());
  }

  number(type: number): number | undefined {
    return this.#view(type)?.getUint32(0);
  }

  byte(type: number): number | undefined {
    return this.#view(type)?.getUint8(0);
  }

  short(type: number): number | undefined {
    return this.#view(type)?.getUint16(0);
  }

  long(type: number): bigint | undefined {
    return this.#view(type)?.getBigUint64(0);
  }

  text(type: number): string | undefined {
    const bytes = this.#values.get(type);
    if (bytes === undefined) return undefined;
    const zero = bytes.indexOf(0);
    return new TextDecoder().decode(zero === -1 ? bytes : bytes.subarray(0, zero));
  }

  register(type: number): Register | undefined {
    const number = this.number(type);
    if (number === undefined || number === 0) return undefined;
    return number < 8 ? (number - 1) * 4 : number - 8;
  }

  data(type: number): Uint8Array | Verdict | undefined {
    const bytes = this.#values.get(type);
    if (bytes === undefined) return undefined;
    return readData(new AttributeCursor(new DataView(bytes.buffer), 0, bytes.length));
  }

  value(type: number): Uint8Array | undefined {
    const data = this.data(type);
    return data instanceof Uint8Array ? data : undefined;
  }

  #view(type: number): DataView | undefined {
    const bytes = this.#values.get(type);
    return bytes === undefined ? undefined : new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }
}

function keyOf<Name extends string>(
  table: Readonly<Record<Name, number>>,
  wanted: number | undefined,
): Name | undefined {
  for (const name in table) if (table[name] === wanted) return name;
  return undefined;
}

function keysOf<Name extends string>(table: Readonly<Record<Name, number>>): Name[] {
  const names: Name[] = [];
  for (const name in table) names.push(name);
  return names;
}
