/** The network is removed by deleting its Installation, and leaves the nodes as they were. */
import { leftoversOf, nodeState } from "../../../test/support/node-state.ts";
import { removeInstallation } from "../../../test/support/operator-install.ts";
import type { ClusterEnvironment } from "../../cluster/environment.ts";
import type { StepResult } from "../output.ts";

export async function deleteInstallation({ cluster, nodes }: ClusterEnvironment): Promise<StepResult> {
  await removeInstallation(cluster.server);
  for (const { name, host, before } of nodes) {
    const left = leftoversOf(before, await nodeState(host));
    if (left.length > 0) throw new Error(`${name} is not as it was before:\n${left.join("\n")}`);
  }
  return { summary: "no program, file, link, route or table of it is left on the nodes" };
}
