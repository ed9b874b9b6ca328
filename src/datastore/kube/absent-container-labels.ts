/** ContainerLabels, which the orchestrator's API does not have: its workloads are pods, and a pod has labels of its own. */
import { PluginError } from "../../errors.ts";
import { nameInKey, resourcesPrefix } from "../../model/keys.ts";
import { quoted } from "../../quote.ts";
import type { KindMapping } from "./kind-mapping.ts";

export const absentContainerLabels: KindMapping = {
  prefix: resourcesPrefix("containerlabels"),
  path: () => undefined,
  collections: () => [],
  record: () => undefined,
  create: refuse,
  update: refuse,
  remove: refuse,
};

function refuse(key: string): never {
  throw new PluginError(
    "resource-invalid",
    `Cannot write ContainerLabels ${quoted(nameInKey(key))}: with the Kubernetes API as the datastore all workloads are pods`,
    { details: 'use "kubectl label pod"' },
  );
}
