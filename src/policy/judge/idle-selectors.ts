/** Policies, and peers of their rules, that select nothing now, and which word of a selector may be a misspelling. Pure. */
import { isFinished } from "../../model/finished-pods.ts";
import type { EntityRule } from "../../model/policy-rule.ts";
import { parseSelector } from "../../selector/parse.ts";
import { type Labels, labelNamesIn, type Selector, selects } from "../../selector/selector.ts";
import { endpointsOfPolicies, isBeforeRouting } from "./judge.ts";
import { criteriaOf, labelsOf, selectionOf } from "./members.ts";
import type { AnyEndpoint, AnyMember, AnyPolicy, PolicyResources } from "./resources.ts";
import { type UnknownName, withMeant } from "./unknown-names.ts";

/** What nothing has that could be selected. */
export type IdleReason =
  | ({ readonly kind: "label" } & UnknownName)
  /** `name`: a value of the label, which has others. */
  | ({ readonly kind: "value"; readonly label: string; readonly values: readonly string[] } & UnknownName)
  /** `containers`: the namespaces of containers without an orchestrator. */
  | ({ readonly kind: "namespace"; readonly containers: readonly string[] } & UnknownName);

export interface IdlePolicy {
  readonly policy: AnyPolicy;
  /** It can only select host endpoints. */
  readonly isForHosts: boolean;
  /** Looks at all endpoints again. */
  readonly reason: () => IdleReason | undefined;
}

/** Those that are enforced on nothing, neither a workload nor a host. */
export function idlePolicies(policies: readonly AnyPolicy[], resources: PolicyResources): readonly IdlePolicy[] {
  if (policies.length === 0) return [];
  const selectedBy = endpointsOfPolicies(resources);
  const idle = policies.filter((policy) => selectedBy(policy).length === 0);
  if (idle.length === 0) return [];
  const all = endpointsIn(resources);
  const labels = labelsIn(all, resources);
  const ofHosts = labelsIn(resources.hostEndpoints, resources);
  return idle.map((policy) => {
    const isForHosts = isBeforeRouting(policy);
    const known = isForHosts ? ofHosts : labels;
    const reason = () => unknownNamespace(policy, all) ?? unknownWord(policy.spec.selector, known);
    return { policy, isForHosts, reason };
  });
}

export interface IdlePeer {
  readonly policy: AnyPolicy;
  readonly side: "source" | "destination";
  readonly selector: string;
  /** Looks at all members again. */
  readonly reason: () => IdleReason | undefined;
}

/** Selectors of rules that select neither an endpoint nor a network set. */
export function idlePeers(policies: readonly AnyPolicy[], resources: PolicyResources): readonly IdlePeer[] {
  const peers = policies.flatMap(peersOf);
  if (peers.length === 0) return [];
  const { networkSets, globalNetworkSets } = resources;
  const labels = labelsIn([...endpointsIn(resources), ...networkSets, ...globalNetworkSets], resources);
  const isIdleAmong = new Map<string, boolean>();
  return peers
    .filter(({ entity, policy }) => {
      const criteria = criteriaOf(entity, policy.metadata.namespace) ?? {};
      const key = JSON.stringify(criteria);
      const isIdle = isIdleAmong.get(key) ?? !labels.some(selectionOf(criteria));
      isIdleAmong.set(key, isIdle);
      return isIdle;
    })
    .map(({ policy, side, selector }) => ({ policy, side, selector, reason: () => unknownWord(selector, labels) }));
}

type Peer = Pick<IdlePeer, "policy" | "side" | "selector"> & { readonly entity: EntityRule };

function peersOf(policy: AnyPolicy): readonly Peer[] {
  const rules = [...(policy.spec.ingress ?? []), ...(policy.spec.egress ?? [])];
  return rules.flatMap((rule) =>
    (["source", "destination"] as const).flatMap((side): readonly Peer[] => {
      const entity = rule[side] ?? {};
      const selector = entity.selector?.trim() ?? "";
      return selector === "" ? [] : [{ policy, side, selector, entity }];
    }),
  );
}

function endpointsIn({ endpoints, hostEndpoints }: PolicyResources): readonly AnyEndpoint[] {
  return [...endpoints.filter((endpoint) => !isFinished(endpoint)), ...hostEndpoints];
}

function labelsIn(members: readonly AnyMember[], resources: PolicyResources): readonly Labels[] {
  return members.map((member) => labelsOf(member, resources));
}

function unknownNamespace({ metadata }: AnyPolicy, endpoints: readonly AnyEndpoint[]): IdleReason | undefined {
  const { namespace } = metadata;
  const known = new Set(endpoints.flatMap((endpoint) => endpoint.metadata.namespace ?? []));
  if (namespace === undefined || known.has(namespace) || known.size === 0) return undefined;
  const containers = endpoints.filter(({ kind, spec }) => kind === "WorkloadEndpoint" && !("pod" in spec));
  return {
    ...{ kind: "namespace", ...withMeant(namespace, [...known]) },
    containers: [...new Set(containers.flatMap((endpoint) => endpoint.metadata.namespace ?? []))],
  };
}

/** A label that nothing has; otherwise a condition about a label's value that nothing meets. */
function unknownWord(text: string | undefined, known: readonly Labels[]): IdleReason | undefined {
  const parsed = parseSelector(text ?? "");
  if (!parsed.ok) return undefined;
  const names = [...new Set(known.flatMap(Object.keys))];
  const label = labelNamesIn(parsed.selector).find((name) => !names.includes(name));
  if (label !== undefined) return { kind: "label", ...withMeant(label, names) };
  const unmet = valuesIn(parsed.selector).find((condition) => !known.some((labels) => selects(condition, labels)));
  if (unmet === undefined) return undefined;
  const values = [
    ...new Set(known.flatMap((labels) => (Object.hasOwn(labels, unmet.label) ? (labels[unmet.label] ?? []) : []))),
  ].toSorted();
  return { kind: "value", label: unmet.label, values, ...withMeant(unmet.value, values) };
}

interface ValueCondition {
  readonly kind: "compare";
  readonly operator: "==" | "contains" | "starts with" | "ends with";
  readonly label: string;
  readonly value: string;
}

/** The conditions that need a value; one for each value of a list. */
function valuesIn(selector: Selector): readonly ValueCondition[] {
  switch (selector.kind) {
    case "compare":
      return selector.operator === "!=" ? [] : [{ ...selector, operator: selector.operator }];
    case "member":
      return selector.operator === "not in"
        ? []
        : selector.values.map((value) => ({ kind: "compare", operator: "==", label: selector.label, value }));
    case "and":
    case "or":
      return selector.operands.flatMap(valuesIn);
    default:
      return [];
  }
}
