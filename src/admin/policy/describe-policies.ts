/** What `describe` shows about policies: whom a policy selects, and which policies apply to an endpoint in which order. */
import type { Datastore } from "../../datastore/datastore.ts";
import { identity } from "../../identity.ts";
import { authoredPolicy } from "../../model/cluster-network-policy.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import { isUneditedNetworkProfile } from "../../model/network-profile.ts";
import { typesOf } from "../../model/policy-spec.ts";
import type { Profile } from "../../model/profile.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Direction } from "../../policy/effective-rule.ts";
import { missingProfileWords, profilesDecide, UNEDITED_WORDS } from "../../policy/judge/explain-side.ts";
import {
  endpointsOfPolicies,
  enforcedPoliciesOf,
  inOrder,
  isBeforeRouting,
  isOpenBecauseUnedited,
  missingProfiles,
  profileNamed,
} from "../../policy/judge/judge.ts";
import type { AnyEndpoint, AnyPolicy, PolicyResources } from "../../policy/judge/resources.ts";
import { readPolicy } from "../../policy/read-resources.ts";
import { quoted } from "../../quote.ts";
import type { DescribedSection } from "../kinds/kind.ts";
import { titleOf } from "./explain/peer.ts";

const MOST_LISTED = 50;

export async function describePolicy(store: Datastore, policy: AnyPolicy): Promise<readonly DescribedSection[]> {
  const resources = await policyResourcesIn(store);
  const selected = endpointsOfPolicies(resources)(policy);
  const types = typesOf(policy.spec).join(" and ").toLowerCase();
  if (selected.length === 0) return [{ title: "Selects", summary: `none: ${whyNone(policy)}`, rows: [] }];
  const more = selected.length - MOST_LISTED;
  return [
    {
      title: "Selects",
      summary: `${countWords(selected)}, for ${types}`,
      rows: [
        ...selected.slice(0, MOST_LISTED).map((endpoint) => [nameOf(endpoint), `node ${endpoint.spec.node ?? ""}`]),
        ...(more > 0 ? [[`and ${more} more`]] : []),
      ],
    },
  ];
}

export async function describeAppliedPolicies(
  store: Datastore,
  endpoint: AnyEndpoint,
): Promise<readonly DescribedSection[]> {
  const resources = await policyResourcesIn(store);
  return [
    ...(["ingress", "egress"] as const).map((direction) => directionSection(endpoint, direction, resources)),
    ...missingSection(endpoint, resources),
  ];
}

function missingSection(endpoint: AnyEndpoint, resources: PolicyResources): readonly DescribedSection[] {
  const missing = missingProfiles(endpoint, resources);
  if (missing.length === 0) return [];
  return [
    {
      title: "Profiles",
      summary: `${missingProfileWords(missing)}, so nothing is allowed by ${missing.length === 1 ? "it" : "them"}`,
      rows: [],
    },
  ];
}

/** Several resources of one command are described with what was read once. */
const readings = new WeakMap<Datastore, Promise<PolicyResources>>();

export function policyResourcesIn(store: Datastore): Promise<PolicyResources> {
  const known = readings.get(store);
  if (known !== undefined) return known;
  const reading = readPolicy(store).then(({ resources }) => resources);
  readings.set(store, reading);
  return reading;
}

function whyNone(policy: AnyPolicy): string {
  const { kind, metadata } = policy;
  const noun = isBeforeRouting(policy) ? "no host endpoint" : "no endpoint";
  const where = metadata.namespace === undefined ? noun : `${noun} of namespace "${metadata.namespace}"`;
  const show = metadata.namespace === undefined ? "-A" : `-n ${metadata.namespace}`;
  const labels = `${identity.adminTool} get workloadendpoints ${show} --show-labels`;
  const hosts = kind === "GlobalNetworkPolicy" ? `, "${identity.adminTool} get hostendpoints --show-labels"` : "";
  return `${where} matches ${criteriaWords(policy)}; see "${labels}"${hosts}`;
}

