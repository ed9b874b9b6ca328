/**
 * The workloadEndpoint controller: labels, service account, ports and the end of a pod, in the endpoints that the plugin
 * recorded for it. It never creates or deletes an endpoint: only the plugin knows when there is one.
 */
import { ENDPOINT } from "../model/kinds.ts";
import { NAMESPACE_PROFILE } from "../model/orchestrator-profile.ts";
import { type PodRecord, podRecordKey } from "../model/pod-record.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";
import type { Controller, Proposal } from "./controller.ts";
import type { Facts, FactsUpdate } from "./facts.ts";

/** Its keys are those of endpoints. */
export class WorkloadEndpointController implements Controller {
  readonly name = "workloadEndpoint";
  readonly follows = { orchestrator: ["pods"], stored: ["endpoints"] } as const;
  /** The keys of a pod's endpoints: a pod may have several, under names that the pod does not tell. */
  private readonly endpointsOf = new Map<string, Set<string>>();

  keysOf({ orchestrator, stored }: FactsUpdate): Iterable<string> {
    const keys = new Set<string>();
    for (const { key, previous, ...change } of stored.endpoints ?? []) {
      this.forget(key, previous);
      if (change.kind === "put") this.remember(key, change.value);
      keys.add(key);
    }
    for (const { key } of orchestrator.pods ?? []) {
      for (const endpoint of this.endpointsOf.get(key) ?? []) keys.add(endpoint);
    }
    return keys;
  }

  allKeys({ stored }: Facts): Iterable<string> {
    return stored.endpoints.keys();
  }

  decide(key: string, { orchestrator, stored }: Facts): Proposal | undefined {
    const endpoint = stored.endpoints.get(key);
    const revision = stored.endpoints.revisionOf(key);
    const podKey = endpoint && podKeyOf(endpoint);
    const pod = podKey === undefined ? undefined : orchestrator.pods.get(podKey);
    if (endpoint === undefined || revision === undefined || pod === undefined) return undefined;
    const wanted = withFactsOf(pod, endpoint);
    if (Bun.deepEquals(wanted, endpoint)) return undefined;
    return {
      changes: [{ kind: "update", key, value: ENDPOINT.codec.write(wanted), revision }],
      reason: `updated the endpoint of pod ${pod.namespace}/${pod.name}`,
    };
  }

  private remember(key: string, endpoint: WorkloadEndpoint): void {
    const pod = podKeyOf(endpoint);
    if (pod === undefined) return;
    const keys = this.endpointsOf.get(pod) ?? new Set();
    this.endpointsOf.set(pod, keys.add(key));
  }

  private forget(key: string, endpoint: WorkloadEndpoint | undefined): void {
    const pod = endpoint && podKeyOf(endpoint);
    const keys = pod === undefined ? undefined : this.endpointsOf.get(pod);
    if (pod === undefined || keys === undefined) return;
    keys.delete(key);
    if (keys.size === 0) this.endpointsOf.delete(pod);
  }
}

/**
 * `undefined` if the endpoint does not belong to a pod, or was recorded without the orchestrator's policy: then it has the
 * profile of its network, and nothing of the pod.
 */
function podKeyOf({ metadata, spec }: WorkloadEndpoint): string | undefined {
  if (spec.orchestrator !== "k8s" || spec.pod === undefined) return undefined;
  if (!spec.profiles?.some((name) => name.startsWith(NAMESPACE_PROFILE))) return undefined;
  return podRecordKey({ namespace: metadata.namespace, name: spec.pod });
}

function withFactsOf(
  { endpoint: { metadata, spec }, finishedPhase: phase }: PodRecord,
  { status: ___, ...endpoint }: WorkloadEndpoint,
): WorkloadEndpoint {
  const { serviceAccountName: _, ports: __, ...kept } = endpoint.spec;
  return {
    ...endpoint,
    // Rules do not match the addresses of a pod that has ended.
    ...(phase === undefined ? {} : { status: { phase } }),
    metadata: { ...endpoint.metadata, ...metadata },
    spec: { ...kept, ...spec } as WorkloadEndpoint["spec"],
  };
}
