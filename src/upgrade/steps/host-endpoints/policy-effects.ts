/**
 * What changes for the hosts when automatic host endpoints replace those of users: which policies select them, and what is allowed
 * if none does. By the same rules as `policy explain`. Pure.
 */
import type { HostEndpoint } from "../../../model/host-endpoint.ts";
import { typesOf } from "../../../model/policy-spec.ts";
import { DEFAULT_ALLOW_PROFILE } from "../../../model/profile.ts";
import type { Direction } from "../../../policy/effective-rule.ts";
import { isBeforeRouting, policiesOf } from "../../../policy/judge/judge.ts";
import type { AnyPolicy, PolicyResources } from "../../../policy/judge/resources.ts";
import { parseSelector } from "../../../selector/parse.ts";
import { selects } from "../../../selector/selector.ts";

const DIRECTIONS: readonly Direction[] = ["ingress", "egress"];

/** The host endpoints of one node, before and after. */
export interface Replacement {
  readonly node: string;
  /** None: the node gets its first host endpoint. */
  readonly before: readonly HostEndpoint[];
  readonly after: HostEndpoint;
}

export interface PolicyEffect {
  readonly node: string;
  readonly direction: Direction;
  /** Policies that select the host before and after. */
  readonly kept: readonly string[];
  /** Policies that select the host only before. */
  readonly lost: readonly string[];
  /** Policies that select the host only after. */
  readonly gained: readonly string[];
  /** What no policy decides was denied or left to other profiles, and is allowed now. */
  readonly isOpened: boolean;
}

export function policyEffects(
  replacements: readonly Replacement[],
  resources: PolicyResources,
): readonly PolicyEffect[] {
  const candidates = candidatePolicies(resources);
  return replacements.flatMap((each) => DIRECTIONS.map((direction) => effectOf(each, direction, candidates)));
}

type Candidates = (endpoint: HostEndpoint) => PolicyResources;

/** Clusters have many policies, most of them for pods: those whose selector does not select a host are left out early. */
function candidatePolicies(resources: PolicyResources): Candidates {
  const parsed = resources.globalNetworkPolicies.map((policy) => ({
    policy,
    selector: parseSelector(policy.spec.selector ?? ""),
  }));
  return ({ metadata: { labels = {} }, spec }) => {
    // Its profiles give it more labels.
    if ((spec.profiles ?? []).some((name) => name !== DEFAULT_ALLOW_PROFILE)) return resources;
    const isCandidate = ({ selector }: (typeof parsed)[number]) => !selector.ok || selects(selector.selector, labels);
    return { ...resources, globalNetworkPolicies: parsed.filter(isCandidate).map(({ policy }) => policy) };
  };
}

/** By title: the policies that select an endpoint. */
function selectingPolicies(
  endpoints: readonly HostEndpoint[],
  direction: Direction,
  candidates: Candidates,
): readonly string[] {
  const selecting = endpoints.flatMap((each) => policiesOf(each, direction, candidates(each)));
  return [...new Set(selecting.map(policyTitle))].sort();
}

function policyTitle({ kind, metadata: { name, namespace } }: AnyPolicy): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

function effectOf({ node, before, after }: Replacement, direction: Direction, candidates: Candidates) {
  const formerly = selectingPolicies(before, direction, candidates);
  const now = selectingPolicies([after], direction, candidates);
  return {
    node,
    direction,
    kept: formerly.filter((title) => now.includes(title)),
    lost: formerly.filter((title) => !now.includes(title)),
    gained: now.filter((title) => !formerly.includes(title)),
    isOpened: before.some(isNotAllowing) && !isDecided(after, direction, candidates(after)),
  };
}

function isNotAllowing({ spec }: HostEndpoint): boolean {
  return !(spec.profiles ?? []).includes(DEFAULT_ALLOW_PROFILE);
}

/** Whether policies decide about every packet, so that profiles never do: one tier denies what its rules do not match. */
function isDecided(endpoint: HostEndpoint, direction: Direction, resources: PolicyResources): boolean {
  const policies = policiesOf(endpoint, direction, resources).filter((policy) => !isBeforeRouting(policy));
  return [...Map.groupBy(policies, ({ spec }) => spec.tier)].some(([name, members]) => {
    const tier = resources.tiers.find(({ metadata }) => metadata.name === name);
    const canPass = members.some(({ spec }) => (spec[direction] ?? []).some(({ action }) => action === "Pass"));
    return (tier?.spec.defaultAction ?? "Deny") === "Deny" && !canPass;
  });
}

/** Names of ports that rules use. A name means what the endpoints declare. */
export function portNamesInRules({ networkPolicies, globalNetworkPolicies }: PolicyResources): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { spec } of [...networkPolicies, ...globalNetworkPolicies]) {
    for (const type of typesOf(spec)) {
      for (const { source, destination } of spec[type === "Ingress" ? "ingress" : "egress"] ?? []) {
        for (const entity of [source, destination]) {
          for (const port of [...(entity?.ports ?? []), ...(entity?.notPorts ?? [])]) {
            if (typeof port === "string" && !/^\d+(?::\d+)?$/.test(port)) names.add(port);
          }
        }
      }
    }
  }
  return names;
}
