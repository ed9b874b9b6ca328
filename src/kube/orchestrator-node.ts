/** What the orchestrator's Node says about a host: its machine, its addresses, and those of its pods. */
import { type Address, parseAddress } from "../ip/address.ts";
import { isObject } from "../model/shape.ts";
import { parseJson } from "../parse-json.ts";
import type { KubeClient } from "./api.ts";
import { requireOk } from "./require-ok.ts";

export interface OrchestratorNode {
  /** As its kubelet reports them. */
  readonly internalAddresses: readonly Address[];
  readonly podCidrs: readonly string[];
  /** `since`: when the Node was created. Absent if the kubelet has not reported its machine. */
  readonly kubelet?: { readonly machineId: string; readonly since: string };
}

/** `undefined` if there is no such Node. */
export async function readOrchestratorNode(
  client: Pick<KubeClient, "request">,
  name: string,
  signal?: AbortSignal,
): Promise<OrchestratorNode | undefined> {
  const path = `/api/v1/nodes/${encodeURIComponent(name)}`;
  const request = { method: "GET", path, ...(signal === undefined ? {} : { signal }) } as const;
  const response = await client.request(request);
  return response.status === 404 ? undefined : orchestratorNodeIn(parseJson(requireOk(response, request)));
}

function orchestratorNodeIn(node: unknown): OrchestratorNode {
  const { metadata, spec, status } = isObject(node) ? node : {};
  return { internalAddresses: internalIn(status), podCidrs: podCidrsIn(spec), ...kubeletIn(metadata, status) };
}

function kubeletIn(metadata: unknown, status: unknown): Pick<OrchestratorNode, "kubelet"> {
  const { creationTimestamp } = isObject(metadata) ? metadata : {};
  const { nodeInfo } = isObject(status) ? status : {};
  const { machineID } = isObject(nodeInfo) ? nodeInfo : {};
  if (typeof machineID !== "string" || machineID === "") return {};
  return { kubelet: { machineId: machineID, since: String(creationTimestamp) } };
}

function internalIn(status: unknown): readonly Address[] {
  const { addresses } = isObject(status) ? status : {};
  return (Array.isArray(addresses) ? addresses : [])
    .filter(isObject)
    .flatMap(({ type, address }) => (type === "InternalIP" ? (parseAddress(String(address)) ?? []) : []));
}

/** A Node of an old cluster has only the field for a single range. */
export function podCidrsIn(spec: unknown): readonly string[] {
  const { podCIDRs, podCIDR } = isObject(spec) ? spec : {};
  return (Array.isArray(podCIDRs) ? podCIDRs : [podCIDR]).filter((each) => typeof each === "string" && each !== "");
}
