/** Whether jumps lead somewhere, and what is behind them is allowed at the hooks from which it is reached. Pure. */
import type { Expression } from "../../../src/linux/nftables/expression.ts";
import type { BaseChain, Hook } from "../../../src/linux/nftables/ruleset.ts";
import type { NftElement } from "../../../src/linux/nftables/set.ts";
import type { Verdict } from "../../../src/linux/nftables/verdict.ts";
import { Refused } from "./refused.ts";
import type { ModelChain, ModelTable } from "./state.ts";

const DEEPEST = 16;

/** The target of a jump must be a chain that packets enter only by jumps. */
export function validateJump(table: ModelTable, verdict: Verdict): void {
  if (!("chain" in verdict)) return;
  const target = table.chains.get(verdict.chain);
  if (target === undefined) throw new Refused("ENOENT");
  if (target.chain.base !== undefined) throw new Refused("EOPNOTSUPP");
}

/** Of all chains that packets enter. */
export function validateTable(table: ModelTable): void {
  for (const chain of table.chains.values()) {
    const { base } = chain.chain;
    if (base !== undefined) new Walk(table, base).enter(chain, 0);
  }
}

class Walk {
  /** How deep a chain was entered at most: what is behind it was seen then. */
  readonly #seen = new Map<ModelChain, number>();

  constructor(
    private readonly table: ModelTable,
    private readonly base: BaseChain,
  ) {}

  enter(chain: ModelChain, level: number): void {
    if (level === DEEPEST) throw new Refused("EMLINK");
    if ((this.#seen.get(chain) ?? -1) >= level) return;
    this.#seen.set(chain, level);
    for (const { expressions } of chain.rules)
      for (const expression of expressions) {
        checkPlace(this.base, expression);
        for (const target of targetsOf(this.table, expression)) {
          const next = this.table.chains.get(target);
          if (next !== undefined) this.enter(next, level + 1);
        }
      }
  }
}

function* targetsOf(table: ModelTable, expression: Expression): Generator<string> {
  if (expression.kind === "verdict") yield* targetOf(expression.verdict);
  if (expression.kind !== "lookup" || typeof expression.set !== "string") return;
  const set = table.sets.get(expression.set);
  if (set?.set.data !== "verdict") return;
  for (const { data } of set.elements.values()) yield* targetOf(data);
}

function* targetOf(data: NftElement["data"]): Generator<string> {
  if (data !== undefined && !(data instanceof Uint8Array) && "chain" in data) yield data.chain;
}

const ALL_HOOKS: readonly Hook[] = ["prerouting", "input", "forward", "output", "postrouting"];

function checkPlace({ type, hook }: BaseChain, expression: Expression): void {
  const { needsNat, hooks } = placesOf(expression);
  if ((needsNat && type !== "nat") || !hooks.includes(hook)) throw new Refused("EOPNOTSUPP");
}

function placesOf(expression: Expression): { readonly needsNat: boolean; readonly hooks: readonly Hook[] } {
  switch (expression.kind) {
    case "masquerade":
      return { needsNat: true, hooks: ["postrouting"] };
    case "nat":
      return {
        needsNat: true,
        hooks: expression.type === "snat" ? ["postrouting", "input"] : ["prerouting", "output"],
      };
    case "fib":
      return { needsNat: false, hooks: hooksOfFib(expression) };
    default:
      return { needsNat: false, hooks: ALL_HOOKS };
  }
}

function hooksOfFib({ result, by }: Extract<Expression, { kind: "fib" }>): readonly Hook[] {
  if (result !== "type") return ["prerouting", "input", "forward"];
  if (by.includes("iif")) return ["prerouting", "input", "forward"];
  if (by.includes("oif")) return ["output", "postrouting", "forward"];
  return ALL_HOOKS;
}
