/** Says on each ClusterNetworkPolicy of the orchestrator what of it is enforced: the one record there that the controllers write. */
import { CLUSTER_POLICY_STATUSES_PREFIX } from "../model/cluster-policy-status.ts";
import { nameInKey } from "../model/keys.ts";
import { quoted } from "../quote.ts";
import type { Controller } from "./controller.ts";

export const clusterPolicyStatusController: Controller = {
  name: "policyStatus",
  follows: { orchestrator: ["clusterPolicyStatuses"], stored: [] },
  keysOf: ({ orchestrator }) => (orchestrator.clusterPolicyStatuses ?? []).map(({ key }) => key),
  allKeys: ({ orchestrator }) => orchestrator.clusterPolicyStatuses.keys(),
  decide: (key, { orchestrator }) => {
    if (!key.startsWith(CLUSTER_POLICY_STATUSES_PREFIX)) return undefined;
    const held = orchestrator.clusterPolicyStatuses.held(key);
    if (held?.kind !== "readable" || Bun.deepEquals(held.value.present, held.value.wanted)) return undefined;
    const { revision, value } = held;
    const reason = `updated the status of ClusterNetworkPolicy ${quoted(nameInKey(key))}`;
    return { changes: [{ kind: "update", key, value: JSON.stringify(value), revision }], reason };
  },
};
