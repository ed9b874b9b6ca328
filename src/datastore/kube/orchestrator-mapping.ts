/**
 * The orchestrator's own objects as records, for the controllers: policies and profiles as they are converted, pods and
 * nodes. Nothing here can be written, and nothing of this product need be installed in the API.
 */
import { PluginError } from "../../errors.ts";
import { resourcesPrefix } from "../../model/keys.ts";
import { POD_RECORDS_PREFIX, podRecordKey, podRecordOf } from "../../model/pod-record.ts";
import { quoted } from "../../quote.ts";
import { clusterNodes } from "./cluster-nodes.ts";
import { orchestratorPolicies } from "./derived-policies.ts";
import { derivedProfiles } from "./derived-profiles.ts";
import type { KindMapping } from "./kind-mapping.ts";

export function orchestratorMapping(): readonly KindMapping[] {
  const pods: KindMapping = {
    prefix: POD_RECORDS_PREFIX,
    path: () => undefined,
    collections: () => [{ path: "/api/v1/pods" }],
    record: (pod) => ({ key: podRecordKey(pod.metadata), value: JSON.stringify(podRecordOf(pod)) }),
    create: refuse,
    update: refuse,
    remove: refuse,
  };
  return [orchestratorPolicies(resourcesPrefix("networkpolicies")), ...derivedProfiles, pods, clusterNodes];
}

function refuse(key: string): never {
  throw new PluginError("internal", `Cannot write ${quoted(key)}: it is an object of the orchestrator`);
}
