/**
 * Which interfaces of the host have packets that reach a chain of the policy table: the verdict maps lead from an interface to a chain,
 * and its rules to further ones. Pure.
 */

import type { RuleCount } from "../../linux/nftables/rule-counts.ts";
import type { NftRule } from "../../linux/nftables/ruleset.ts";
import type { NftElement } from "../../linux/nftables/set.ts";

export interface PolicyCounts {
  readonly counts: readonly RuleCount[];
  /** By chain, sorted. `*`: all interfaces of the host that no other host endpoint has. */
  readonly interfacesOf: InterfacesOfChains;
}

export type InterfacesOfChains = ReadonlyMap<string, readonly string[]>;

/** `elements`: of the maps from interfaces to chains. */
export function interfacesOfChains(
  elements: readonly NftElement[],
  rules: readonly Pick<NftRule, "chain" | "expressions">[],
): InterfacesOfChains {
  const next = Map.groupBy(
    rules.flatMap(({ chain, expressions }) => targetsOf(expressions).map((target) => ({ chain, target }))),
    ({ chain }) => chain,
  );
  const starts = [
    ...elements.flatMap(({ key, data }) => {
      const target = data !== undefined && "chain" in data ? data.chain : undefined;
      return target === undefined ? [] : [{ interfaceName: interfaceIn(key), target }];
    }),
    ...Array.from(next)
      .filter(([chain]) => chain.startsWith(OTHER_INTERFACES))
      .flatMap(([, links]) => links.map(({ target }) => ({ interfaceName: "*", target }))),
  ];
  const found = new Map<string, Set<string>>();
  for (const [target, group] of Map.groupBy(starts, (start) => start.target)) {
    for (const chain of reachedFrom(target, next)) {
      const names = found.get(chain) ?? new Set();
      for (const { interfaceName } of group) names.add(interfaceName);
      found.set(chain, names);
    }
  }
  return new Map(Array.from(found, ([chain, names]) => [chain, [...names].sort()]));
}

/** The base chains of host endpoints: their own rules go to the chain of the host endpoint "*". */
const OTHER_INTERFACES = "host_";

function targetsOf(expressions: NftRule["expressions"]): readonly string[] {
  return expressions.flatMap((each) =>
    each.kind === "verdict" && "chain" in each.verdict ? [each.verdict.chain] : [],
  );
}

function reachedFrom(start: string, next: ReadonlyMap<string, readonly { readonly target: string }[]>): Set<string> {
  const reached = new Set([start]);
  for (const chain of reached) for (const { target } of next.get(chain) ?? []) reached.add(target);
  return reached;
}

/** Padded with zero bytes. */
function interfaceIn(key: Uint8Array): string {
  const end = key.indexOf(0);
  return new TextDecoder().decode(end === -1 ? key : key.subarray(0, end));
}
