/** The network is installed by the operator, and removed by deleting its Installation. */

import { identity } from "../../../src/identity.ts";
import { formatYaml } from "../../../src/yaml.ts";
import { leftoversOf, nodeState } from "../../../test/support/node-state.ts";
import {
  installationOn,
  installOperator,
  removeInstallation,
  untilInstalled,
} from "../../../test/support/operator-install.ts";
import { NAMESPACE } from "../../../test/support/pods-in-namespace.ts";
import type { StepResult } from "../output.ts";
import type { ClusterEnvironment, TwoNodes } from "./environment.ts";

export async function startOperator({ cluster }: ClusterEnvironment): Promise<StepResult> {
  await installOperator(cluster.server);
  return { summary: "kubectl apply of operator-crds.yaml and operator.yaml" };
}

export async function createInstallation({ cluster, store }: ClusterEnvironment): Promise<StepResult> {
  const { server } = cluster;
  const installation = installationOn(server, store);
  await server.apply(JSON.stringify(installation));
  await untilInstalled(server);
  await server.createNamespace(NAMESPACE);
  return { summary: `${identity.operator} has installed it on both nodes`, details: formatYaml(installation) };
}

export async function deleteInstallation({ cluster }: ClusterEnvironment, nodes: TwoNodes): Promise<StepResult> {
  await removeInstallation(cluster.server);
  for (const { name, host, before } of nodes) {
    const left = leftoversOf(before, await nodeState(host));
    if (left.length > 0) throw new Error(`${name} is not as it was before:\n${left.join("\n")}`);
  }
  return { summary: "no program, file, link, route or table of it is left on the nodes" };
}
