/** What a policy refers to must exist: its tier, and services in a datastore that knows them. */
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach } from "../../datastore/read-each.ts";
import { BUILT_IN_TIERS, DEFAULT_TIER } from "../../model/built-in-tiers.ts";
import type { GlobalNetworkPolicy } from "../../model/global-network-policy.ts";
import { type PublicKind, TIER } from "../../model/kinds.ts";
import type { NetworkPolicy } from "../../model/network-policy.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import type { Problem } from "../../model/problem.ts";
import type { StagedGlobalNetworkPolicy } from "../../model/staged-global-network-policy.ts";
import type { StagedNetworkPolicy } from "../../model/staged-network-policy.ts";

type Policy = NetworkPolicy | GlobalNetworkPolicy;
type AnyPolicy = Policy | StagedNetworkPolicy | StagedGlobalNetworkPolicy;

export async function checkPolicyReferences(store: Datastore, { spec }: AnyPolicy): Promise<readonly Problem[]> {
  return [...(await checkTier(store, spec.tier)), ...checkServices(store, spec)];
}

async function checkTier(store: Datastore, name: string): Promise<readonly Problem[]> {
  if (BUILT_IN_TIERS.has(name)) return [];
  const { answers } = await store.read([{ kind: "key", key: TIER.key({ name }) }]);
  if (answers[0]?.length === 1) return [];
  return [
    { path: "spec.tier", value: name, message: `does not exist; create this Tier first, or use "${DEFAULT_TIER}"` },
  ];
}

function checkServices(store: Datastore, spec: AnyPolicy["spec"]): readonly Problem[] {
  if (store.isOrchestratorApi) return [];
  const message =
    "is not supported with this datastore, which does not contain services; use a selector, or the Kubernetes API as the datastore";
  const of = (rules: readonly PolicyRule[] = [], path: string) =>
    rules.flatMap((rule, index) =>
      (["source", "destination"] as const).flatMap((side): Problem[] => {
        const services = rule[side]?.services;
        return services === undefined ? [] : [{ path: `${path}[${index}].${side}.services`, value: services, message }];
      }),
    );
  return [...of(spec.ingress, "spec.ingress"), ...of(spec.egress, "spec.egress")];
}

/** The policies of a kind with their tiers; unreadable ones are left out. */
export async function policyTiers(
  store: Datastore,
  kind: PublicKind<NetworkPolicy> | PublicKind<GlobalNetworkPolicy>,
): Promise<readonly { readonly reference: string; readonly tier: string }[]> {
  const entries = await readAllEntries(store, kind.prefix());
  return readEach(entries, ({ key, value }): Policy => kind.codec.read(value, key)).readable.map(
    ({ metadata, spec }) => ({
      reference: [kind.kind.toLowerCase(), metadata.namespace, metadata.name].filter(Boolean).join("/"),
      tier: spec.tier,
    }),
  );
}
