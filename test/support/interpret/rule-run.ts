/** Runs the rules of a table on a packet, instruction by instruction. For tests. */
import { type DataType, fieldLength } from "../../../src/linux/nftables/data-type.ts";
import type { CT_KEY, Expression, META_KEY } from "../../../src/linux/nftables/expression.ts";
import type { NftElement } from "../../../src/linux/nftables/set.ts";
import { hostNumber, interfaceValue } from "../../../src/linux/nftables/value.ts";
import type { Verdict } from "../../../src/linux/nftables/verdict.ts";
import { REJECTED } from "../../../src/policy/render/rejected.ts";
import type { DesiredTable } from "../../../src/policy/table/desired-table.ts";
import type { HookPassage } from "./hook-passage.ts";
import type { PacketMarks } from "./packet-marks.ts";

const STATE_BITS = { invalid: 1, established: 2, related: 4, new: 8, untracked: 64 } as const;
const STATUS_BITS = { source: 0x10, destination: 0x20 } as const;
const FAMILY_NUMBER = { 4: 2, 6: 10 } as const;
const DEEPEST = 16;

type Outcome = "accept" | "drop" | undefined;

/** Of the registers. */
type Read = (from: number, length: number) => Uint8Array;

export class RuleRun {
  /** The comment of the rule that decided, and its chain. */
  by: string | undefined;
  decidedIn: string | undefined;

  constructor(
    private readonly table: DesiredTable,
    private readonly passage: HookPassage,
    private readonly marks: PacketMarks,
  ) {}

  /** `undefined`: it returned to the chain that jumped here. */
  chain(name: string, depth = 0): Outcome {
    const desired = this.table.chains.get(name);
    if (desired === undefined) throw new Error(`There is no chain "${name}"`);
    if (depth > DEEPEST) throw new Error(`Too many jumps at chain "${name}"`);
    for (const { expressions, comment } of desired.rules) {
      const verdict = this.rule(expressions);
      switch (verdict?.kind) {
        case "accept":
        case "drop":
          this.by = comment;
          this.decidedIn = name;
          return verdict.kind;
        case "return":
          return undefined;
        case "goto": {
          const outcome = this.chain(verdict.chain, depth + 1);
          if (verdict.chain === REJECTED) [this.by, this.decidedIn] = [comment, name];
          return outcome;
        }
        case "jump": {
          const outcome = this.chain(verdict.chain, depth + 1);
          if (outcome !== undefined) return outcome;
        }
      }
    }
    return undefined;
  }

  /** `undefined`: a condition does not hold, or the rule has no verdict. */
  private rule(expressions: readonly Expression[]): Verdict | undefined {
    const registers = new Uint8Array(64);
    const load = (to: number, value: Uint8Array) => {
      registers.fill(0, to * 4, to * 4 + Math.max(4, value.length));
      registers.set(value, to * 4);
    };
    const read: Read = (from, length) => registers.subarray(from * 4, from * 4 + length);
    for (const expression of expressions) {
      switch (expression.kind) {
        case "meta":
          load(expression.to, this.meta(expression.key));
          break;
        case "ct":
          load(expression.to, this.connection(expression.key));
          break;
        case "payload": {
          const { base, offset, length, to } = expression;
          if (base === "link") throw new Error("no link header here");
          load(to, this.passage.packet[base].subarray(offset, offset + length));
          break;
        }
        case "compare":
        case "range":
          if (!holds(expression, read)) return undefined;
          break;
        case "bitwise": {
          const value = read(expression.from, expression.mask.length);
          load(
            expression.to,
            value.map((byte, index) => (byte & (expression.mask[index] ?? 0)) ^ (expression.flip[index] ?? 0)),
          );
          break;
        }
        case "lookup": {
          const element = this.find(expression.set, (length) => read(expression.from, length));
          if ((element === undefined) !== (expression.isInverted ?? false)) return undefined;
          if (expression.to === "verdict" && element?.data !== undefined && !(element.data instanceof Uint8Array))
            return element.data;
          if (typeof expression.to === "number" && element?.data instanceof Uint8Array)
            load(expression.to, element.data);
          break;
        }
        case "immediate":
          load(expression.to, expression.value);
          break;
        case "fib":
          if (this.passage.fib === undefined) throw new Error("The interpreter has no routes here");
          load(expression.to, this.passage.fib(expression));
          break;
        case "set-meta":
          if (expression.key === "mark") this.marks.mark = read(expression.from, 4).slice();
          break;
        case "set-ct":
          if (expression.key === "mark") this.marks.connectionMark = read(expression.from, 4).slice();
          else if (this.marks.state !== "untracked")
            this.marks.label = merged(this.marks.label, read(expression.from, this.marks.label.length));
          break;
        case "nat":
          this.marks.translation = translationOf(expression, read);
          return { kind: "accept" };
        case "masquerade":
          this.marks.translation = { end: "source", address: "masquerade" };
          return { kind: "accept" };
        case "notrack":
          this.marks.state = "untracked";
          break;
        case "reject":
          return { kind: "drop" };
        case "verdict":
          return expression.verdict;
        case "counter":
        case "log":
        case "limit":
          break;
        default:
          throw new Error(`The interpreter does not know "${expression.kind}"`);
      }
    }
    return undefined;
  }

