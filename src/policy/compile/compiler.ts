/**
 * Resources -> the table that enforces them on this node, one change at a time.
 *
 *   endpoints, network sets ──> MemberSets    what selectors of rules select: elements of kernel sets
 *   local endpoints ─────────> LabelIndex     which policies select them
 *   policies, tiers, profiles ──> Evaluations shared chains
 *   interface of each local endpoint ──> its chain, in two verdict maps
 *
 * No effects: `table` is what the kernel must hold, `takeDelta()` what changed since the last call.
 */

import { parseKey } from "../../model/keys.ts";
import { type NodeAgentConfiguration, nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { Profile } from "../../model/profile.ts";
import { DEFAULT_TIER, type TierSpec } from "../../model/tier.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { effectiveRule, UnsupportedRule } from "../effective-policy.ts";
import type { Direction, EffectiveRule } from "../effective-rule.ts";
import { canonicalSelector } from "../effective-selector.ts";
import type { PolicyChanges } from "../inputs.ts";
import { FROM_WORKLOADS, TO_WORKLOADS, WORKLOAD_MAPS, workloadBaseChains } from "../render/base-chains.ts";
import { verdictElement } from "../render/verdict-element.ts";
import type { DesiredTable, TableDelta } from "../table/desired-table.ts";
import { TableBuilder } from "../table/table-builder.ts";
import { hostEntity, networkSetEntity, workloadEntity } from "./entity.ts";
import { type EvaluatedTier, Evaluations } from "./evaluations.ts";
import { LabelIndex } from "./label-index.ts";
import { MemberSets } from "./member-sets.ts";
import { comparePolicies, type PolicyRecord, policyRecord, unreadablePolicy } from "./policy-record.ts";

export interface LocalEndpoint {
  readonly endpoint: WorkloadEndpoint;
  readonly interfaceName: string;
}

/** Why something is denied that its author may want to be allowed. */
export interface PolicyProblem {
  /** `NAMESPACE/NAME` of a policy, or the name of a profile. */
  readonly title: string;
  readonly reason: string;
}

type Change<Kind extends keyof PolicyChanges> = PolicyChanges[Kind][number];

interface ProfileRecord {
  readonly labels: Readonly<Record<string, string>>;
  readonly rules: Readonly<Record<Direction, readonly EffectiveRule[]>>;
  readonly problem?: string;
}

const DIRECTIONS = ["ingress", "egress"] as const;
const MAP_OF = { ingress: TO_WORKLOADS, egress: FROM_WORKLOADS } as const;

export class PolicyCompiler {
  private readonly node: string;
  private readonly builder = new TableBuilder();
  private readonly sets: MemberSets;
  private readonly evaluations: Evaluations;
  /** Local endpoints, by the selectors of policies. */
  private readonly selection: LabelIndex;
  private readonly local = new Map<string, LocalEndpoint>();
  /** Which endpoints claim an interface; the first of them has it. */
  private readonly claims = new Map<string, Set<string>>();
  private readonly policies = new Map<string, PolicyRecord>();
  private readonly policiesOfSelector = new Map<string, Set<string>>();
  private readonly tiers = new Map<string, TierSpec>();
  private readonly profiles = new Map<string, ProfileRecord>();
  private readonly configurations = new Map<string, NodeAgentConfiguration>();
  /** The chain that an interface is sent to, by direction and interface. */
  private readonly chainOf = new Map<string, string>();
  private readonly toEvaluate = new Set<string>();

  constructor({ node }: { readonly node: string }) {
    this.node = node;
    this.sets = new MemberSets(this.builder, (reference) => this.evaluations.renderUsersOf(reference));
    this.evaluations = new Evaluations(this.builder, this.sets, (key) => this.policies.get(key));
    const touch = (_: string, endpoint: string) => void this.toEvaluate.add(endpoint);
    this.selection = new LabelIndex({ matched: touch, unmatched: touch });
    for (const map of WORKLOAD_MAPS) this.builder.createSet(map);
    this.renderBase();
  }

  get table(): DesiredTable {
    return this.builder;
  }

  get localEndpoints(): ReadonlyMap<string, LocalEndpoint> {
    return this.local;
  }

  get policyCount(): number {
    return this.policies.size;
  }

  get problems(): readonly PolicyProblem[] {
    const all = [
      ...Array.from(this.policies.values(), ({ title, problem }) => ({ title, problem })),
      ...Array.from(this.profiles, ([title, { problem }]) => ({ title, problem })),
    ];
    return all.flatMap(({ title, problem }) => (problem === undefined ? [] : [{ title, reason: problem }]));
  }

  takeDelta(): TableDelta {
    return this.builder.takeDelta();
  }

  update(changes: PolicyChanges): void {
    for (const change of changes.profiles) this.changeProfile(change);
    for (const change of changes.tiers) this.changeTier(change);
    for (const change of [...changes.networkSets, ...changes.globalNetworkSets]) {
      if (change.kind === "put") this.sets.putEntity(change.key, networkSetEntity(change.value));
      else this.sets.deleteEntity(change.key);
    }
    for (const change of changes.hostEndpoints) {
      if (change.kind === "put") this.sets.putEntity(change.key, hostEntity(change.value));
      else this.sets.deleteEntity(change.key);
    }
    for (const change of changes.endpoints) this.changeEndpoint(change);
    for (const change of [...changes.networkPolicies, ...changes.globalNetworkPolicies]) this.changePolicy(change);
    for (const change of changes.configurations) this.changeConfiguration(change);
    for (const endpoint of this.toEvaluate) this.evaluate(endpoint);
    this.toEvaluate.clear();
    this.sets.flushRanges();
  }

  private changeProfile(change: Change<"profiles">): void {
    const name = nameIn(change.key);
    const record = change.kind === "put" ? profileRecord(change.value) : undefined;
    const before = this.profiles.get(name);
    if (record === undefined) this.profiles.delete(name);
    else this.profiles.set(name, record);
    this.sets.putParent(name, record?.labels);
    this.selection.putParent(name, record?.labels);
    if (Bun.deepEquals(before?.rules, record?.rules)) return;
    for (const [key, { endpoint }] of this.local) if (endpoint.spec.profiles?.includes(name)) this.toEvaluate.add(key);
  }

  private changeTier(change: Change<"tiers">): void {
    const name = nameIn(change.key);
    if (change.kind === "put") this.tiers.set(name, change.value.spec);
    else this.tiers.delete(name);
    this.evaluateAll();
  }

  private changeEndpoint(change: Change<"endpoints">): void {
    const { key } = change;
    if (change.kind === "put") this.sets.putEntity(key, workloadEntity(change.value));
    else this.sets.deleteEntity(key);
    const endpoint = change.kind === "put" && change.value.spec.node === this.node ? change.value : undefined;
    const interfaceName = endpoint?.spec.interfaceName;
    const before = this.local.get(key);
    if (before !== undefined && before.interfaceName !== interfaceName) this.unclaim(key, before.interfaceName);
    if (endpoint === undefined || interfaceName === undefined) {
      this.local.delete(key);
      this.selection.delete(key);
      return;
    }
    this.local.set(key, { endpoint, interfaceName });
    addTo(this.claims, interfaceName, key);
    this.toEvaluate.add(key);
    this.selection.put(key, workloadEntity(endpoint));
  }

  private unclaim(key: string, interfaceName: string): void {
    const claims = this.claims.get(interfaceName);
    claims?.delete(key);
    for (const other of claims ?? []) this.toEvaluate.add(other);
    if (claims !== undefined && claims.size > 0) return;
    this.claims.delete(interfaceName);
    for (const direction of DIRECTIONS) this.send(direction, interfaceName, undefined);
  }

  private changePolicy(change: Change<"networkPolicies"> | Change<"globalNetworkPolicies">): void {
    const { key } = change;
    const before = this.policies.get(key);
    const now = recordOf(change);
    if (now === undefined) this.policies.delete(key);
    else this.policies.set(key, now);
    if (before?.selector !== now?.selector) {
      // Registered first: the endpoints that it selects are evaluated either way.
      if (now !== undefined) this.select(now);
      if (before !== undefined) this.unselect(before);
    } else if (before !== undefined && now !== undefined && isSameButRules(before, now)) {
      this.evaluations.renderPolicy(key);
      return;
    }
    for (const record of [before, now]) {
      for (const endpoint of record === undefined ? [] : this.selection.membersOf(record.selector))
        this.toEvaluate.add(endpoint);
    }
    this.evaluations.renderPolicy(key);
  }

  private select({ key, selector }: PolicyRecord): void {
    addTo(this.policiesOfSelector, selector, key);
    this.selection.register(selector);
  }

  private unselect({ key, selector }: PolicyRecord): void {
    for (const endpoint of this.selection.membersOf(selector)) this.toEvaluate.add(endpoint);
    const others = this.policiesOfSelector.get(selector);
    others?.delete(key);
    if (others !== undefined && others.size > 0) return;
    this.policiesOfSelector.delete(selector);
    this.selection.unregister(selector);
  }

  private changeConfiguration(change: Change<"configurations">): void {
    if (change.kind === "put") this.configurations.set(change.key, change.value);
    else this.configurations.delete(change.key);
    this.renderBase();
  }

  private renderBase(): void {
    const wanted = workloadBaseChains(nodeAgentSettings(this.configurations.values(), this.node));
    const names = new Set(wanted.map(({ chain }) => chain.name));
    for (const name of BASE_CHAIN_NAMES) if (!names.has(name)) this.builder.deleteChain(name);
    for (const chain of wanted) this.builder.putChain(chain);
  }

  private evaluateAll(): void {
    for (const key of this.local.keys()) this.toEvaluate.add(key);
  }

  private evaluate(key: string): void {
    const local = this.local.get(key);
    if (local === undefined) return;
    const { interfaceName } = local;
    const [owner] = [...(this.claims.get(interfaceName) ?? [])].toSorted();
    if (owner !== key) return;
    const policies = this.policiesOf(key);
    for (const direction of DIRECTIONS) {
      const chain = this.evaluations.retain({
        direction,
        tiers: this.tiersOf(policies, direction),
        profileRules: this.profileRules(local, direction),
        otherwise: "drop",
      });
      this.send(direction, interfaceName, chain);
    }
  }

  private policiesOf(endpoint: string): readonly PolicyRecord[] {
    const keys = [...this.selection.matchesOf(endpoint)].flatMap((selector) => [
      ...(this.policiesOfSelector.get(selector) ?? []),
    ]);
    return keys.flatMap((key) => this.policies.get(key) ?? []).filter(({ stage }) => stage === "normal");
  }

  private tiersOf(policies: readonly PolicyRecord[], direction: Direction): readonly EvaluatedTier[] {
    const byTier = Map.groupBy(
      policies.filter(({ rules }) => rules[direction] !== undefined),
      ({ tier }) => tier,
    );
    return Array.from(byTier, ([name, members]) => ({ name, spec: this.tierOf(name), members }))
      .toSorted((left, right) => orderOf(left) - orderOf(right) || (left.name < right.name ? -1 : 1))
      .map(({ name, spec, members }) => ({
        name,
        defaultAction: spec.defaultAction,
        policies: members.toSorted(comparePolicies),
      }));
  }

  /** A tier that does not exist is evaluated last, and denies what its policies do not allow. */
  private tierOf(name: string): TierSpec {
    return (
      this.tiers.get(name) ??
      (name === DEFAULT_TIER ? { order: 1_000_000, defaultAction: "Deny" } : { defaultAction: "Deny" })
    );
  }

  private profileRules({ endpoint }: LocalEndpoint, direction: Direction): readonly EffectiveRule[] {
    return (endpoint.spec.profiles ?? []).flatMap((name) => this.profiles.get(name)?.rules[direction] ?? []);
  }

  private send(direction: Direction, interfaceName: string, chain: string | undefined): void {
    const slot = `${direction} ${interfaceName}`;
    const before = this.chainOf.get(slot);
    if (before !== undefined) this.evaluations.release(before);
    if (chain === undefined) {
      this.chainOf.delete(slot);
      this.builder.deleteElement(MAP_OF[direction], interfaceName);
      return;
    }
    this.chainOf.set(slot, chain);
    if (before !== chain)
      this.builder.putElement(MAP_OF[direction], interfaceName, verdictElement(interfaceName, chain));
  }
}

const BASE_CHAIN_NAMES: readonly string[] = workloadBaseChains({ defaultEndpointToHostAction: "Drop" }).map(
  ({ chain }) => chain.name,
);

function orderOf({ spec }: { readonly spec: TierSpec }): number {
  return spec.order ?? Number.MAX_VALUE;
}

function recordOf(change: Change<"networkPolicies"> | Change<"globalNetworkPolicies">): PolicyRecord | undefined {
  switch (change.kind) {
    case "put":
      return policyRecord(change.key, change.value);
    case "delete":
      return undefined;
    case "unreadable": {
      const parts = parseKey(change.key);
      const namespace = parts?.kind === "resource" ? parts.namespace : undefined;
      const name = nameIn(change.key);
      const title = namespace === undefined ? name : `${namespace}/${name}`;
      return unreadablePolicy(change.key, { title, namespace, reason: change.failure.message });
    }
  }
}

/** Then the same endpoints evaluate it at the same place, by the same chains. */
function isSameButRules(before: PolicyRecord, now: PolicyRecord): boolean {
  const shape = ({ tier, order, stage, appliesOnForward, rules }: PolicyRecord) => [
    tier,
    order,
    stage,
    appliesOnForward,
    ...DIRECTIONS.map((direction) => rules[direction]?.some(({ action }) => action === "Pass")),
  ];
  return Bun.deepEquals(shape(before), shape(now));
}

function profileRecord({ spec }: Profile): ProfileRecord {
  const labels = spec.labelsToApply ?? {};
  const resolve = (direction: Direction) =>
    (spec[direction] ?? [])
      .map((rule) => effectiveRule(rule, direction, { selector: canonicalSelector("all()") }))
      // Pass leaves a tier, and a profile is in none: nothing is left that could allow the packet.
      .map((rule) => (rule.action === "Pass" ? { ...rule, action: "Deny" as const } : rule));
  try {
    return { labels, rules: { ingress: resolve("ingress"), egress: resolve("egress") } };
  } catch (failure) {
    if (!(failure instanceof UnsupportedRule)) throw failure;
    return { labels, rules: { ingress: [], egress: [] }, problem: failure.message };
  }
}

function nameIn(key: string): string {
  const parts = parseKey(key);
  return parts?.kind === "resource" ? parts.name : key;
}

function addTo<Key, Value>(sets: Map<Key, Set<Value>>, key: Key, value: Value): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}
