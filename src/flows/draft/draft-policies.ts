/**
 * From recorded connections to policies that allow them, and nothing that was not recorded except what the comments call general. Pure.
 *
 * Each connection begins with no rule, then gets its next placement as long as the judge denies it with the draft as it is. So what
 * is always allowed gets no rule, and what the draft claims to allow the judge has allowed. At the end rules that decide about no
 * connection are left out.
 */
import { type NetworkPolicy, type NetworkPolicySpec, networkPolicy } from "../../model/network-policy.ts";
import { networkSet } from "../../model/network-set.ts";
import type { PolicyType } from "../../model/policy-spec.ts";
import { DEFAULT_TIER } from "../../model/tier.ts";
import type { Direction } from "../../policy/effective-rule.ts";
import { problemOf } from "../../policy/judge/enforced-policy.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import type { FlowEnd, FlowRecord } from "../flow-record.ts";
import { flowReplay, keyOf, type ReplayedFlow, type ReplayOptions } from "../replay-flows.ts";
import {
  type Aggregation,
  type DraftedRule,
  type DraftedSet,
  networkOf,
  type PlacedFlows,
  type Placement,
  placementsOf,
  rulesFor,
} from "./draft-rules.ts";
import { byText, type UnselectedGroup, type WorkloadGroup, WorkloadGroups } from "./workload-groups.ts";

/** Connections that the judge cannot tell apart. */
export interface RecordedFlows {
  readonly flow: FlowRecord;
  readonly count: number;
}

export interface DraftOptions {
  readonly resources: PolicyResources;
  readonly settingsOf: ReplayOptions["settingsOf"];
  /** Whose policies are drafted. */
  readonly isWanted: (group: UnselectedGroup) => boolean;
  readonly includesDenied: boolean;
  readonly aggregation: Aggregation;
}

export interface DraftedPolicy {
  readonly group: WorkloadGroup;
  readonly name: string;
  readonly namespace: string;
  readonly comments: readonly string[];
  readonly selector: string;
  /** Absent: both, so what the rules do not allow is denied. */
  readonly types?: readonly PolicyType[];
  /** Absent: after those that have one. */
  readonly order?: number;
  readonly ingress: readonly DraftedRule[];
  readonly egress: readonly DraftedRule[];
}

export interface Draft {
  readonly policies: readonly DraftedPolicy[];
  readonly sets: readonly DraftedSet[];
  /** Recorded connections with an end that is wanted and has a policy. */
  readonly flows: number;
  /** Those that the judge allows with the draft alone. */
  readonly allowed: number;
  /** Left out because they were denied. */
  readonly denied: number;
  /** Why others are not allowed, in words, and how many. */
  readonly unplaced: ReadonlyMap<string, number>;
  /** Wanted groups without a recorded connection: titles. */
  readonly silent: readonly string[];
  /** Wanted groups that no selector selects, so no policy of the draft is about them: titles. */
  readonly unselectable: readonly string[];
  /** Why a policy of the draft would not be enforced as it is written, in words. */
  readonly problems: readonly string[];
}

/** Records one by one; what differs only in source port, time and size is counted. */
export class FlowCollection {
  private readonly byKey = new Map<string, { readonly flow: FlowRecord; count: number }>();
  total = 0;
  /** Not kept, since there are too many different ones. */
  dropped = 0;
  oldest = Infinity;

  constructor(private readonly most: number) {}

  add(flow: FlowRecord): void {
    const { port: _, ...source } = flow.source;
    const key = `${flow.verdict === "denied"} ${keyOf({ ...flow, source })}`;
    this.total += 1;
    this.oldest = Math.min(this.oldest, flow.start);
    const known = this.byKey.get(key);
    if (known !== undefined) known.count += 1;
    else if (this.byKey.size < this.most) this.byKey.set(key, { flow: { ...flow, source }, count: 1 });
    else this.dropped += 1;
  }

  /**
   * In an order that does not depend on that in which they came. What left its node, and was denied whenever it arrived at the other
   * one, counts as denied.
   */
  flows(): readonly RecordedFlows[] {
    const all = [...this.byKey].toSorted(byText(([key]) => key)).map(([, each]) => each);
    const arrived = all.filter(({ flow }) => !isOnlyLeaving(flow));
    const ofVerdict = (isDenied: boolean) =>
      new Set(arrived.filter(({ flow: { verdict } }) => (verdict === "denied") === isDenied).map(tupleOf));
    const [denied, allowed] = [ofVerdict(true), ofVerdict(false)];
    return all.map((each) => {
      const tuple = tupleOf(each);
      if (!isOnlyLeaving(each.flow) || !denied.has(tuple) || allowed.has(tuple)) return each;
      return { ...each, flow: { ...each.flow, verdict: "denied" } };
    });
  }
}

