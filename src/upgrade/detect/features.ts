/** What some of the steps are for: application layer policy, host endpoints and the policy of an earlier upgrade. */
import type { Datastore } from "../../datastore/datastore.ts";
import { identity } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { UPGRADE_POLICY } from "../../model/global-network-policy.ts";
import { isObject } from "../../model/shape.ts";
import type { Facts, Storage } from "../engine/facts.ts";
import { FORMER_AGENT_CONFIGURATION, FORMER_SIDECAR, isSpoofingAllowed, SOURCE_SPOOFING } from "../former-names.ts";
import { type ProductResource, productResources } from "./product-resources.ts";
import { fieldsAt } from "./snapshot.ts";

const CREATED_BY = `${identity.labelPrefix}created-by`;
const SIDECARS: readonly string[] = [FORMER_SIDECAR, identity.sidecar];
const MESH_NAMESPACE = "istio-system";

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
    hasApplicationLayerPolicy(sources.objects),
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

async function hasApplicationLayerPolicy(objects: ClusterObjects): Promise<boolean> {
  const maps = await objects.list(`/api/v1/namespaces/${MESH_NAMESPACE}/configmaps`);
  const isInTemplate = maps.some((map) => {
    const { name } = fieldsAt(map, "metadata");
    if (!String(name).startsWith("istio-sidecar-injector")) return false;
    const text = JSON.stringify(map["data"] ?? {});
    return SIDECARS.some((sidecar) => text.includes(sidecar));
  });
  return isInTemplate || (await objects.list("/api/v1/pods")).some(hasSidecar);
}

function hasSidecar(pod: Fields): boolean {
  const { containers, initContainers } = fieldsAt(pod, "spec");
  return [containers, initContainers].some(
    (list) => Array.isArray(list) && list.some((item) => isObject(item) && SIDECARS.includes(String(item["name"]))),
  );
}
