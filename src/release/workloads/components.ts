/** The objects of all components, in the order in which they are applied: accounts before the pods that use them. Pure. */
import { admissionObjects } from "../admission/policies.ts";
import type { KubeObject } from "../kube-object.ts";
import { accountObjects } from "./accounts.ts";
import { controllersDeployment, controllersDisruptionBudget } from "./controllers-deployment.ts";
import { csiDriver } from "./csi-driver.ts";
import { NETWORK_CONFIG_KEY, NETWORK_CONFIG_MAP } from "./names.ts";
import { networkList } from "./network-list.ts";
import { nodeDaemonSet } from "./node-daemon-set.ts";
import { type RenderPlan, withLabels } from "./plan.ts";

export function componentObjects(plan: RenderPlan): readonly KubeObject[] {
  const config = networkConfigMap(plan);
  const objects = [
    ...accountObjects(plan),
    config,
    ...csiDriver(plan),
    nodeDaemonSet(plan, config),
    controllersDisruptionBudget(plan),
    controllersDeployment(plan),
    ...admissionObjects(plan.installation),
  ];
  return objects.map((object) => withLabels(object, plan.labels));
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
