/**
 * What the sidecars of this node must know: for each endpoint the policies that apply to requests to it, with the sets that
 * they refer to, taken from what the compiler keeps for the kernel.
 *
 * No effects. Only endpoints that somebody asks for cost anything.
 */
import { formatAddress } from "../../ip/address.ts";
import type { CompiledParts, CompilerFollower, PolicyCompiler } from "../../policy/compile/compiler.ts";
import { workloadEntity } from "../../policy/compile/entity.ts";
import type { SetHistory } from "../../policy/compile/set-history.ts";
import type { SelectorText } from "../../policy/effective-selector.ts";
import type { AnyReference } from "../../policy/table/names.ts";
import type { SidecarEvaluation, SidecarPolicy } from "../protocol/sidecar-state.ts";
import { IdentitySets } from "./identity-sets.ts";
import { type RulesForSidecar, rulesForSidecar } from "./sidecar-rule.ts";

/** The members of its sets change; all else does not. */
export interface SidecarState {
  readonly addresses: readonly string[];
  readonly evaluation: SidecarEvaluation;
  /** By key. */
  readonly policies: ReadonlyMap<string, SidecarPolicy>;
  /** By name. */
  readonly sets: ReadonlyMap<string, SetHistory>;
}

interface KnownState {
  readonly version: number;
  readonly state: SidecarState;
  readonly identities: readonly SelectorText[];
}

const NOTHING_ALLOWED: SidecarEvaluation = { tiers: [], profiles: [] };

export class SidecarStates implements CompilerFollower {
  private readonly from: CompiledParts;
  private readonly identities: IdentitySets;
  private readonly known = new Map<string, KnownState>();
  private policyChanges = 0;

  constructor(compiler: Pick<PolicyCompiler, "follow">) {
    this.from = compiler.follow(this);
    this.identities = new IdentitySets(this.from.profiles);
  }

  profileChanged(name: string, labels: Readonly<Record<string, string>> | undefined): void {
    this.identities.putProfile(name, labels);
  }

  policyChanged(): void {
    this.policyChanges += 1;
  }

  /**
   * `undefined` if the endpoint is not on this node. The same object as before if only members of sets have changed. The
   * caller calls `forget` when it no longer needs the state.
   */
  stateOf(endpoint: string): SidecarState | undefined {
    const version = this.from.workloads.version + this.policyChanges;
    const before = this.known.get(endpoint);
    if (before?.version === version) return before.state;
    const now = this.compute(endpoint, version);
    if (now === undefined) this.known.delete(endpoint);
    else this.known.set(endpoint, now);
    // After the new ones are retained: sets that both need keep their history.
    this.release(before);
    return now?.state;
  }

  forget(endpoint: string): void {
    const before = this.known.get(endpoint);
    this.known.delete(endpoint);
    this.release(before);
  }

  private release(state: KnownState | undefined): void {
    for (const selector of state?.identities ?? []) this.identities.release(selector);
  }

  private compute(endpoint: string, version: number): KnownState | undefined {
    const local = this.from.workloads.local.get(endpoint);
    if (local === undefined) return undefined;
    const addresses = workloadEntity(local.endpoint).addresses.map(formatAddress);
    const evaluated = this.evaluate(endpoint);
    const sets = evaluated === undefined ? undefined : this.findSets(evaluated.references);
    if (evaluated === undefined || sets === undefined) {
      const state = { addresses, evaluation: NOTHING_ALLOWED, policies: new Map(), sets: new Map() };
      return { version, state, identities: [] };
    }
    for (const [name, selector] of evaluated.identities) sets.set(name, this.identities.retain(selector));
    const { evaluation, policies } = evaluated;
    return {
      version,
      state: { addresses, evaluation, policies, sets },
      identities: [...evaluated.identities.values()],
    };
  }

  /** `undefined` if the endpoint has no interface of its own: the kernel lets nothing through to it either. */
  private evaluate(endpoint: string): Evaluated | undefined {
    const evaluation = this.from.workloads.evaluationOf(endpoint, "ingress");
    if (evaluation === undefined) return undefined;
    const policies = new Map<string, SidecarPolicy>();
    const used: RulesForSidecar[] = [];
    for (const policy of evaluation.tiers.flatMap((tier) => tier.policies)) {
      const converted = rulesForSidecar(policy.rules.ingress ?? []);
      used.push(converted);
      policies.set(policy.key, { title: policy.title, rules: converted.rules });
    }
    const profiles = rulesForSidecar(evaluation.profileRules);
    used.push(profiles);
    const tiers = evaluation.tiers.map(({ name, defaultAction, policies: members }) => ({
      name,
      defaultAction,
      policies: members.map(({ key }) => key),
    }));
    return {
      evaluation: { tiers, profiles: profiles.rules },
      policies,
      references: new Map(used.flatMap(({ sets }) => [...sets])),
      identities: new Map(used.flatMap(({ identities }) => [...identities])),
    };
  }

  /** `undefined` if the kernel does not have one of them: it evaluates something else. */
  private findSets(references: ReadonlyMap<string, AnyReference>): Map<string, SetHistory> | undefined {
    const sets = new Map<string, SetHistory>();
    for (const [name, reference] of references) {
      const history = this.from.sets.historyOf(reference);
      if (history === undefined) return undefined;
      sets.set(name, history);
    }
    return sets;
  }
}

interface Evaluated extends Pick<SidecarState, "evaluation" | "policies"> {
  readonly references: ReadonlyMap<string, AnyReference>;
  readonly identities: ReadonlyMap<string, SelectorText>;
}
