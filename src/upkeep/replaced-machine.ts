/**
 * Whether this machine replaces the one that registered a node (etcd). Its record may outlast the orchestrator's Node: many
 * that are deleted at once are held, and a Node of the same name may be there again before the controllers see that it was
 * gone.
 *
 * Both must hold: the Node was created after the other machine registered, and its kubelet runs on this machine. The time of
 * the replacement is never before that of the Node, whatever the clock of this host says, so a Node proves one replacement:
 * two machines whose kubelets report one Node do not take its name from each other again and again.
 */
import { describeFailure, PluginError } from "../errors.ts";
import { isOfKubelet } from "../ipam/node-machine.ts";
import { type OrchestratorNode, readOrchestratorNode } from "../kube/orchestrator-node.ts";
import { MACHINE_SINCE_ANNOTATION } from "../model/machine-annotation.ts";
import type { Node } from "../model/node.ts";
import { orchestratorReference } from "../model/node-reference.ts";
import { quoted } from "../quote.ts";
import type { HostMeans } from "./host-means.ts";
import type { OrchestratorSide } from "./orchestrator-name.ts";

/** When this machine replaced the registered one; `undefined` if it did not, or if the API does not tell. */
export async function findReplacement(
  record: Node,
  { machine, orchestrator }: { readonly machine: string; readonly orchestrator: OrchestratorSide },
  means: Pick<HostMeans, "openKubeClient" | "signal" | "warn" | "now">,
): Promise<Date | undefined> {
  const reference = orchestratorReference(record.spec);
  if (reference === undefined) return undefined;
  try {
    const client = await means.openKubeClient(orchestrator.access);
    const node = await readOrchestratorNode(client, reference, means.signal).finally(() => client.close());
    const created = node && provenSince(record, node, machine);
    if (created === undefined) return undefined;
    means.warn(
      `node ${quoted(record.metadata.name)} is registered again: Node ${quoted(reference)} was created after another machine had registered it, and its kubelet runs on this one`,
    );
    return new Date(Math.max(created.getTime(), means.now().getTime()));
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    means.warn(`whether this machine replaces another one cannot be told: ${describeFailure(failure)}`);
    return undefined;
  }
}

/** When the Node was created, if it proves the replacement. Nothing is proven by a time that cannot be read. */
function provenSince({ metadata }: Node, { kubelet }: OrchestratorNode, machine: string): Date | undefined {
  if (kubelet === undefined || !isOfKubelet({ kubelet }, machine)) return undefined;
  const created = new Date(kubelet.since);
  const registered = Date.parse(metadata.annotations?.[MACHINE_SINCE_ANNOTATION] ?? "");
  return created.getTime() > registered ? created : undefined;
}