function criteriaWords(policy: AnyPolicy): string {
  const { selector, serviceAccountSelector } = policy.spec;
  const namespaces = policy.kind === "GlobalNetworkPolicy" ? policy.spec.namespaceSelector : undefined;
  const own = selector?.trim() || "all()";
  const more = [
    ...(namespaces === undefined ? [] : [`namespaceSelector ${namespaces}`]),
    ...(serviceAccountSelector === undefined ? [] : [`serviceAccountSelector ${serviceAccountSelector}`]),
  ];
  const last = more.pop();
  return last === undefined ? own : `${[`selector ${own}`, ...more].join(", ")} and ${last}`;
}

function countWords(endpoints: readonly AnyEndpoint[]): string {
  const hosts = endpoints.filter(({ kind }) => kind === "HostEndpoint").length;
  const parts = [...plural(endpoints.length - hosts, "workload endpoint"), ...plural(hosts, "host endpoint")];
  return parts.join(" and ");
}

function plural(count: number, noun: string): readonly string[] {
  return count === 0 ? [] : [`${count} ${noun}${count === 1 ? "" : "s"}`];
}

function nameOf(endpoint: WorkloadEndpoint | HostEndpoint): string {
  return endpoint.kind === "WorkloadEndpoint" ? titleOf(endpoint) : `hostendpoint/${endpoint.metadata.name}`;
}

const TITLE = { ingress: "Ingress", egress: "Egress" } as const;

function directionSection(endpoint: AnyEndpoint, direction: Direction, resources: PolicyResources): DescribedSection {
  const applying = enforcedPoliciesOf(endpoint, resources, [direction]);
  const title = TITLE[direction];
  if (applying.length === 0) return { title, summary: withoutPolicies(endpoint, direction, resources), rows: [] };
  const stages = Map.groupBy(applying, stageOf);
  const ordered = STAGES.flatMap((stage) =>
    inOrder(stages.get(stage) ?? [], resources).map((policy) => ({ policy, stage })),
  );
  const rows = ordered.map(({ policy, stage }, index) => [
    `${index + 1}.`,
    `tier ${policy.spec.tier}`,
    policyWords(policy),
    ...(stage === "" ? [] : [stage]),
  ]);
  return {
    title,
    summary: `${ordered.length === 1 ? "1 policy applies" : `${ordered.length} policies apply, in this order`}`,
    rows,
  };
}

function withoutPolicies(endpoint: AnyEndpoint, direction: Direction, resources: PolicyResources): string {
  const { profiles = [] } = endpoint.spec;
  const words = profiles.map((name) => {
    const profile = profileNamed(name, resources);
    return profile !== undefined && isOpenBecauseUnedited(profile, endpoint, direction)
      ? `Profile ${quoted(name)} ${UNEDITED_WORDS}`
      : name;
  });
  const deciding = words.length === 0 ? "it has none, so nothing is allowed" : words.join(", ");
  if (isEnforced(endpoint, resources)) return `${profilesDecide(direction)}: ${deciding}`;
  return `nothing is enforced: there is no policy; with one, or with "policy.type" in the network config of its node, the profiles decide: ${deciding}`;
}

/** Whatever the network config of its node says. */
function isEnforced({ kind, spec }: AnyEndpoint, resources: PolicyResources): boolean {
  const { networkPolicies, globalNetworkPolicies, hostEndpoints } = resources;
  return (
    kind === "HostEndpoint" ||
    networkPolicies.length + globalNetworkPolicies.length > 0 ||
    hostEndpoints.some((host) => host.spec.node === spec.node)
  );
}

/** Only of one whose rules do not count as they are written. */
export async function describeProfile(_: Datastore, profile: Profile): Promise<readonly DescribedSection[]> {
  if (!isUneditedNetworkProfile(profile)) return [];
  return [{ title: "Ingress", summary: `it ${UNEDITED_WORDS}`, rows: [] }];
}

/** In the order of their evaluation. */
const STAGES = ["doNotTrack", "preDNAT", ""] as const;

function stageOf(policy: AnyPolicy): (typeof STAGES)[number] {
  if (policy.kind !== "GlobalNetworkPolicy" || !isBeforeRouting(policy)) return "";
  return policy.spec.doNotTrack ? "doNotTrack" : "preDNAT";
}

function policyWords(policy: AnyPolicy): string {
  const { kind, name, namespace } = authoredPolicy(policy);
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}
