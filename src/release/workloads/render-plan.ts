/** What the objects of every way of installation (the operator, a manifest) are rendered from. */
import type { ClusterFacts } from "../installation/cluster-facts.ts";
import type { EffectiveInstallation } from "../installation/effective-installation.ts";
import type { KubeObject } from "../kube-object.ts";
import type { Rule } from "../roles/rules.ts";

export type EnvironmentVariable =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly valueFrom: object };

/** Variables with which containers reach etcd; none with another datastore. */
export interface EtcdAccess {
  readonly endpoints: readonly EnvironmentVariable[];
  /** Instead of them; not for the installation of a node, whose network config has the domain already. */
  readonly discovery: readonly EnvironmentVariable[];
  /** The paths of certificates and key in the container. */
  readonly files: readonly EnvironmentVariable[];
}

export interface RenderPlan {
  readonly installation: EffectiveInstallation;
  readonly facts: ClusterFacts;
  /** Of every object. */
  readonly labels: Readonly<Record<string, string>>;
  readonly etcd: EtcdAccess;
  /** In addition to what every installation has. */
  readonly node: {
    /** Of both containers of the node, and of its init container alone. */
    readonly environment: readonly EnvironmentVariable[];
    readonly installEnvironment: readonly EnvironmentVariable[];
    readonly rules: readonly Rule[];
  };
  /** What the controllers do besides: they serve the API of flows, and keep the certificate of the console. */
  readonly controllers: readonly EnvironmentVariable[];
  /** Of the console: which Prometheus it asks. */
  readonly console: readonly EnvironmentVariable[];
  /** `envFrom` of every container. */
  readonly environmentFrom: readonly object[];
}

export function withLabels(object: KubeObject, labels: Readonly<Record<string, string>>): KubeObject {
  return { ...object, metadata: { ...object.metadata, labels: { ...object.metadata.labels, ...labels } } };
}
