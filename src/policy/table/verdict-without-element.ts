/** What the rules of a chain decide about packets whose key is not, or no longer, in the chain's verdict map. Pure. */
import type { Expression } from "../../linux/nftables/expression.ts";
import type { Verdict } from "../../linux/nftables/verdict.ts";
import type { DesiredChain, DesiredRule } from "./desired-table.ts";

type Field = Extract<Expression, { kind: "meta" }>["key"];

/**
 * The verdict of the first rule after the lookup that matches the key, or the policy of a base chain. `undefined` if it
 * depends on anything but the field that the map is looked up with.
 */
export function verdictWithoutElement(chain: DesiredChain, map: string, key: Uint8Array): Verdict | undefined {
  const { rules } = chain;
  const lookup = rules.findIndex(({ expressions }) => expressions.some((each) => looksUp(each, map)));
  const field = rules[lookup]?.expressions.flatMap((each) => (each.kind === "meta" ? [each.key] : [])).at(-1);
  if (field === undefined) return undefined;
  for (const rule of rules.slice(lookup + 1)) {
    const outcome = outcomeOf(rule, field, key);
    if (outcome !== "next rule") return outcome === "unknown" ? undefined : outcome;
  }
  const policy = chain.chain.base?.policy;
  return policy === undefined ? undefined : { kind: policy };
}

function looksUp(expression: Expression, map: string): boolean {
  return expression.kind === "lookup" && expression.set === map;
}

function outcomeOf({ expressions }: DesiredRule, field: Field, key: Uint8Array): Verdict | "next rule" | "unknown" {
  for (const expression of expressions) {
    switch (expression.kind) {
      case "counter":
      case "log":
        break;
      case "immediate":
      case "set-ct":
        // What a rule writes into the label of a connection before it accepts.
        break;
      case "limit":
        // Whether it is exceeded or not, a rule that only reports decides nothing.
        return expressions.at(-1)?.kind === "verdict" ? "unknown" : "next rule";
      case "meta":
        if (expression.key !== field) return "unknown";
        break;
      case "compare":
        if (expression.operator !== "equal") return "unknown";
        if (!startsWith(key, expression.value)) return "next rule";
        break;
      case "verdict":
        return isFinal(expression.verdict) ? expression.verdict : "unknown";
      default:
        return "unknown";
    }
  }
  return "next rule";
}

function startsWith(key: Uint8Array, beginning: Uint8Array): boolean {
  return Buffer.compare(key.subarray(0, beginning.length), beginning) === 0;
}

/** No later rule of the chain is evaluated. */
function isFinal({ kind }: Verdict): boolean {
  return kind === "accept" || kind === "drop" || kind === "goto";
}
