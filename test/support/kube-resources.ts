/** Definitions of custom resources that accept anything, for tests that are not about their schema. */
import { PRODUCT_API } from "../../src/identity.ts";
import { INTERNAL_KINDS, PUBLIC_KINDS } from "../../src/model/kinds.ts";
import type { ApiServer } from "./kube-apiserver.ts";

/** What the API itself has instead. */
const NOT_CUSTOM = ["nodes", "profiles", "workloadendpoints"];

/** Defines our kinds, and waits until the API server serves them. */
export async function defineOwnResources(server: Pick<ApiServer, "apply" | "kubectl">): Promise<void> {
  const kinds = [...PUBLIC_KINDS, ...INTERNAL_KINDS].filter(({ plural }) => !NOT_CUSTOM.includes(plural));
  const items = kinds.map((kind) => customResource({ ...kind, ...PRODUCT_API }));
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  await server.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]);
}

interface ResourcePlan {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

export function customResource({ group, version, plural, kind, namespaced }: ResourcePlan) {
  const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: namespaced ? "Namespaced" : "Cluster",
      names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: [{ name: version, served: true, storage: true, schema: { openAPIV3Schema: anything } }],
    },
  };
}
