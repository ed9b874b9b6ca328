/** A compiler whose resources change from round to round. */
import { PolicyCompiler } from "../../src/policy/compile/compiler.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";
import type { TableDelta } from "../../src/policy/table/desired-table.ts";
import { changesBetween, NO_RESOURCES } from "../support/policy-changes.ts";

export interface SteppedCompiler {
  readonly compiler: PolicyCompiler;
  /** Goes on to the next round. */
  next(): TableDelta;
}

/** In the first round. */
export function steppedCompiler(node: string, of: (round: number) => Partial<PolicyResources>): SteppedCompiler {
  const compiler = new PolicyCompiler({ node });
  let [round, before] = [0, NO_RESOURCES];
  const next = () => {
    const after = { ...NO_RESOURCES, ...of(round++) };
    compiler.update(changesBetween(before, after));
    before = after;
    return compiler.takeDelta();
  };
  next();
  return { compiler, next };
}
