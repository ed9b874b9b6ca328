/**
 * The first rule that matches a request, found without trying all of them.
 *
 * Each rule is filed under one of its criteria: its paths, the networks of its source, or one of the sets of its source;
 * under the one that the fewest rules share. A request looks up its own path, address and sets, and tries only the rules
 * that it finds there, and those that have no such criterion.
 */
import type { CompiledRule } from "./compiled-rule.ts";
import { PathMap } from "./path-map.ts";
import { PrefixMap } from "./prefix-map.ts";
import type { RequestFacts } from "./request-facts.ts";
import { leastShared, type RuleKey, sharesOf } from "./rule-keys.ts";
import { matchesRule } from "./rule-match.ts";

/** Places in the list of rules, in ascending order. */
type Places = number[];

export class RuleIndex {
  private readonly byPath = new PathMap<Places>();
  private readonly byNetwork = new PrefixMap<Places>();
  private readonly bySet = new Map<string, Places>();
  private readonly unfiled: Places = [];

  constructor(private readonly rules: readonly CompiledRule[]) {
    const shares = sharesOf(rules);
    for (const [place, rule] of rules.entries()) {
      const keys = leastShared(rule, shares);
      if (keys === undefined) this.unfiled.push(place);
      else for (const key of keys) this.placesAt(key).push(place);
    }
  }

  first(request: RequestFacts): CompiledRule | undefined {
    let first = this.rules.length;
    for (const places of this.candidates(request)) {
      for (const place of places) {
        if (place >= first) break;
        const rule = this.rules[place];
        if (rule !== undefined && matchesRule(rule, request)) first = place;
      }
    }
    return this.rules[first];
  }

  private candidates({ source, http }: RequestFacts): readonly Places[] {
    const found: Places[] = [this.unfiled];
    if (http?.path.ok) this.byPath.collect(http.path.path, found);
    this.byNetwork.collect(source.address, found);
    for (const names of source.sets) {
      for (const name of names) {
        const places = this.bySet.get(name);
        if (places !== undefined) found.push(places);
      }
    }
    return found;
  }

  private placesAt(key: RuleKey): Places {
    switch (key.kind) {
      case "path":
        return placesIn(this.byPath, key.path);
      case "network":
        return placesIn(this.byNetwork, key.prefix);
      case "set":
        return placesIn(this.bySet, key.name);
    }
  }
}

interface Table<Key> {
  get(key: Key): Places | undefined;
  set(key: Key, places: Places): unknown;
}

function placesIn<Key>(table: Table<Key>, key: Key): Places {
  const known = table.get(key);
  if (known !== undefined) return known;
  const places: Places = [];
  table.set(key, places);
  return places;
}
