/** A CustomResourceDefinition, from what is known of a kind. Pure. */
import { type GroupVersion, identity } from "../../identity.ts";
import type { KubeObject } from "../kube-object.ts";
import type { StructuralSchema } from "./crd-schema.ts";
import type { Column } from "./kind.ts";

export interface DefinedKind {
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly namespaced: boolean;
  readonly api: GroupVersion;
  /** `kubectl get vendor` lists everything that users apply. */
  readonly isForUsers: boolean;
  readonly columns: readonly Column[];
  readonly schema: StructuralSchema;
  /** The status is written on its own, and only there. */
  readonly hasStatusResource?: true;
}

const AGE: Column = { name: "Age", path: ".metadata.creationTimestamp", type: "date" };

export function customResourceDefinition(defined: DefinedKind): KubeObject {
  const { kind, plural, shortNames, api } = defined;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${api.group}` },
    spec: {
      group: api.group,
      scope: defined.namespaced ? "Namespaced" : "Cluster",
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        ...(shortNames.length === 0 ? {} : { shortNames }),
        ...(defined.isForUsers ? { categories: [identity.product] } : {}),
      },
      versions: [
        {
          name: api.version,
          served: true,
          storage: true,
          ...(defined.hasStatusResource ? { subresources: { status: {} } } : {}),
          additionalPrinterColumns: [...defined.columns, AGE].map(printerColumn),
          schema: { openAPIV3Schema: defined.schema },
        },
      ],
    },
  };
}

function printerColumn({ name, path, type = undefined, isWide = undefined }: Column): object {
  return { name, type: type ?? "string", jsonPath: path, ...(isWide ? { priority: 1 } : {}) };
}
