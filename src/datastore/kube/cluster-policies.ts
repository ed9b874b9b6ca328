/**
 * ClusterNetworkPolicies of the orchestrator, converted on every read; they cannot be written here. Their definition belongs to
 * somebody else: it may be absent, appear and go.
 *
 *   globalnetworkpolicies/NAME        vendor.org                             GlobalNetworkPolicy
 *   globalnetworkpolicies/kcnp.NAME   policy.networking.k8s.io/v1alpha2      ClusterNetworkPolicy, converted
 */
import { CLUSTER_POLICY, clusterPolicyName, convertClusterPolicy } from "../../model/cluster-network-policy.ts";
import {
  CLUSTER_POLICY_STATUSES_PREFIX,
  clusterPolicyStatusKey,
  clusterPolicyStatusOf,
  conditionsWith,
  readClusterPolicyStatus,
} from "../../model/cluster-policy-status.ts";
import { nameInKey, parseKey, resourceKey } from "../../model/keys.ts";
import { isObject } from "../../model/shape.ts";
import type { ApiObject } from "./api.ts";
import { withDerivedRecords } from "./derived-policies.ts";
import { type Collection, type KindMapping, type ObjectRecord, readOnly } from "./kind-mapping.ts";
import { isObjectName } from "./object-names.ts";

const PLURAL = "globalnetworkpolicies";
export const CLUSTER_POLICIES: Collection = {
  path: "/apis/policy.networking.k8s.io/v1alpha2/clusternetworkpolicies",
  isOptional: true,
};

/** `own`: the mapping of the custom resources. */
export function withClusterPolicies(own: KindMapping): KindMapping {
  return withDerivedRecords(own, {
    owns: (name) => clusterPolicyName(name) !== undefined,
    path: derivedPath,
    collection: () => CLUSTER_POLICIES,
    record: derivedRecord,
    refusal: {
      state: `policies named ${CLUSTER_POLICY}* are derived from its ClusterNetworkPolicies`,
      details: "change the ClusterNetworkPolicy of policy.networking.k8s.io with kubectl, or use another name",
    },
  });
}

/** The orchestrator's policies alone, for whoever copies them. `prefix`: of the kind. */
export function clusterPolicies(prefix: string): KindMapping {
  return {
    prefix,
    path: derivedPath,
    collections: () => [CLUSTER_POLICIES],
    record: derivedRecord,
    ...readOnly("it is a policy of the orchestrator"),
  };
}

/** What their statuses say, which alone can be written. */
export function clusterPolicyStatuses(now: () => Date): KindMapping {
  const { create, remove } = readOnly("it is an object of the orchestrator");
  const pathOf = (key: string) => `${CLUSTER_POLICIES.path}/${nameInKey(key)}`;
  return {
    prefix: CLUSTER_POLICY_STATUSES_PREFIX,
    path: pathOf,
    collections: () => [CLUSTER_POLICIES],
    record: (object) => ({
      key: clusterPolicyStatusKey(object.metadata.name),
      value: JSON.stringify(clusterPolicyStatusOf(object)),
    }),
    ...{ create, remove },
    neededStatus: (status) => (isObject(status) ? { conditions: status["conditions"] } : {}),
    update: (key, value, existing) => {
      const { wanted } = readClusterPolicyStatus(value, key);
      const { uid, resourceVersion } = existing.metadata;
      const conditions = conditionsWith(existing["status"], wanted, now());
      return {
        request: {
          method: "PATCH",
          path: `${pathOf(key)}/status`,
          contentType: "application/merge-patch+json",
          body: JSON.stringify({ metadata: { uid, resourceVersion }, status: { conditions } }),
        },
        isResult: (object) => Bun.deepEquals(clusterPolicyStatusOf(object).present, wanted),
      };
    },
  };
}

function derivedRecord(object: ApiObject): ObjectRecord {
  const policy = convertClusterPolicy(object);
  return { key: resourceKey(PLURAL, policy.metadata), value: JSON.stringify(policy) };
}

function derivedPath(key: string): string | undefined {
  const parts = parseKey(key);
  const name = parts?.kind === "resource" ? clusterPolicyName(parts.name) : undefined;
  return name !== undefined && isObjectName(name) ? `${CLUSTER_POLICIES.path}/${name}` : undefined;
}
