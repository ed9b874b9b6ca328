/**
 * Runs a desired table on a packet as the kernel would, instruction by instruction. For tests: what the compiler wrote
 * is compared with the judge without a kernel.
 */
import type { Expression } from "../../linux/nftables/expression.ts";
import type { Hook } from "../../linux/nftables/ruleset.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { hostNumber, interfaceValue } from "../../linux/nftables/value.ts";
import type { Verdict } from "../../linux/nftables/verdict.ts";
import type { DesiredTable } from "../table/desired-table.ts";
import type { PacketBytes } from "./packet-bytes.ts";

export interface Passage {
  readonly hook: Hook;
  readonly iifname?: string;
  readonly oifname?: string;
  readonly packet: PacketBytes;
  /** `new` if absent. */
  readonly state?: ConnectionState;
}

export type ConnectionState = "new" | "established" | "related" | "invalid" | "untracked";

/** What rules write, and later rules read. */
export interface PacketMarks {
  mark: Uint8Array;
  state: ConnectionState;
}

export interface Interpreted {
  readonly verdict: "accept" | "drop";
  /** The comment of the rule that decided. */
  readonly by?: string | undefined;
}

const STATE_BITS = { invalid: 1, established: 2, related: 4, new: 8, untracked: 64 } as const;
const FAMILY_NUMBER = { 4: 2, 6: 10 } as const;
const DEEPEST = 16;

export function unmarked(state: ConnectionState = "new"): PacketMarks {
  return { mark: new Uint8Array(4), state };
}

/** All chains of the hook in the order of their priorities: the first that drops decides. Changes the marks. */
export function interpret(
  table: DesiredTable,
  passage: Passage,
  marks: PacketMarks = unmarked(passage.state),
): Interpreted {
  const bases = [...table.chains.values()]
    .filter(({ chain }) => chain.base?.hook === passage.hook)
    .toSorted((left, right) => (left.chain.base?.priority ?? 0) - (right.chain.base?.priority ?? 0));
  let by: string | undefined;
  for (const { chain } of bases) {
    const run = new Run(table, passage, marks);
    const verdict = run.chain(chain.name, 0) ?? chain.base?.policy ?? "accept";
    by = run.by;
    if (verdict === "drop") return { verdict, by };
  }
  return { verdict: "accept", by };
}

type Outcome = "accept" | "drop" | undefined;

class Run {
  by: string | undefined;

  constructor(
    private readonly table: DesiredTable,
    private readonly passage: Passage,
    private readonly marks: PacketMarks,
  ) {}

  /** `undefined`: it returned to the chain that jumped here. */
  chain(name: string, depth: number): Outcome {
    const desired = this.table.chains.get(name);
    if (desired === undefined) throw new Error(`There is no chain "${name}"`);
    if (depth > DEEPEST) throw new Error(`Too many jumps at chain "${name}"`);
    for (const { expressions, comment } of desired.rules) {
      const verdict = this.rule(expressions);
      switch (verdict?.kind) {
        case "accept":
        case "drop":
          this.by = comment;
          return verdict.kind;
        case "return":
          return undefined;
        case "goto":
          return this.chain(verdict.chain, depth + 1);
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
    const read = (from: number, length: number) => registers.subarray(from * 4, from * 4 + length);
    for (const expression of expressions) {
      switch (expression.kind) {
        case "meta":
          load(expression.to, this.meta(expression.key));
          break;
        case "ct":
          load(expression.to, hostNumber(STATE_BITS[this.marks.state]));
          break;
        case "payload": {
          const { base, offset, length, to } = expression;
          if (base === "link") throw new Error("no link header here");
          load(to, this.passage.packet[base].subarray(offset, offset + length));
          break;
        }
        case "compare":
          if (
            !compares(
              expression.operator,
              Buffer.compare(read(expression.from, expression.value.length), expression.value),
            )
          )
            return undefined;
          break;
        case "range": {
          const value = read(expression.from, expression.first.length);
          const isWithin = Buffer.compare(value, expression.first) >= 0 && Buffer.compare(value, expression.last) <= 0;
          if (isWithin !== (expression.operator === "within")) return undefined;
          break;
        }
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
          break;
        }
        case "set-meta":
          this.marks.mark = read(expression.from, 4).slice();
          break;
        case "notrack":
          this.marks.state = "untracked";
          break;
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

  private meta(key: string): Uint8Array {
    const { iifname = "", oifname = "", packet } = this.passage;
    switch (key) {
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
    if (holdsIntervals) return findRange(elements, wanted);
    return elements.find((element) => Buffer.compare(element.key, wanted) === 0);
  }
}

/** The range that began last at or before the key, unless it ended. */
function findRange(elements: readonly NftElement[], wanted: Uint8Array): NftElement | undefined {
  const sorted = elements.toSorted(
    (left, right) => Buffer.compare(left.key, right.key) || (left.interval === "end" ? -1 : 1),
  );
  const last = sorted.findLast((element) => Buffer.compare(element.key, wanted) <= 0);
  return last?.interval === "end" ? undefined : last;
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