/** The node of the source has let it pass, and that of the destination, which decides about ingress, is another one. */
function isOnlyLeaving({ verdict, node, destination, backend = destination }: FlowRecord): boolean {
  return verdict !== "denied" && backend.node !== undefined && backend.node !== node;
}

/** As the destination sees it, without the port of the source: the same in the records of both nodes. */
function tupleOf({ flow }: RecordedFlows): string {
  const { protocol, source, seenAs = source, destination, backend = destination } = flow;
  return `${protocol} ${seenAs.address} ${backend.address} ${backend.port}`;
}

/** One direction of a recorded connection, at one of its ends. */
interface Side {
  readonly flow: FlowRecord;
  readonly count: number;
  readonly direction: Direction;
  readonly group: WorkloadGroup;
  /** Lazily: most need none or one. */
  placements?: readonly Placement[];
  /** Which placement it has; -1: none. */
  level: number;
}

export function draftPolicies(recorded: readonly RecordedFlows[], options: DraftOptions): Draft {
  return new PolicyDraft(recorded, options).draft();
}

class PolicyDraft {
  private readonly groups: WorkloadGroups;
  private readonly sides: readonly Side[];
  private readonly counts = { flows: 0, denied: 0 };
  private readonly selected: readonly WorkloadGroup[];
  /** By group and direction: networks outside. */
  private readonly outside = new Map<WorkloadGroup, Record<Direction, Set<string>>>();
  private readonly unselectable = new Set<string>();
  private readonly unplaced = new Map<FlowRecord, string>();

  constructor(
    recorded: readonly RecordedFlows[],
    private readonly options: DraftOptions,
  ) {
    this.groups = new WorkloadGroups(
      recorded.flatMap(({ flow }) => endsOf(flow)),
      options.resources,
    );
    this.sides = recorded.flatMap((each) => this.sidesOf(each));
    const groups = new Set(this.sides.map(({ group }) => group));
    for (const { group, direction, flow } of this.sides) {
      const { kind, address } = peerOf(flow, direction);
      const nets = this.outside.get(group) ?? { ingress: new Set(), egress: new Set() };
      if (kind === "outside") nets[direction].add(networkOf(address, options.aggregation) ?? address);
      this.outside.set(group, nets);
    }
    this.selected = [...groups].toSorted(byText(groupTitle));
  }

  draft(): Draft {
    const drafted = this.untilAllowed();
    const { policies, sets } = withoutUnused(drafted, (flow) => this.unplaced.has(flow));
    const wanted = this.groups.all.filter(this.options.isWanted);
    const seen = new Set(this.sides.flatMap(({ group }) => group.titles));
    const unplaced = new Map<string, number>();
    const countOf = new Map(this.sides.map(({ flow, count }) => [flow, count]));
    for (const [flow, reason] of this.unplaced)
      unplaced.set(reason, (unplaced.get(reason) ?? 0) + (countOf.get(flow) ?? 0));
    const missing = [...unplaced.values()].reduce((sum, count) => sum + count, 0);
    return {
      ...{ policies, sets, flows: this.counts.flows, denied: this.counts.denied },
      allowed: this.counts.flows - this.counts.denied - missing,
      unplaced: new Map([...unplaced].toSorted(byText(([reason]) => reason))),
      silent: wanted
        .flatMap(({ titles }) => titles)
        .filter((title) => !seen.has(title) && !this.unselectable.has(title)),
      unselectable: [...this.unselectable].toSorted(),
      problems: problemsOf(drafted.enforced),
    };
  }

  private sidesOf({ flow, count }: RecordedFlows): readonly Side[] {
    const at = (end: FlowEnd, direction: Direction): readonly Side[] => {
      const group = this.groups.of(end);
      if (group === undefined || !this.options.isWanted(group)) return [];
      if (group.choice === undefined) {
        for (const title of group.titles) this.unselectable.add(title);
        return [];
      }
      return [{ flow, count, direction, group, level: -1 }];
    };
    const sides = [...at(flow.source, "egress"), ...at(flow.backend ?? flow.destination, "ingress")];
    if (sides.length === 0) return [];
    this.counts.flows += count;
    if (flow.verdict !== "denied" || this.options.includesDenied) return sides;
    this.counts.denied += count;
    return [];
  }

  private untilAllowed(): ReplayedDraft {
    for (;;) {
      const drafted = this.replayed();
      let isRaised = false;
      for (const { side, outcome } of drafted.outcomes)
        if (outcome.kind === "denied" && this.raise(side)) isRaised = true;
      if (isRaised) continue;
      for (const { side, outcome } of drafted.outcomes) {
        if (outcome.kind === "allowed") continue;
        const why = this.isCrowded(side) ? CROWDED : "no rule can be about it";
        this.unplaced.set(side.flow, outcome.kind === "denied" ? why : outcome.reason);
      }
      return drafted;
    }
  }

