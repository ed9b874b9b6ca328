/** Whether the kernel accepts the instructions of a rule: lengths, registers, sets. Pure. */
import { typeLength } from "../../../src/linux/nftables/data-type.ts";
import type { Expression, Register } from "../../../src/linux/nftables/expression.ts";
import { Refused, required } from "./refused.ts";
import type { ModelSet, ModelTable } from "./state.ts";
import { validateJump } from "./validate.ts";

/** Of one rule: to be called for its instructions, one after another. */
export class ExpressionCheck {
  readonly #registers = new Registers();

  constructor(private readonly table: ModelTable) {}

  check(expression: Expression): void {
    checkExpression(this.table, this.#registers, expression);
  }
}

const REGISTER_BYTES = 4;
const ALL_BYTES = 64;
const LONGEST_COMPARED = 16;

/** Which bytes have been written: the kernel refuses to read others. */
class Registers {
  readonly #written = new Uint8Array(ALL_BYTES / REGISTER_BYTES);

  store(to: Register, length: number): void {
    this.#check(to, length);
    this.#written.fill(1, to, to + Math.ceil(length / REGISTER_BYTES));
  }

  load(from: Register, length: number): void {
    this.#check(from, length);
    const needed = this.#written.subarray(from, from + Math.ceil(length / REGISTER_BYTES));
    if (needed.includes(0)) throw new Refused("ENODATA");
  }

  #check(register: Register, length: number): void {
    if (length === 0) throw new Refused("EINVAL");
    if (register * REGISTER_BYTES + length > ALL_BYTES) throw new Refused("ERANGE");
  }
}

const META_LENGTH = {
  length: 4,
  protocol: 2,
  mark: 4,
  iif: 4,
  oif: 4,
  iifname: 16,
  oifname: 16,
  skuid: 4,
  nftrace: 1,
  nfproto: 1,
  l4proto: 1,
} as const;
const CT_LENGTH = { state: 4, direction: 1, status: 4, mark: 4, protocol: 1, label: 16 } as const;
const FIB_LENGTH = { oif: 4, oifname: 16, type: 4 } as const;

function checkExpression(table: ModelTable, registers: Registers, expression: Expression): void {
  switch (expression.kind) {
    case "meta":
      registers.store(expression.to, META_LENGTH[expression.key]);
      break;
    case "set-meta":
      registers.load(expression.from, META_LENGTH[expression.key]);
      break;
    case "ct":
      registers.store(expression.to, CT_LENGTH[expression.key]);
      break;
    case "set-ct":
      registers.load(expression.from, CT_LENGTH[expression.key]);
      break;
    case "payload":
      registers.store(expression.to, expression.length);
      break;
    case "compare":
      if (expression.value.length > LONGEST_COMPARED) throw new Refused("EINVAL");
      registers.load(expression.from, expression.value.length);
      break;
    case "range":
      if (expression.first.length !== expression.last.length) throw new Refused("EINVAL");
      registers.load(expression.from, expression.first.length);
      break;
    case "bitwise":
      if (expression.mask.length !== expression.flip.length) throw new Refused("EINVAL");
      registers.load(expression.from, expression.mask.length);
      registers.store(expression.to, expression.mask.length);
      break;
    case "lookup":
      checkLookup(registers, expression, setOf(table, expression));
      break;
    case "immediate":
      registers.store(expression.to, expression.value.length);
      break;
    case "verdict":
      validateJump(table, expression.verdict);
      break;
    case "nat":
      checkNat(table, registers, expression);
      break;
    case "fib":
      checkFib(registers, expression);
      break;
    case "masquerade":
      if (table.family === "bridge" || table.family === "netdev") throw new Refused("ENOENT");
      break;
    case "counter":
    case "log":
    case "limit":
    case "notrack":
      break;
    case "target":
    case "other":
      // Nothing that the product writes: a rule of another program.
      break;
  }
}

type Of<Kind extends Expression["kind"]> = Extract<Expression, { kind: Kind }>;

function setOf(table: ModelTable, { set }: Of<"lookup">): ModelSet {
  return required(typeof set === "string" ? table.sets.get(set) : undefined, "ENOENT");
}

function checkLookup(registers: Registers, { from, to, isInverted }: Of<"lookup">, found: ModelSet): void {
  const { set } = found;
  registers.load(from, typeLength(set.key));
  if (to !== undefined) {
    if (isInverted === true || set.data === undefined) throw new Refused("EINVAL");
    if ((to === "verdict") !== (set.data === "verdict")) throw new Refused("EINVAL");
    if (to !== "verdict" && set.data !== "verdict") registers.store(to, typeLength(set.data));
  }
  if (found.isAnonymous && found.lookups > 0) throw new Refused("EBUSY");
}

function checkNat(table: ModelTable, registers: Registers, { family, address, port }: Of<"nat">): void {
  if (address === undefined && port === undefined) throw new Refused("EINVAL");
  if (table.family !== "inet" && table.family !== family) throw new Refused("EOPNOTSUPP");
  if (address !== undefined) registers.load(address, family === "ip" ? 4 : 16);
  if (port !== undefined) registers.load(port, 2);
}

function checkFib(registers: Registers, { result, by, to }: Of<"fib">): void {
  if (by.includes("saddr") === by.includes("daddr")) throw new Refused("EINVAL");
  if (by.includes("oif") && (by.includes("iif") || result !== "type")) throw new Refused("EINVAL");
  registers.store(to, by.includes("present") ? 1 : FIB_LENGTH[result]);
}
