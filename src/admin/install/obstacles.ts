/** What must not be in a cluster that a network is installed in. Pure. */
import { identity } from "../../identity.ts";
import { isObject } from "../../model/shape.ts";
import { UNINSTALL } from "../../release/workloads/names.ts";

/** The DaemonSets by which the agents of other networks are known. */
const OTHER_NETWORKS: Readonly<Record<string, string>> = {
  "calico-node": "Calico",
  canal: "Canal",
  cilium: "Cilium",
  "kube-flannel-ds": "Flannel",
  "kube-flannel": "Flannel",
  "weave-net": "Weave Net",
  "antrea-agent": "Antrea",
  "kube-router": "kube-router",
  kindnet: "kindnet",
  "aws-node": "the VPC CNI of AWS",
  "azure-cni": "Azure CNI",
  "ovnkube-node": "OVN-Kubernetes",
  "kube-ovn-cni": "Kube-OVN",
  "romana-agent": "Romana",
};

export interface Obstacle {
  /** Whether it is this product itself. */
  readonly isOwn: boolean;
  readonly message: string;
  readonly remedy: string;
}

/** `daemonSets`: all of the cluster. */
export function obstaclesIn(daemonSets: readonly unknown[]): readonly Obstacle[] {
  return daemonSets.flatMap((item): readonly Obstacle[] => {
    const metadata = isObject(item) && isObject(item["metadata"]) ? item["metadata"] : {};
    const { name, namespace } = metadata;
    if (typeof name !== "string" || typeof namespace !== "string") return [];
    if (name === identity.nodeAgent && namespace !== identity.systemNamespace) return [ownManifest(namespace, name)];
    const network = Object.hasOwn(OTHER_NETWORKS, name) ? OTHER_NETWORKS[name] : undefined;
    return network === undefined ? [] : [otherNetwork(network, namespace, name)];
  });
}

function ownManifest(namespace: string, name: string): Obstacle {
  return {
    isOwn: true,
    message: `${identity.title} is installed by a manifest already (DaemonSet ${namespace}/${name})`,
    remedy: [
      "remove it first, in this order:",
      ...removalCommands(namespace).map((command) => `  ${command}`),
      "FILE is the manifest that it was installed with; pools, policies and addresses in use are kept",
    ].join("\n"),
  };
}

/** As docs/manifests.md has them. Without the selector the last one would delete the definitions, and all pools with them. */
function removalCommands(namespace: string): readonly string[] {
  const { product, nodeAgent, controllers } = identity;
  const uninstallFile = `${product}-uninstall.yaml`;
  return [
    `kubectl --namespace ${namespace} delete daemonset/${nodeAgent} deployment/${controllers}`,
    `kubectl apply --server-side -f ${uninstallFile}`,
    `kubectl --namespace ${namespace} rollout status daemonset/${UNINSTALL}`,
    `kubectl delete -f ${uninstallFile}`,
    `kubectl delete -f FILE --selector app.kubernetes.io/part-of=${product}`,
  ];
}

function otherNetwork(network: string, namespace: string, name: string): Obstacle {
  return {
    isOwn: false,
    message: `${network} is the network of this cluster (DaemonSet ${namespace}/${name})`,
    remedy: `remove ${network} first, or use the manifest of ${identity.title} for policy with another networking plugin`,
  };
}
