/** What a sidecar knows after the updates that it was sent: their fields, one after the other. */
import type { SidecarEvaluation, SidecarPolicy, SidecarUpdate } from "../../src/alp/protocol/sidecar-state.ts";

export class ImitatedSidecar {
  addresses: readonly string[] = [];
  evaluation: SidecarEvaluation | undefined;
  readonly policies = new Map<string, SidecarPolicy>();
  readonly sets = new Map<string, Set<string>>();

  apply(update: SidecarUpdate): void {
    this.addresses = update.addresses ?? this.addresses;
    this.evaluation = update.evaluation ?? this.evaluation;
    for (const [key, policy] of Object.entries(update.policies ?? {})) {
      if (policy === null) this.policies.delete(key);
      else this.policies.set(key, policy);
    }
    for (const [name, change] of Object.entries(update.sets ?? {})) {
      if (change === null) this.sets.delete(name);
      else if ("members" in change) this.sets.set(name, new Set(change.members));
      else this.changeSet(name, change);
    }
  }

  /** The same value for sidecars that know the same. */
  get knowledge(): object {
    const { addresses, evaluation, policies, sets } = this;
    return {
      addresses,
      evaluation,
      policies: Object.fromEntries(policies),
      sets: Object.fromEntries(Array.from(sets, ([name, members]) => [name, [...members].sort()])),
    };
  }

  private changeSet(name: string, { add, remove }: { add: readonly string[]; remove: readonly string[] }): void {
    const set = this.sets.get(name);
    if (set === undefined) throw new Error(`a change of set "${name}", which was not sent`);
    for (const member of remove) if (!set.delete(member)) throw new Error(`"${member}" was not in "${name}"`);
    for (const member of add) {
      if (set.has(member)) throw new Error(`"${member}" was in "${name}" already`);
      set.add(member);
    }
  }
}
