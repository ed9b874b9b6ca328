/**
 * The orchestrator's own objects as records, for the controllers: policies and profiles as they are converted, pods and
 * nodes. Nothing here can be written, and nothing of this product need be installed in the API.
 */
import { resourcesPrefix } from "../../model/keys.ts";
import { clusterNodes } from "./cluster-nodes.ts";
import { orchestratorPolicies } from "./derived-policies.ts";
import { derivedProfiles } from "./derived-profiles.ts";
import type { KindMapping } from "./kind-mapping.ts";
import { podRecords } from "./pod-records.ts";

export function orchestratorMapping(): readonly KindMapping[] {
  return [orchestratorPolicies(resourcesPrefix("networkpolicies")), ...derivedProfiles, podRecords(), clusterNodes];
}
