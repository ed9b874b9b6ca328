/**
 * Policies that allow one denied connection, beside all policies that there are. Pure.
 *
 * Unlike the draft for workloads (`draft-policies.ts`), which is to be all there is, this one must not change anything else: a
 * policy of it is about one direction of one group of workloads, and
 *
 *   a tier ends with deny     the policy joins that tier: who it selects is closed already
 *   a profile denies          so no policy applies yet: all else passes on to the profiles, as before
 *   a rule denies             the policy is evaluated right before that of the rule, if it is one of the same namespace
 *
 * What others have written for a whole cluster, or in tiers of theirs, it does not overrule: the notes name it. What the draft
 * claims to allow, the judge has allowed.
 */
import { listed } from "../../counted.ts";
import { DEFAULT_TIER } from "../../model/tier.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Direction } from "../../policy/effective-rule.ts";
import { enforcedPoliciesOf } from "../../policy/judge/judge.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import { quoted } from "../../quote.ts";
import { nameOfWorkload, titleOfEnd } from "../flow-packet.ts";
import type { FlowEnd, FlowRecord } from "../flow-record.ts";
import { flowReplay, type ReplayedFlow, type ReplayedSide, type ReplayOptions } from "../replay-flows.ts";
import { type DraftedPolicy, enforcedPolicyOf, uniqueNames } from "./draft-policies.ts";
import { type DraftedRule, type Placement, placementsOf, rulesFor } from "./draft-rules.ts";
import { type WorkloadGroup, WorkloadGroups } from "./workload-groups.ts";

export interface FlowDraft {
  /** None: the connection is allowed now, or nothing that is drafted here can allow it. */
  readonly policies: readonly DraftedPolicy[];
  /** The judge's, of this connection with the draft. `depends`: on what is not known. */
  readonly verdict: "allowed" | "denied" | "depends";
  /** What is more general than this connection, what else denies it, and what was not tried, in words. */
  readonly notes: readonly string[];
}

export interface FlowDraftOptions {
  readonly resources: PolicyResources;
  readonly settingsOf: ReplayOptions["settingsOf"];
}

export function draftForFlow(flow: FlowRecord, options: FlowDraftOptions): FlowDraft {
  return new DraftOfFlow(flow, options).draft();
}

class DraftOfFlow {
  private readonly groups: WorkloadGroups;
  private readonly nameIn: (namespace: string, wanted: string) => string;
  private readonly policies: DraftedPolicy[] = [];
  private readonly notes: string[] = [];

  constructor(
    private readonly flow: FlowRecord,
    private readonly options: FlowDraftOptions,
  ) {
    const { networkPolicies } = options.resources;
    this.groups = new WorkloadGroups([flow.source, flow.destination, this.arrivesAt], options.resources);
    this.nameIn = uniqueNames(
      "allow-",
      new Set(networkPolicies.map(({ metadata: { namespace, name } }) => `${namespace}/${name}`)),
    );
  }

  draft(): FlowDraft {
    let judged = this.judge();
    if (judged.verdict === "allowed") return this.drafted("allowed", [ALLOWED_NOW]);
    // Whatever denies it at one end is found before what denies it at the other one.
    for (const direction of ["egress", "ingress"] as const) {
      const denying = deniedSide(judged, direction);
      if (denying === undefined) continue;
      this.allow(denying);
      judged = this.judge();
    }
    if (judged.verdict === "not judged") return this.drafted("depends", [`not judged: ${judged.reason}`]);
    const left = judged.sides.filter(({ verdict }) => verdict === "deny").map((side) => this.leftWords(side));
    return this.drafted(judged.verdict, [...judged.notes, ...left]);
  }

