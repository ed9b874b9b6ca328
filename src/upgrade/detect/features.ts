/** What some of the steps are for: application layer policy, host endpoints and the policy of an earlier upgrade. */
import { usesSidecars } from "../../alp/upgrade/read-mesh.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { identity } from "../../identity.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { UPGRADE_POLICY } from "../../model/upgrade-policy.ts";
import type { Facts, Storage } from "../engine/facts.ts";
import { FORMER_AGENT_CONFIGURATION, isSpoofingAllowed, SOURCE_SPOOFING } from "../former-names.ts";
import { type ProductResource, productResources } from "./product-resources.ts";

const CREATED_BY = `${identity.labelPrefix}created-by`;

export type Features = Pick<Facts, "hasApplicationLayerPolicy" | "hostEndpoints" | "hasUpgradePolicy"> &
  Required<Pick<Facts, "allowsSourceSpoofing" | "otherHostEndpoints">>;

export async function readFeatures(
  storage: Storage,
  sources: { readonly objects: ClusterObjects; readonly store: Datastore | undefined },
): Promise<Features> {
  const [endpoints, policies, settings, hasSidecars] = await Promise.all([
    productResources("hostendpoints", storage, sources),
    productResources("globalnetworkpolicies", storage, sources),
    // Where the storage has moved, the switch has been carried over.
    storage === "current" ? [] : productResources(FORMER_AGENT_CONFIGURATION.plural, storage, sources),
    usesSidecars(sources.objects),
  ]);
  const byHand = endpoints.filter(({ labels }) => labels[CREATED_BY] === undefined);
  return {
    hasApplicationLayerPolicy: hasSidecars,
    allowsSourceSpoofing: settings.some(
      ({ name, spec }) => name === "default" && isSpoofingAllowed(spec[SOURCE_SPOOFING.field]),
    ),
    hostEndpoints: byHand.filter(isOfAllInterfaces).map(({ name }) => name),
    otherHostEndpoints: byHand.filter((each) => !isOfAllInterfaces(each)).map(({ name }) => name),
    hasUpgradePolicy: policies.some(({ name }) => name === UPGRADE_POLICY || name === `default.${UPGRADE_POLICY}`),
  };
}

function isOfAllInterfaces({ spec }: ProductResource): boolean {
  return spec["interfaceName"] === "*";
}