  private isCrowded({ group, direction, flow }: Side): boolean {
    const nets = this.outside.get(group)?.[direction];
    return peerOf(flow, direction).kind === "outside" && nets !== undefined && nets.size > MOST_NETWORKS;
  }

  /** Whether there was another placement. */
  private raise(side: Side): boolean {
    const known = { groups: this.groups, resources: this.options.resources };
    side.placements ??= this.isCrowded(side) ? [] : placementsOf(side.flow, side.direction, known);
    if (side.level >= side.placements.length) return false;
    side.level += 1;
    return side.level < side.placements.length;
  }

  private replayed(): ReplayedDraft {
    const policies = this.policiesNow();
    const sets = setsOf(policies);
    const enforced = enforcedDraft(policies, sets, this.options.resources);
    const replay = flowReplay(enforced, { settingsOf: this.options.settingsOf });
    const outcomes = this.sides.map((side) => ({ side, outcome: outcomeOf(replay(side.flow), side) }));
    return { policies, sets, enforced, outcomes };
  }

  private policiesNow(): readonly DraftedPolicy[] {
    const nameSet = uniqueNames();
    const namePolicy = uniqueNames();
    const placed = Map.groupBy(
      this.sides.filter(({ level, placements = [] }) => level >= 0 && level < placements.length),
      ({ group }) => group,
    );
    return this.selected.flatMap((group) => {
      const rules = (direction: Direction) => {
        const own = (placed.get(group) ?? []).filter((side) => side.direction === direction);
        const flows = own.flatMap(({ placements = [], level, count }): PlacedFlows[] => {
          const placement = placements[level];
          return placement === undefined ? [] : [{ placement, flows: count }];
        });
        const { aggregation, resources } = this.options;
        return rulesFor(flows, {
          group,
          direction,
          aggregation,
          resources,
          nameSet: (wanted) => nameSet(group.namespace, wanted),
        });
      };
      return policiesOf(group, { ingress: rules("ingress"), egress: rules("egress") }, namePolicy);
    });
  }
}

/** Outside, of one group in one direction. */
const MOST_NETWORKS = 1_000;
const CROWDED = `there are more than ${MOST_NETWORKS} addresses outside: say which networks stand for them, for example with --aggregate 24`;

function peerOf({ source, destination, backend }: FlowRecord, direction: Direction): FlowEnd {
  return direction === "ingress" ? source : (backend ?? destination);
}

interface ReplayedDraft {
  readonly policies: readonly DraftedPolicy[];
  readonly sets: readonly DraftedSet[];
  readonly enforced: PolicyResources;
  readonly outcomes: readonly { readonly side: Side; readonly outcome: Outcome }[];
}

type Outcome =
  | { readonly kind: "allowed"; readonly rule?: string }
  | { readonly kind: "denied" }
  | { readonly kind: "not judged"; readonly reason: string };

function outcomeOf({ verdict, reason, sides }: ReplayedFlow, { direction, flow }: Side): Outcome {
  // What another connection brought about needs no rule.
  if (flow.relatedTo !== undefined) return ALLOWED;
  if (verdict === "not judged") return { kind: "not judged", reason };
  const side = sides.findLast((each) => each.direction === direction && each.hostEndpoint === undefined);
  if (side === undefined) return ALLOWED;
  if (side.verdict !== "allow") return { kind: "denied" };
  const { decidedBy } = side;
  if (decidedBy?.kind !== "NetworkPolicy" || decidedBy.rule === undefined) return ALLOWED;
  return { kind: "allowed", rule: ruleKey(decidedBy.namespace, decidedBy.name, direction, decidedBy.rule) };
}

const ALLOWED: Outcome = { kind: "allowed" };

function ruleKey(namespace: string | undefined, name: string, direction: Direction, index: number): string {
  return JSON.stringify([namespace, name, direction, index]);
}

function endsOf({ source, destination, backend }: FlowRecord): readonly FlowEnd[] {
  return [source, destination, ...(backend === undefined ? [] : [backend])];
}

function groupTitle({ namespace, titles }: UnselectedGroup): string {
  return JSON.stringify([namespace, titles]);
}

/** What the CRDs allow a list of rules. */
const MOST_RULES = 128;
const DRAFT_PREFIX = "draft-";