  private drafted(verdict: FlowDraft["verdict"], notes: readonly string[]): FlowDraft {
    const { policies } = this;
    const said = policies.flatMap(({ comments, ingress, egress }) => [
      ...comments,
      ...[...ingress, ...egress].flatMap((rule) => rule.comments),
    ]);
    const general = said.filter((text) => text.startsWith("generalised: ") || text.startsWith("by address"));
    return { policies, verdict, notes: [...new Set([...general, ...this.notes, ...notes])] };
  }

  private allow(side: ReplayedSide): void {
    const { direction } = side;
    const end = direction === "egress" ? this.flow.source : this.arrivesAt;
    const group = this.groups.of(end);
    if (group?.choice === undefined) {
      this.notes.push(`no label selects ${titleOfEnd(end)}, so no policy can be about it: give it a label`);
      return;
    }
    const place = placeFor(side, group, this.options.resources);
    if (place.kind === "refused") {
      this.notes.push(place.reason);
      return;
    }
    const known = { groups: this.groups, resources: this.options.resources };
    for (const placement of placementsOf(this.flow, direction, known)) {
      const tried = this.policyFor(placement, { group, direction, place });
      if (deniedSide(this.judge(tried), direction) !== undefined) continue;
      const others = selectedOthers(tried, direction, this.options.resources);
      // What passes on to profiles would open whom others have closed.
      const obstacle = place.kind === "open" && others.closed.length > 0;
      if (obstacle)
        this.notes.push(`not drafted: the selector also selects ${listed(others.closed)}, which policies close`);
      else {
        this.policies.push({ ...tried, name: this.nameIn(tried.namespace, tried.name) });
        if (place.note !== undefined) this.notes.push(place.note);
        if (place.kind === "closed" && others.open.length > 0)
          this.notes.push(
            `warning: no ${direction} policy applies to ${listed(others.open)} yet: the draft closes it for all else`,
          );
      }
      return;
    }
    this.notes.push(`no rule for ${titleOfEnd(end)} can be about this connection`);
  }

  /** Its name is only a wish. */
  private policyFor(
    placement: Placement,
    { group, direction, place }: { group: WorkloadGroup; direction: Direction; place: Place },
  ): DraftedPolicy {
    const { resources } = this.options;
    // One connection has too few addresses for a network set.
    const context = { group, direction, aggregation: {}, resources, nameSet: (wanted: string) => wanted };
    const rules = [...rulesFor([{ placement, flows: 1 }], context), ...(place.kind === "open" ? [PASS] : [])];
    const { choice, namespace, titles, name } = group;
    const others = choice?.alsoSelected ?? [];
    return {
      ...{ group, namespace, selector: choice?.selector ?? "" },
      name: `${name}-${direction === "egress" ? "to" : "from"}-${peerWord(placement)}`,
      comments: [
        `Allows connection ${this.flow.id} of ${titles.join(", ")}`,
        ...(others.length === 0 ? [] : [`generalised: the selector also selects ${others.join(", ")}`]),
      ],
      ...{ types: [direction === "egress" ? "Egress" : "Ingress"] },
      ...(place.order === undefined ? {} : { order: place.order }),
      ...{ ingress: direction === "ingress" ? rules : [], egress: direction === "egress" ? rules : [] },
    };
  }

  private judge(tried?: DraftedPolicy): ReplayedFlow {
    const { resources, settingsOf } = this.options;
    const policies = tried === undefined ? this.policies : [...this.policies, tried];
    const withDraft = {
      ...resources,
      networkPolicies: [...resources.networkPolicies, ...policies.map(enforcedPolicyOf)],
    };
    return flowReplay(withDraft, { settingsOf })(this.flow);
  }

  private leftWords({ direction, reason, hostEndpoint }: ReplayedSide): string {
    const end = direction === "egress" ? this.flow.source : this.arrivesAt;
    const of = hostEndpoint === undefined ? titleOfEnd(end) : `host endpoint ${hostEndpoint.name}`;
    return `still denied (${direction} of ${of}): ${reason}`;
  }

