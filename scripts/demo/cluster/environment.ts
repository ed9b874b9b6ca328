/** The cluster of the demo: a control plane, to which the steps add two nodes with the built programs. */
import {
  openProductControlPlane,
  type ProductControlPlane,
  type ProductNetworkPlan,
} from "../../../test/support/kube-product.ts";
import { type Pods, podsOn } from "../../../test/support/pods-in-namespace.ts";
import type { ProductNode } from "../../../test/support/product-nodes.ts";
import type { StepResult } from "../output.ts";

export type ClusterStore = ProductNetworkPlan["datastore"];

export interface ClusterEnvironment extends StepResult {
  readonly store: ClusterStore;
  readonly cluster: ProductControlPlane;
  readonly pods: Pods;
  close(): Promise<void>;
}

export type TwoNodes = readonly [ProductNode, ProductNode];

const PLAN = { families: "dual stack", tunnels: "VXLAN", policy: "k8s" } as const;

export async function openCluster(store: ClusterStore): Promise<ClusterEnvironment> {
  const cluster = await openProductControlPlane({ datastore: store, ...PLAN });
  const version = JSON.parse(await cluster.server.kubectl(["version", "--output=json"])) as KubectlVersion;
  return {
    store,
    cluster,
    pods: podsOn(cluster.server),
    close: async () => cluster[Symbol.asyncDispose](),
    summary: `etcd and Kubernetes ${version.serverVersion.gitVersion} on a private host`,
  };
}

interface KubectlVersion {
  readonly serverVersion: { readonly gitVersion: string };
}