  private connection(key: keyof typeof CT_KEY): Uint8Array {
    const { state, connectionMark, translated } = this.marks;
    switch (key) {
      case "state":
        return hostNumber(STATE_BITS[state]);
      case "status":
        return hostNumber(
          (translated.has("source") ? STATUS_BITS.source : 0) |
            (translated.has("destination") ? STATUS_BITS.destination : 0),
        );
      case "mark":
        return connectionMark;
      case "label":
        return this.marks.label;
      case "direction":
        return Uint8Array.of(0);
      case "protocol":
        return Uint8Array.of(this.passage.packet.protocol);
    }
  }

  private meta(key: keyof typeof META_KEY): Uint8Array {
    const { iifname = "", oifname = "", iif = 0, oif = 0, packet } = this.passage;
    switch (key) {
      case "iif":
        return hostNumber(iif);
      case "oif":
        return hostNumber(oif);
      case "iifname":
        return interfaceValue(iifname);
      case "oifname":
        return interfaceValue(oifname);
      case "mark":
        return this.marks.mark;
      case "nfproto":
        return Uint8Array.of(FAMILY_NUMBER[packet.family]);
      case "l4proto":
        return Uint8Array.of(packet.protocol);
      default:
        throw new Error(`The interpreter does not know meta "${key}"`);
    }
  }

  private find(
    set: Extract<Expression, { kind: "lookup" }>["set"],
    key: (length: number) => Uint8Array,
  ): NftElement | undefined {
    const named = typeof set === "string" ? this.table.sets.get(set) : undefined;
    if (typeof set === "string" && named === undefined) throw new Error(`There is no set "${set}"`);
    const elements = typeof set === "string" ? [...(named?.elements.values() ?? [])] : set.elements;
    const holdsIntervals = typeof set === "string" ? named?.set.holdsIntervals : set.holdsIntervals;
    const [first] = elements;
    if (first === undefined) return undefined;
    const wanted = key(first.key.length);
    if (first.keyEnd !== undefined) return findFields(elements, wanted, named?.set.key ?? []);
    if (holdsIntervals) return findRange(elements, wanted);
    return elements.find((element) => Buffer.compare(element.key, wanted) === 0);
  }
}

/** Rules can only add bits. */
function merged(label: Uint8Array, added: Uint8Array): Uint8Array {
  return label.map((byte, index) => byte | (added[index] ?? 0));
}

function holds(expression: Extract<Expression, { kind: "compare" | "range" }>, read: Read): boolean {
  if (expression.kind === "compare") {
    const { operator, from, value } = expression;
    return compares(operator, Buffer.compare(read(from, value.length), value));
  }
  const { operator, from, first, last } = expression;
  const value = read(from, first.length);
  const isWithin = Buffer.compare(value, first) >= 0 && Buffer.compare(value, last) <= 0;
  return isWithin === (operator === "within");
}

function translationOf(
  { type, family, address, port }: Extract<Expression, { kind: "nat" }>,
  read: Read,
): PacketMarks["translation"] {
  return {
    end: type === "snat" ? "source" : "destination",
    ...(address === undefined ? {} : { address: read(address, family === "ip" ? 4 : 16).slice() }),
    ...(port === undefined ? {} : { port: read(port, 2).slice() }),
  };
}

/** The range that began last at or before the key, unless it ended. */
function findRange(elements: readonly NftElement[], wanted: Uint8Array): NftElement | undefined {
  const sorted = elements.toSorted(
    (left, right) => Buffer.compare(left.key, right.key) || (left.interval === "end" ? -1 : 1),
  );
  const last = sorted.findLast((element) => Buffer.compare(element.key, wanted) <= 0);
  return last?.interval === "end" ? undefined : last;
}

/** The range that contains the key in each field. */
function findFields(
  elements: readonly NftElement[],
  wanted: Uint8Array,
  fields: readonly DataType[],
): NftElement | undefined {
  return elements.find(({ key, keyEnd = key }) => {
    let start = 0;
    return fields.every((field) => {
      const part = (bytes: Uint8Array) => bytes.subarray(start, start + fieldLength(field));
      const isWithin = Buffer.compare(part(wanted), part(key)) >= 0 && Buffer.compare(part(wanted), part(keyEnd)) <= 0;
      start += (fieldLength(field) + 3) & ~3;
      return isWithin;
    });
  });
}

function compares(operator: Extract<Expression, { kind: "compare" }>["operator"], order: number): boolean {
  switch (operator) {
    case "equal":
      return order === 0;
    case "different":
      return order !== 0;
    case "less":
      return order < 0;
    case "lessOrEqual":
      return order <= 0;
    case "greater":
      return order > 0;
    case "greaterOrEqual":
      return order >= 0;
  }
}
