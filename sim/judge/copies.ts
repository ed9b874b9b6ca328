/**
 * The copy of a NetworkPolicy stays for as long as the policy does, whatever the controllers see for a while: one copy less
 * opens what the policy denies.
 */
import { NETWORK_POLICY } from "../../src/model/kinds.ts";
import { ORCHESTRATOR_POLICY } from "../../src/model/orchestrator-policy.ts";
import type { Invariant } from "./invariant.ts";
import { unchangedWhileSame } from "./records.ts";

export function noCopyLost(): Invariant {
  const [readStored, readAsked] = [keysOfPolicies(), keysOfPolicies()];
  /** Policies that were once absent: a controller may be late with the deletion of the former one. */
  const deleted = new Set<string>();
  let [stored, asked]: readonly (readonly string[])[] = [[], []];
  let found: readonly string[] = [];
  return {
    name: "no copied policy lost",
    when: "after each step",
    check(world) {
      if (world.asked === undefined) return [];
      const before = { stored: stored ?? [], asked: asked ?? [] };
      [stored, asked] = [readStored(world.records), readAsked(world.asked)];
      if (stored === before.stored && asked === before.asked) return found;
      const [present, wanted] = [new Set(stored), new Set(asked)];
      for (const key of before.asked) if (!wanted.has(key)) deleted.add(key);
      const lost = before.stored.filter((key) => !present.has(key) && wanted.has(key) && !deleted.has(key));
      found = lost.map((key) => `${key} is deleted, but its policy exists`);
      return found;
    },
  };
}

function keysOfPolicies() {
  return unchangedWhileSame([NETWORK_POLICY.prefix()], ({ key }) =>
    key.slice(key.lastIndexOf("/") + 1).startsWith(ORCHESTRATOR_POLICY) ? key : undefined,
  );
}