function policiesOf(
  group: WorkloadGroup,
  { ingress, egress }: Record<Direction, readonly DraftedRule[]>,
  nameIn: (namespace: string, wanted: string) => string,
): readonly DraftedPolicy[] {
  const { namespace, choice, titles } = group;
  if (choice === undefined) return [];
  const count = Math.max(1, Math.ceil(Math.max(ingress.length, egress.length) / MOST_RULES));
  const others = choice.alsoSelected;
  const comments = [
    `For ${titles.join(", ")}`,
    ...(others.length === 0 ? [] : [`generalised: the selector also selects ${others.join(", ")}`]),
  ];
  return Array.from({ length: count }, (_, index) => {
    const part = (rules: readonly DraftedRule[]) => rules.slice(index * MOST_RULES, (index + 1) * MOST_RULES);
    return {
      ...{ group, name: nameIn(namespace, group.name), namespace, comments, selector: choice.selector },
      ...{ ingress: part(ingress), egress: part(egress) },
    };
  });
}

const LONGEST_DRAFT_NAME = 60;

/** A valid name for a resource that no other one has: `draft-web`, `draft-web-2`. `taken`: `NAMESPACE/NAME` of others. */
export function uniqueNames(
  prefix = DRAFT_PREFIX,
  taken: ReadonlySet<string> = new Set(),
): (namespace: string, wanted: string) => string {
  const given = new Set(taken);
  return (namespace, wanted) => {
    const plain = wanted.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    const base = `${prefix}${plain.slice(0, LONGEST_DRAFT_NAME)}`.replace(/-+$/, "");
    let name = base;
    for (let number = 2; given.has(`${namespace}/${name}`); number++) name = `${base}-${number}`;
    given.add(`${namespace}/${name}`);
    return name;
  };
}

function setsOf(policies: readonly DraftedPolicy[]): readonly DraftedSet[] {
  return policies.flatMap(({ ingress, egress }) => [...ingress, ...egress].flatMap(({ set }) => set ?? []));
}

/** As if the draft were all there is. */
function enforcedDraft(
  policies: readonly DraftedPolicy[],
  sets: readonly DraftedSet[],
  resources: PolicyResources,
): PolicyResources {
  const isDrafted = new Set(sets.map(({ namespace, name }) => `${namespace}/${name}`));
  return {
    ...resources,
    ...{ globalNetworkPolicies: [], hostEndpoints: [], tiers: [], networkPolicies: policies.map(enforcedPolicyOf) },
    networkSets: [
      ...resources.networkSets.filter(({ metadata: { namespace, name } }) => !isDrafted.has(`${namespace}/${name}`)),
      ...sets.map(({ name, namespace, labels, nets }) =>
        networkSet.make({ name, namespace, labels }, { nets: [...nets] }),
      ),
    ],
  };
}

export function policySpecOf({
  selector,
  order,
  types = ["Ingress", "Egress"],
  ingress,
  egress,
}: DraftedPolicy): Omit<NetworkPolicySpec, "tier"> {
  return {
    ...(order === undefined ? {} : { order }),
    ...{ selector, types: [...types] },
    ...(ingress.length === 0 ? {} : { ingress: ingress.map(({ rule }) => rule) }),
    ...(egress.length === 0 ? {} : { egress: egress.map(({ rule }) => rule) }),
  };
}

export function enforcedPolicyOf(policy: DraftedPolicy): NetworkPolicy {
  const { name, namespace } = policy;
  return networkPolicy.make({ name, namespace }, { tier: DEFAULT_TIER, ...policySpecOf(policy) });
}

/** What no rule needs any more, since an earlier one allows the same. */
function withoutUnused(
  { policies, outcomes }: ReplayedDraft,
  isUnplaced: (flow: FlowRecord) => boolean,
): Pick<Draft, "policies" | "sets"> {
  const used = new Set(outcomes.flatMap(({ outcome }) => (outcome.kind === "allowed" ? (outcome.rule ?? []) : [])));
  // A policy that could say nothing of what was recorded would only deny it.
  const isSilent = new Map<WorkloadGroup, boolean>();
  for (const { side } of outcomes)
    isSilent.set(side.group, isUnplaced(side.flow) && isSilent.get(side.group) !== false);
  const isFirst = (policy: DraftedPolicy) => policies.find(({ group }) => group === policy.group) === policy;
  const kept = policies.flatMap((policy): readonly DraftedPolicy[] => {
    const rules = (direction: Direction) =>
      policy[direction].filter((_, index) => used.has(ruleKey(policy.namespace, policy.name, direction, index)));
    const left = { ...policy, ingress: rules("ingress"), egress: rules("egress") };
    const isEmpty = left.ingress.length + left.egress.length === 0;
    return isEmpty && (isSilent.get(policy.group) === true || !isFirst(policy)) ? [] : [left];
  });
  return { policies: kept, sets: setsOf(kept) };
}

function problemsOf(enforced: PolicyResources): readonly string[] {
  return enforced.networkPolicies.flatMap((policy) => {
    const problem = problemOf(policy, enforced);
    return problem === undefined ? [] : [`${policy.metadata.namespace}/${policy.metadata.name}: ${problem}`];
  });
}
