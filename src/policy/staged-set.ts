/**
 * The resources as they would be if every staged policy were promoted: what the judge is asked with, and what previews compare.
 * Nothing that enforces policy reads this. Pure.
 */
import { identity } from "../identity.ts";
import { type GlobalNetworkPolicy, globalNetworkPolicy } from "../model/global-network-policy.ts";
import type { Metadata } from "../model/metadata.ts";
import { type NetworkPolicy, networkPolicy } from "../model/network-policy.ts";
import { ORCHESTRATOR_POLICY } from "../model/orchestrator-policy.ts";
import type { StagedGlobalNetworkPolicy } from "../model/staged-global-network-policy.ts";
import { convertStaged, type StagedKubernetesNetworkPolicy } from "../model/staged-kubernetes-network-policy.ts";
import type { StagedNetworkPolicy } from "../model/staged-network-policy.ts";
import type { AnyPolicy, PolicyResources } from "./judge/resources.ts";

export type StagedPolicy = StagedNetworkPolicy | StagedGlobalNetworkPolicy | StagedKubernetesNetworkPolicy;

/** What promoting a staged policy does to the enforced one. */
export type Promotion =
  | { readonly kind: "set"; readonly policy: AnyPolicy }
  | { readonly kind: "delete"; readonly policy: PolicyName };

export interface PolicyName {
  readonly kind: AnyPolicy["kind"];
  readonly name: string;
  readonly namespace?: string;
}

export interface StagedSet {
  readonly resources: PolicyResources;
  /** Whether a policy of this name is written or deleted. */
  readonly isStaged: (policy: { readonly kind: string; readonly name: string; readonly namespace?: string }) => boolean;
}

export function stagedSet(resources: PolicyResources, staged: readonly StagedPolicy[]): StagedSet {
  const promotions = staged.map(promotionOf);
  const touched = new Set(promotions.map((promotion) => nameKey(nameOf(promotion))));
  const isStaged: StagedSet["isStaged"] = (policy) => touched.has(nameKey(policy));
  const written = promotions.flatMap((each) => (each.kind === "set" ? [each.policy] : []));
  const kept = <Policy extends AnyPolicy>(policies: readonly Policy[]) =>
    policies.filter(({ kind, metadata }) => !isStaged({ ...metadata, kind }));
  return {
    isStaged,
    resources: {
      ...resources,
      networkPolicies: [
        ...kept(resources.networkPolicies),
        ...written.filter((policy): policy is NetworkPolicy => policy.kind === "NetworkPolicy"),
      ],
      globalNetworkPolicies: [
        ...kept(resources.globalNetworkPolicies),
        ...written.filter((policy): policy is GlobalNetworkPolicy => policy.kind === "GlobalNetworkPolicy"),
      ],
    },
  };
}

export function promotionOf(staged: StagedPolicy): Promotion {
  const name = enforcedName(staged);
  if (staged.spec.stagedAction === "Delete") return { kind: "delete", policy: name };
  return { kind: "set", policy: enforced(staged) };
}

export function nameOf({ policy }: Promotion): PolicyName {
  if (!("metadata" in policy)) return policy;
  return named(policy.kind, policy.metadata);
}

function enforcedName({ kind, metadata }: StagedPolicy): PolicyName {
  switch (kind) {
    case "StagedNetworkPolicy":
      return named("NetworkPolicy", metadata);
    case "StagedGlobalNetworkPolicy":
      return named("GlobalNetworkPolicy", metadata);
    case "StagedKubernetesNetworkPolicy":
      return named("NetworkPolicy", { ...metadata, name: `${ORCHESTRATOR_POLICY}${metadata.name}` });
  }
}

function enforced(staged: StagedPolicy): AnyPolicy {
  switch (staged.kind) {
    case "StagedNetworkPolicy": {
      const { stagedAction: _, ...spec } = staged.spec;
      return networkPolicy.make(enforcedMetadata(staged.metadata), spec);
    }
    case "StagedGlobalNetworkPolicy": {
      const { stagedAction: _, ...spec } = staged.spec;
      return globalNetworkPolicy.make(enforcedMetadata(staged.metadata), spec);
    }
    case "StagedKubernetesNetworkPolicy":
      return convertStaged({ ...staged, metadata: enforcedMetadata(staged.metadata) });
  }
}

/** It is another object: what the datastore, the product and kubectl say of the staged one does not hold for it. */
export function enforcedMetadata({ name, namespace, labels, annotations = {} }: Metadata): Metadata {
  const own = Object.entries(annotations).filter(
    ([annotation]) => !annotation.startsWith(KUBECTL) && !annotation.startsWith(identity.labelPrefix),
  );
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(labels === undefined ? {} : { labels }),
    ...(own.length === 0 ? {} : { annotations: Object.fromEntries(own) }),
  };
}

const KUBECTL = "kubectl.kubernetes.io/";

function named(kind: AnyPolicy["kind"], { name, namespace }: Pick<Metadata, "name" | "namespace">): PolicyName {
  return { kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

function nameKey({
  kind,
  name,
  namespace = "",
}: {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}): string {
  return `${kind} ${namespace}/${name}`;
}
