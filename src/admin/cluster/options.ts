import type { Option } from "../main/option.ts";
import { MISMATCH_OPTION } from "../version/compare-with-cluster.ts";

export const CLUSTER_OPTIONS: readonly Option[] = [
  {
    name: "kubeconfig",
    value: "FILE",
    summary: "kubeconfig file of the cluster (default: KUBECONFIG, then ~/.kube/config)",
  },
  { name: "context", value: "NAME", summary: "Context of the kubeconfig (default: its current context)" },
  MISMATCH_OPTION,
];
