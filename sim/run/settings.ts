/** How simulated clusters are configured. */
import { CONFIGURATION_KEY } from "../../src/controllers/configuration.ts";
import { type ControllerSettings, controllerSettings } from "../../src/controllers/settings.ts";
import type { Change } from "../../src/datastore/datastore.ts";
import { clusterInformation } from "../../src/model/cluster-information.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { kubeControllersConfiguration } from "../../src/model/kube-controllers-configuration.ts";
import { nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";

/** Shorter than usual, so that less has to be simulated until everything is at rest. */
const CONTROLLERS = {
  controllers: {
    policy: {},
    namespace: {},
    serviceAccount: {},
    workloadEndpoint: {},
    node: { reconcilerPeriod: "30s", leakGracePeriod: "2m" },
  },
};

export const CONTROLLER_SETTINGS: ControllerSettings = controllerSettings({}, CONTROLLERS, { isEtcd: true });

/** Routes of pools without a tunnel are those of a flat network: there is no BIRD here. */
export function settingsOfCluster(): readonly Change[] {
  const name = "default";
  const controllers = kubeControllersConfiguration.make({ name }, CONTROLLERS);
  const agents = nodeAgentConfiguration.make({ name }, { bgp: "Disabled" });
  const information = clusterInformation.make({ name }, { datastoreReady: true });
  return [
    { kind: "put", key: CONFIGURATION_KEY, value: kubeControllersConfiguration.write(controllers) },
    {
      ...{ kind: "put", key: resourceKey("nodeagentconfigurations", { name }) },
      value: nodeAgentConfiguration.write(agents),
    },
    { kind: "put", key: resourceKey("clusterinformations", { name }), value: clusterInformation.write(information) },
  ];
}
