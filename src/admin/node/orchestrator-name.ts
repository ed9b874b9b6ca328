/**
 * Finds the name of this host in the orchestrator, for `spec.orchRefs` of its Node on etcd. Nothing is guessed: the node
 * controller deletes a Node whose reference does not exist, so a name counts only if the API has a Node of it.
 */
import { kubeAccess } from "../../config/kube-access.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import { orchestratorNodeNames } from "../../config/node-name.ts";
import { isObjectName } from "../../datastore/kube/object-names.ts";
import { PluginError } from "../../errors.ts";
import type { KubeClient } from "../../kube/api.ts";
import { isForbidden, requireOk } from "../../kube/require-ok.ts";
import type { Context } from "../command.ts";
import { errorMessage } from "../error-message.ts";

type Means = Pick<Context, "hostName" | "openKubeClient" | "signal" | "stderr">;

interface Wanted {
  readonly node: string;
  readonly recorded: string | undefined;
  /** Fails if the API cannot be reached: it will tell later. */
  readonly isRequired: boolean;
}

/**
 * The first of the possible names that exists; `undefined` if none does, if the config gives no access to the API, or if
 * the API does not tell. Sends no request if the first of them is the recorded one.
 */
export async function findOrchestratorName(
  config: NetworkConfig,
  { node, recorded, isRequired }: Wanted,
  context: Means,
): Promise<string | undefined> {
  const access = kubeAccess(config);
  if (access === undefined) return undefined;
  const names = await orchestratorNodeNames(config, node, () => context.hostName());
  if (recorded !== undefined && recorded === names[0]) return recorded;
  try {
    const client = await context.openKubeClient(access);
    return await firstExisting(names.filter(isObjectName), client, context.signal).finally(() => client.close());
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    if (isRequired && failure.kind === "api-unavailable" && !isForbidden(failure)) throw failure;
    context.stderr(`Warning: the orchestrator's name of this node is not recorded: ${errorMessage(failure)}\n`);
    return undefined;
  }
}

async function firstExisting(
  names: readonly string[],
  client: KubeClient,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const name of names) {
    const request = { method: "GET", path: `/api/v1/nodes/${name}`, signal } as const;
    const response = await client.request(request);
    if (response.status === 404) continue;
    requireOk(response, request);
    return name;
  }
  return undefined;
}
