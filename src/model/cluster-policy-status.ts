/**
 * What the status of a ClusterNetworkPolicy says about its enforcement here. Derived from the object on every read. Pure.
 *
 * One condition is ours; those of others stay.
 */
import { convertClusterPolicy } from "./cluster-network-policy.ts";
import { resourceKey, resourcesPrefix } from "./keys.ts";
import { NOT_CONVERTED_ANNOTATION, type OrchestratorPolicy } from "./orchestrator-policy.ts";
import { isObject } from "./shape.ts";
import { parseStored } from "./stored.ts";

const PLURAL = "clusternetworkpolicies";
const TYPE = "Accepted";
/** Of the API. */
const LONGEST_MESSAGE = 32_768;

/** Without the time of its last change. */
export interface PolicyCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
}

export interface ClusterPolicyStatus {
  readonly wanted: PolicyCondition;
  /** `undefined`: it has none of ours yet. */
  readonly present?: PolicyCondition | undefined;
}

export const CLUSTER_POLICY_STATUSES_PREFIX = resourcesPrefix(PLURAL);

export function clusterPolicyStatusKey(name: string): string {
  return resourceKey(PLURAL, { name });
}

/** The text is of `clusterPolicyStatusOf()`, in the same process. */
export function readClusterPolicyStatus(text: string, key: string): ClusterPolicyStatus {
  return parseStored(text, "ClusterNetworkPolicy", key) as ClusterPolicyStatus;
}

export function clusterPolicyStatusOf(object: OrchestratorPolicy & { readonly status?: unknown }): ClusterPolicyStatus {
  const problem = convertClusterPolicy(object).metadata.annotations?.[NOT_CONVERTED_ANNOTATION];
  const { generation } = object.metadata;
  const present = conditionsIn(object.status).find(({ type }) => type === TYPE);
  const { lastTransitionTime: _, ...condition } = present ?? {};
  return {
    wanted: {
      type: TYPE,
      ...(problem === undefined
        ? { status: "True", reason: "Accepted", message: "all rules are enforced" }
        : { status: "False", reason: "NotSupported", message: problem.slice(0, LONGEST_MESSAGE) }),
      ...(typeof generation === "number" ? { observedGeneration: generation } : {}),
    },
    ...(present === undefined ? {} : { present: condition as unknown as PolicyCondition }),
  };
}

/** The time of a condition is that of the last change of its status. */
export function conditionsWith(status: unknown, wanted: PolicyCondition, now: Date): readonly object[] {
  const all = conditionsIn(status);
  const present = all.find(({ type }) => type === TYPE);
  const isSame = present?.["status"] === wanted.status;
  const time = isSame ? present?.["lastTransitionTime"] : undefined;
  const condition = { ...wanted, lastTransitionTime: time ?? `${now.toISOString().slice(0, 19)}Z` };
  return [...all.filter(({ type }) => type !== TYPE), condition];
}

function conditionsIn(status: unknown): readonly Readonly<Record<string, unknown>>[] {
  const { conditions } = isObject(status) ? status : {};
  return Array.isArray(conditions) ? conditions.filter(isObject) : [];
}
