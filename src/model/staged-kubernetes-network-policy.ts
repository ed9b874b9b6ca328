/**
 * StagedKubernetesNetworkPolicy: a NetworkPolicy of the orchestrator (`networking.k8s.io`) that is tried, not enforced. Its fields
 * are those of the orchestrator, and it is converted as one.
 */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { nameMap } from "./name-map.ts";
import { convertPolicy, NOT_CONVERTED_ANNOTATION } from "./orchestrator-policy.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";
import { checkDeletion, stagedActionField } from "./staged-action.ts";

// Fields that are not known are kept, and mean that a rule allows nothing: they may be criteria of a newer release.
const labelSelector = v.looseObject({
  matchLabels: v.exactOptional(nameMap(v.string())),
  matchExpressions: v.exactOptional(
    v.array(
      v.looseObject({
        key: v.string(),
        operator: v.picklist(["In", "NotIn", "Exists", "DoesNotExist"]),
        values: v.exactOptional(v.array(v.string())),
      }),
    ),
  ),
});

/** A number, or the name of a port of the pod. */
export const stagedPortField = v.union([v.number(), v.string()]);

const ports = v.array(
  v.looseObject({
    protocol: v.exactOptional(v.picklist(["TCP", "UDP", "SCTP"])),
    port: v.exactOptional(stagedPortField),
    endPort: v.exactOptional(v.number()),
  }),
);

const peers = v.array(
  v.looseObject({
    podSelector: v.exactOptional(labelSelector),
    namespaceSelector: v.exactOptional(labelSelector),
    ipBlock: v.exactOptional(v.looseObject({ cidr: v.string(), except: v.exactOptional(v.array(v.string())) })),
  }),
);

const specSchema = v.object({
  stagedAction: stagedActionField,
  podSelector: v.exactOptional(labelSelector),
  policyTypes: v.exactOptional(v.array(v.picklist(["Ingress", "Egress"]))),
  ingress: v.exactOptional(v.array(v.looseObject({ ports: v.exactOptional(ports), from: v.exactOptional(peers) }))),
  egress: v.exactOptional(v.array(v.looseObject({ ports: v.exactOptional(ports), to: v.exactOptional(peers) }))),
});

export type StagedKubernetesNetworkPolicySpec = Readonly<v.InferOutput<typeof specSchema>>;
export type StagedKubernetesNetworkPolicy = Resource<
  "StagedKubernetesNetworkPolicy",
  StagedKubernetesNetworkPolicySpec
>;

export const stagedKubernetesNetworkPolicy = defineResource({
  kind: "StagedKubernetesNetworkPolicy",
  api: PRODUCT_API,
  namespaced: true,
  spec: v.optional(specSchema, {}),
  complete: (spec): StagedKubernetesNetworkPolicySpec => spec,
  check: ({ stagedAction, ...spec }, metadata) => [
    ...(stagedAction === "Delete" ? checkDeletion(spec, []) : []),
    ...checkConversion(convertStaged({ metadata, spec }).metadata.annotations?.[NOT_CONVERTED_ANNOTATION]),
  ],
});

/** As the policy that the enforced one would be converted to. */
export function convertStaged({
  metadata,
  spec,
}: {
  readonly metadata: StagedKubernetesNetworkPolicy["metadata"];
  readonly spec: Omit<StagedKubernetesNetworkPolicySpec, "stagedAction">;
}) {
  return convertPolicy({ metadata, spec: orchestratorSpec(spec) });
}

/** The spec of the enforced policy, with the default that the orchestrator's API would write. */
export function orchestratorSpec({
  podSelector = {},
  policyTypes = [],
  ...rules
}: Omit<StagedKubernetesNetworkPolicySpec, "stagedAction">) {
  const usual = rules.egress === undefined || rules.egress.length === 0 ? ["Ingress"] : ["Ingress", "Egress"];
  return { podSelector, policyTypes: policyTypes.length === 0 ? usual : policyTypes, ...rules };
}

function checkConversion(notConverted: string | undefined): readonly Problem[] {
  if (notConverted === undefined) return [];
  return [{ path: "spec", value: undefined, message: `would not be enforced as it is: ${notConverted}; correct it` }];
}
