/** GlobalNetworkPolicy: rules for endpoints of all namespaces, and for the hosts themselves. */

import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { findEmptyCriteria } from "./empty-criteria.ts";
import { selectorField } from "./fields.ts";
import type { Metadata } from "./metadata.ts";
import { checkPolicy, policyFields, typesOf } from "./policy-spec.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";

export const globalPolicyFields = {
  ...policyFields,
  namespaceSelector: v.exactOptional(selectorField),
  doNotTrack: v.optional(v.boolean(), false),
  preDNAT: v.optional(v.boolean(), false),
  applyOnForward: v.optional(v.boolean(), false),
};

const specSchema = v.object(globalPolicyFields);

export type GlobalNetworkPolicySpec = Readonly<v.InferOutput<typeof specSchema>>;
export type GlobalNetworkPolicy = Resource<"GlobalNetworkPolicy", GlobalNetworkPolicySpec>;

export const globalNetworkPolicy = defineResource({
  kind: "GlobalNetworkPolicy",
  api: PRODUCT_API,
  namespaced: false,
  spec: v.optional(specSchema, {}),
  findEmpty: findEmptyCriteria,
  complete: (spec): GlobalNetworkPolicySpec => spec,
  check: checkGlobalPolicy,
});

export function checkGlobalPolicy(spec: GlobalNetworkPolicySpec, metadata: Metadata): readonly Problem[] {
  return [...checkPolicy(spec, metadata, "global"), ...checkHostOptions(spec)];
}

/** The rules of the CRD have the same ones. */
export const HOST_OPTION_MESSAGES = {
  both: "cannot be combined with doNotTrack; use two policies",
  needsForward: "needs applyOnForward; set applyOnForward: true",
  egress: "cannot be combined with preDNAT, which acts on incoming packets only; remove the egress rules",
  http: "cannot be combined with doNotTrack or preDNAT; use another policy for it",
} as const;

/** Both options act before a packet is known to be for the host or to be forwarded. */
function checkHostOptions(spec: GlobalNetworkPolicySpec): readonly Problem[] {
  const { doNotTrack, preDNAT, applyOnForward } = spec;
  const problems: Problem[] = [];
  if (doNotTrack && preDNAT) {
    problems.push({ path: "spec.preDNAT", value: true, message: HOST_OPTION_MESSAGES.both });
  }
  for (const field of ["doNotTrack", "preDNAT"] as const) {
    if (!spec[field] || applyOnForward) continue;
    problems.push({ path: `spec.${field}`, value: true, message: HOST_OPTION_MESSAGES.needsForward });
  }
  if (preDNAT && typesOf(spec).includes("Egress")) {
    problems.push({ path: "spec.egress", value: spec.egress, message: HOST_OPTION_MESSAGES.egress });
  }
  return [...problems, ...checkHttp(spec)];
}

/** Such policies decide before the workload, and with it its sidecar, is known. */
function checkHttp({ ingress = [], doNotTrack, preDNAT }: GlobalNetworkPolicySpec): readonly Problem[] {
  if (!doNotTrack && !preDNAT) return [];
  return ingress.flatMap(({ http }, index) =>
    http === undefined
      ? []
      : [{ path: `spec.ingress[${index}].http`, value: http, message: HOST_OPTION_MESSAGES.http }],
  );
}
