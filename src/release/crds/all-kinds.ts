/**
 * All kinds of a release. One file beside this one for each group of kinds has what their schemas in `src/model` do not say:
 * columns of `kubectl get`, rules in CEL, descriptions. A new kind without a row has no CRD, and a test says so.
 */

import { INTERNAL_KINDS, type InternalKind, PUBLIC_KINDS, type PublicKind } from "../../model/kinds.ts";
import { FIELDS_WITHOUT_EFFECT } from "../../model/without-effect.ts";
import { BGP_KINDS } from "./bgp.ts";
import { CLUSTER_KINDS } from "./cluster.ts";
import { ENDPOINT_KINDS } from "./endpoints.ts";
import { INSTALLATION_DESCRIPTIONS } from "./installation/descriptions.ts";
import { IP_POOL } from "./ip-pool.ts";
import { IPAM_KINDS } from "./ipam.ts";
import { below, type CustomKind, type Descriptions, type ReleasedKinds } from "./kind.ts";
import { KUBE_CONTROLLERS_CONFIGURATION } from "./kube-controllers-configuration.ts";
import { NODE_AGENT_CONFIGURATION } from "./node-agent-configuration.ts";
import { POLICY_KINDS } from "./policies.ts";

const KINDS: ReleasedKinds = {
  ...IP_POOL,
  ...IPAM_KINDS,
  ...CLUSTER_KINDS,
  ...ENDPOINT_KINDS,
  ...POLICY_KINDS,
  ...NODE_AGENT_CONFIGURATION,
  ...KUBE_CONTROLLERS_CONFIGURATION,
  ...BGP_KINDS,
};

const METADATA: Descriptions = {
  "": "Name, labels and other data about the resource",
  name: "Name of the resource, unique for its kind (and namespace)",
  namespace: "Namespace of the resource, if its kind is namespaced",
  uid: "Unique identifier, assigned when the resource is created",
  creationTimestamp: "When the resource was created",
  labels: "Labels that selectors match",
  annotations: "Additional data of users and tools",
  generateName: "Prefix of a generated name; kept, but names are not generated",
  resourceVersion: "Revision in the datastore; a write that contains it fails if the resource has changed since",
  generation: "Number of changes of the spec, counted by Kubernetes",
  finalizers: "What must be done before the resource may be deleted",
  ownerReferences: "Resources that this one belongs to",
  deletionTimestamp: "When the deletion was requested",
  deletionGracePeriodSeconds: "How long the deletion may take",
  managedFields: "Which tool set which field, kept by Kubernetes",
  selfLink: "Path of the resource in the Kubernetes API; deprecated",
};

/** What every kind has. */
const COMMON_DESCRIPTIONS: Descriptions = {
  apiVersion: "API group and version of the kind",
  kind: "Kind of the resource",
  ...below("metadata", METADATA[""] ?? "", METADATA),
};

export interface CustomResource extends CustomKind {
  readonly row: PublicKind | InternalKind;
  readonly describe: (path: string) => string | undefined;
}

export const CUSTOM_RESOURCES: readonly CustomResource[] = [...PUBLIC_KINDS, ...INTERNAL_KINDS].flatMap((row) => {
  const own = KINDS[row.kind];
  if (own === undefined || !("columns" in own)) return [];
  return [{ ...own, row, describe: (path: string) => descriptionInCrd(row.kind, path) }];
});

/** Objects of the orchestrator that stand for a kind, which therefore has no CRD. */
export const ORCHESTRATOR_OBJECTS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(KINDS).flatMap(([kind, own]) => ("columns" in own ? [] : [[kind, own.orchestratorObject]])),
);

/** What a field means. `path`: "" for the kind itself, "spec.cidr". */
export function descriptionOf(kind: string, path: string): string | undefined {
  return (KINDS[kind]?.descriptions ?? INSTALLATION_DESCRIPTIONS[kind])?.[path] ?? COMMON_DESCRIPTIONS[path];
}

/** Says also that a field has no effect yet: `kubectl apply` cannot warn about it. */
function descriptionInCrd(kind: string, path: string): string | undefined {
  const text = descriptionOf(kind, path);
  const row = FIELDS_WITHOUT_EFFECT.find((each) => each.kind === kind && `spec.${each.field}` === path);
  return row === undefined ? text : `${text}. No effect in this version: ${row.consequence}`;
}
