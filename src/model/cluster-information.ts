/** ClusterInformation: the identity of the cluster, and whether its datastore may be used. */
import * as v from "valibot";
import { identity, PRODUCT_API } from "../identity.ts";
import { defineResource, type Resource } from "./resource.ts";

/** `vendorVersion`: the field contains the product's name. */
const VERSION_FIELD = `${identity.product}Version`;

const specSchema = v.object({
  clusterGUID: v.exactOptional(v.string()),
  clusterType: v.exactOptional(v.string()),
  variant: v.exactOptional(v.string()),
  [VERSION_FIELD]: v.exactOptional(v.string()),
  /** UID of the namespace `kube-system` of the cluster that the datastore belongs to; absent until it is known. */
  kubeSystemUID: v.exactOptional(v.string()),
  /** Only `false` means that the datastore is not ready; absent means ready. */
  datastoreReady: v.exactOptional(v.boolean()),
});

export interface ClusterInformationSpec {
  readonly clusterGUID?: string;
  readonly clusterType?: string;
  readonly variant?: string;
  readonly datastoreReady?: boolean;
  readonly kubeSystemUID?: string;
}
export type ClusterInformation = Resource<"ClusterInformation", ClusterInformationSpec>;

export const clusterInformation = defineResource({
  kind: "ClusterInformation",
  api: PRODUCT_API,
  namespaced: false,
  onlyName: "default",
  spec: specSchema,
  complete: (spec): ClusterInformationSpec => spec as ClusterInformationSpec,
});

/** The release that last initialized or upgraded the datastore. */
export function clusterVersion({ spec }: ClusterInformation): string | undefined {
  const version: unknown = Reflect.get(spec, VERSION_FIELD);
  return typeof version === "string" ? version : undefined;
}

export function withClusterVersion(information: ClusterInformation, version: string): ClusterInformation {
  return { ...information, spec: { ...information.spec, [VERSION_FIELD]: version } };
}
