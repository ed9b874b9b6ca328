/** What a rule can be filed under, so that a request finds it by its own path, address or sets. Pure. */

import type { HttpPath } from "../../http/http-match.ts";
import { formatPrefix, type Prefix } from "../../ip/prefix.ts";
import type { CompiledRule } from "./compiled-rule.ts";

export type RuleKey =
  | { readonly kind: "path"; readonly path: HttpPath }
  | { readonly kind: "network"; readonly prefix: Prefix }
  | { readonly kind: "set"; readonly name: string };

/** How many rules have a key, by its text. */
export type Shares = ReadonlyMap<string, number>;

export function sharesOf(rules: readonly CompiledRule[]): Shares {
  const shares = new Map<string, number>();
  for (const rule of rules) {
    for (const key of keysOf(rule).flat()) shares.set(textOf(key), (shares.get(textOf(key)) ?? 0) + 1);
  }
  return shares;
}

/**
 * The keys of one criterion; a request that matches the rule has at least one of them. Empty: no request can match it.
 * `undefined`: it has no such criterion.
 */
export function leastShared(rule: CompiledRule, shares: Shares): readonly RuleKey[] | undefined {
  const [first, ...others] = keysOf(rule);
  if (first === undefined || others.length === 0) return first;
  const cost = (keys: readonly RuleKey[]) => keys.reduce((sum, key) => sum + (shares.get(textOf(key)) ?? 0), 0);
  return others.reduce((best, keys) => (cost(keys) < cost(best) ? keys : best), first);
}

/** For each of its criteria. */
function keysOf({ source, http }: CompiledRule): readonly (readonly RuleKey[])[] {
  const { paths = [] } = http ?? {};
  return [
    ...(paths.length === 0 ? [] : [paths.map((path) => ({ kind: "path" as const, path }))]),
    ...(source.nets === undefined
      ? []
      : [source.nets.prefixes.map((prefix) => ({ kind: "network" as const, prefix }))]),
    ...source.sets.map((name) => [{ kind: "set" as const, name }]),
  ];
}

function textOf(key: RuleKey): string {
  switch (key.kind) {
    case "path":
      return "exact" in key.path ? `exact ${key.path.exact}` : `prefix ${key.path.prefix}`;
    case "network":
      return `network ${formatPrefix(key.prefix)}`;
    case "set":
      return `set ${key.name}`;
  }
}
