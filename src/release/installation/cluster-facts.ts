/** What rendering and defaults depend on besides the Installation: what the operator found in the cluster. */
import type { IPPool } from "../../model/ip-pool.ts";

export interface ClusterFacts {
  /** The release to install: that of the operator itself. */
  readonly version: string;
  /** Where the components run. */
  readonly namespace: string;
  /** All pools of the datastore; `managed` ones carry the operator's label. */
  readonly pools: readonly IPPool[];
  /** The pools of the datastore could not be read here: references to them are not checked. */
  readonly arePoolsUnknown?: boolean;
  /** Of the platform (kubeadm's `podSubnet`); empty if it is not known. */
  readonly platformPodCidrs: readonly string[];
  /** Overrides the address of the API server, for clusters without kube-proxy. */
  readonly apiEndpoint?: { readonly host: string; readonly port: string };
  /** Changes whenever the Secret of etcd's certificates does, so that the pods are replaced. */
  readonly etcdSecretHash?: string;
  /** Which of `etcd-ca`, `etcd-cert` and `etcd-key` that Secret has, not empty; absent: all of them. */
  readonly etcdSecretKeys?: readonly string[];
}