  private get arrivesAt(): FlowEnd {
    return this.flow.backend ?? this.flow.destination;
  }
}

const ALLOWED_NOW = "the policies of now allow it: nothing has to be written";

const PASS: DraftedRule = {
  rule: { action: "Pass" },
  comments: ["everything else: as before, its profiles decide"],
};

/** Workloads that the policy selects, by whether other policies of its tier apply to them in that direction: titles. */
function selectedOthers(
  policy: DraftedPolicy,
  direction: Direction,
  resources: PolicyResources,
): { readonly open: readonly string[]; readonly closed: readonly string[] } {
  const enforced = enforcedPolicyOf(policy);
  const withDraft = { ...resources, networkPolicies: [...resources.networkPolicies, enforced] };
  const selected = resources.endpoints.filter(
    (endpoint) =>
      endpoint.metadata.namespace === policy.namespace &&
      enforcedPoliciesOf(endpoint, withDraft, [direction]).includes(enforced),
  );
  const isClosed = (endpoint: WorkloadEndpoint) =>
    enforcedPoliciesOf(endpoint, resources, [direction]).some(({ spec }) => spec.tier === DEFAULT_TIER);
  const titles = (endpoints: readonly WorkloadEndpoint[]) => [
    ...new Set(
      endpoints
        .map(nameOfWorkload)
        .map(({ namespace, name }) => (namespace === undefined ? `${name}` : `${namespace}/${name}`)),
    ),
  ];
  return {
    closed: titles(selected.filter(isClosed)),
    open: titles(selected.filter((endpoint) => !isClosed(endpoint))),
  };
}

/** Of a workload: host endpoints are not drafted for. */
function deniedSide({ sides }: ReplayedFlow, direction: Direction): ReplayedSide | undefined {
  return sides.find(
    (side) => side.direction === direction && side.verdict === "deny" && side.hostEndpoint === undefined,
  );
}

/** Where among the policies that there are. "open": none applies yet. */
interface Place {
  readonly kind: "closed" | "open";
  readonly order?: number;
  readonly note?: string;
}

type Placed = Place | { readonly kind: "refused"; readonly reason: string };

/** The order of the policy right before one without an order, which is evaluated last. */
const BEFORE_THE_LAST = 10_000;

function placeFor({ decidedBy, reason }: ReplayedSide, group: WorkloadGroup, resources: PolicyResources): Placed {
  if (decidedBy === undefined || decidedBy.kind === "Profile") return { kind: "open" };
  const { kind, name, namespace } = decidedBy;
  const refused = (why: string) => ({ kind: "refused", reason: `not overruled: ${why}: ${reason}` }) as const;
  if (kind === "Tier")
    return name === DEFAULT_TIER
      ? { kind: "closed" }
      : refused(`tier ${quoted(name)} is evaluated before policies of namespaces`);
  const title = `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
  if (kind !== "NetworkPolicy" || namespace !== group.namespace) return refused(`${title} is not of this namespace`);
  const policy = resources.networkPolicies.find(
    ({ metadata }) => metadata.name === name && metadata.namespace === namespace,
  );
  const { tier = DEFAULT_TIER, order = BEFORE_THE_LAST + 1 } = policy?.spec ?? {};
  if (tier !== DEFAULT_TIER) return refused(`${title} is in tier ${quoted(tier)}`);
  if (!Number.isFinite(order)) return refused(`${title} cannot be read, and denies everything`);
  const note = `a rule of ${title} denies it on purpose: the draft is evaluated before that policy`;
  return { kind: "closed", order: order - 1, note };
}

function peerWord({ peer }: Placement): string {
  switch (peer.kind) {
    case "service":
      return peer.name;
    case "workloads":
      return peer.group.name;
    case "network set":
      return peer.title.replace(/^network set (?:.*\/)?/, "");
    case "address":
      return peer.whose === undefined ? "outside" : peer.whose.replace(/^.*\//, "");
  }
}
