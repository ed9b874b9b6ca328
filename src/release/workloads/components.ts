/** The objects of all components, in the order in which they are applied: accounts before the pods that use them. Pure. */
import { identity } from "../../identity.ts";
import { admissionObjects } from "../admission/policies.ts";
import type { KubeObject } from "../kube-object.ts";
import { accountObjects } from "./accounts.ts";
import { consoleObjects } from "./console.ts";
import { controllersDeployment, controllersDisruptionBudget } from "./controllers-deployment.ts";
import { flowApiObjects } from "./flow-api.ts";
import { NETWORK_CONFIG_KEY, NETWORK_CONFIG_MAP } from "./names.ts";
import { networkList } from "./network-list.ts";
import { nodeDaemonSet } from "./node-daemon-set.ts";
import { type RenderPlan, withLabels } from "./render-plan.ts";

export function componentObjects(plan: RenderPlan): readonly KubeObject[] {
  const config = networkConfigMap(plan);
  const objects = [
    ...accountObjects(plan),
    config,
    ...csiDriver(plan),
    nodeDaemonSet(plan, config),
    controllersDisruptionBudget(plan),
    controllersDeployment(plan),
    ...flowApi(plan),
    ...(plan.installation.console.mode === "Enabled" ? consoleObjects(plan) : []),
    ...admissionObjects(plan.installation),
  ];
  return objects.map((object) => withLabels(object, plan.labels));
}

function flowApi({ installation: { flows, admissionPolicies }, facts }: RenderPlan): readonly KubeObject[] {
  if (flows.mode === "Disabled") return [];
  return flowApiObjects(facts.namespace, { limitsNodes: admissionPolicies.nodeAccounts });
}

function networkConfigMap({ installation, facts }: RenderPlan): KubeObject {
  const list = networkList(installation, facts);
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: NETWORK_CONFIG_MAP, namespace: facts.namespace },
    data: { [NETWORK_CONFIG_KEY]: `${JSON.stringify(list, undefined, 2)}\n` },
  };
}

/**
 * How the kubelet is to use the CSI driver that the node agents serve: only for volumes that a pod declares itself. None if the
 * Installation turns the driver off.
 */
function csiDriver({ installation }: RenderPlan): readonly KubeObject[] {
  if (installation.kubeletDirectory === undefined) return [];
  return [
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSIDriver",
      metadata: {
        name: identity.csiDriver,
        // The volume gives a pod nothing of the host: a cluster that checks volumes may let every namespace use it.
        labels: { "security.kubernetes.io/csi-ephemeral-volume-profile": "restricted" },
      },
      spec: {
        attachRequired: false,
        podInfoOnMount: true,
        volumeLifecycleModes: ["Ephemeral"],
        // The directory belongs to the node agent: the kubelet must not change its owner.
        fsGroupPolicy: "None",
      },
    },
  ];
}
