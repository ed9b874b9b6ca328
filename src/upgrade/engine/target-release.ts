/** What the release that the cluster is upgraded to consists of. The admin tool brings it along. */
import type { KubeObject } from "../../release/kube-object.ts";
import type { ManifestNetwork } from "./facts.ts";

export interface TargetRelease {
  /** `v3.29.0` */
  readonly version: string;
  /** CustomResourceDefinitions of `vendor.org/v3`. */
  readonly definitions: readonly KubeObject[];
  /** Those of the operator's own API. */
  readonly operatorDefinitions: readonly KubeObject[];
  /** Everything of the operator's manifest besides definitions, in the order of application. */
  readonly operator: readonly KubeObject[];
  /** The operator's Helm chart: the text of each file, by its name. */
  chart(): Readonly<Record<string, string>>;
  /** A manifest without the operator: `settings` are what an administrator edits. */
  manifest(variant: { readonly datastore: "kubernetes" | "etcd"; readonly network: ManifestNetwork }): {
    readonly settings: readonly KubeObject[];
    readonly components: readonly KubeObject[];
  };
}
