/**
 * Finds the name of this host in the orchestrator, for `spec.orchRefs` of its Node on etcd. Nothing is guessed: the node
 * controller deletes a Node whose reference does not exist, so a name counts only if the API has a Node of it.
 */
import type { KubeAccess } from "../config/kube-access.ts";
import { orchestratorNodeNames } from "../config/node-name.ts";
import { isObjectName } from "../datastore/kube/object-names.ts";
import { describeFailure, PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import type { KubeClient } from "../kube/api.ts";
import { isForbidden, requireOk } from "../kube/require-ok.ts";
import { quoted } from "../quote.ts";
import type { HostMeans } from "./host-means.ts";

type Means = Pick<HostMeans, "hostName" | "openKubeClient" | "signal" | "warn">;

export interface OrchestratorSide {
  readonly access: KubeAccess;
  /** Of this host in the orchestrator, if the network config names it. */
  readonly nodeName: string | undefined;
}

interface Wanted {
  readonly node: string;
  readonly recorded: string | undefined;
  /** Fails if the API cannot be reached, as it will tell later, and if it has none of the names. */
  readonly isRequired: boolean;
}

/**
 * The first of the possible names that exists; `undefined` if none does, or if the API does not tell. Sends no request if the first of them is the recorded one, or if no Node can have any of them.
 */
export async function findOrchestratorName(
  { access, nodeName }: OrchestratorSide,
  { node, recorded, isRequired }: Wanted,
  means: Means,
): Promise<string | undefined> {
  const possible = await orchestratorNodeNames({ kubernetes: { nodeName } }, node, () => means.hostName());
  if (recorded !== undefined && recorded === possible[0]) return recorded;
  const names = possible.filter(isObjectName);
  if (names.length === 0) return undefined;
  const found = await askFor(names, { access, isRequired }, means);
  if (found === "none of them" && isRequired) throw notANode(node, names);
  return found === "none of them" || found === "not told" ? undefined : found.name;
}

type Found = { readonly name: string } | "none of them" | "not told";

async function askFor(
  names: readonly string[],
  { access, isRequired }: { readonly access: KubeAccess; readonly isRequired: boolean },
  means: Means,
): Promise<Found> {
  try {
    const client = await means.openKubeClient(access);
    const name = await firstExisting(names, client, means.signal).finally(() => client.close());
    return name === undefined ? "none of them" : { name };
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    if (isRequired && failure.kind === "api-unavailable" && !isForbidden(failure)) throw failure;
    means.warn(`the orchestrator's name of this node is not recorded: ${describeFailure(failure)}`);
    return "not told";
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

/** It may have been deleted while this host runs on, or its kubelet may not have registered it yet. */
function notANode(node: string, names: readonly string[]): PluginError {
  const all = names.map(quoted).join(" or ");
  return new PluginError(
    "config-invalid",
    `Cannot register node ${quoted(node)}: the orchestrator has no Node ${all}`,
    {
      details: `the agent registers it as soon as there is one; if this host has another name in the orchestrator, set "kubernetes.node_name" in the network config; if it is not a node of the orchestrator, run "${identity.adminTool} node register" on it`,
    },
  );
}
