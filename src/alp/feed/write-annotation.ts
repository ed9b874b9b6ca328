/** Writes the release of a sidecar on its pod in the orchestrator's API, or on the endpoint in another datastore. */
import type { Datastore } from "../../datastore/datastore.ts";
import type { KubeClient, KubeRequest } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";

/** The pod is gone, or has another UID. */
const OF_OTHER_POD: ReadonlySet<number> = new Set([404, 409, 422]);

/** `undefined` removes it. A pod that is gone, or another one of the same name, is left alone. */
export async function annotatePod(
  client: Pick<KubeClient, "request">,
  { metadata, spec }: WorkloadEndpoint,
  release: string | undefined,
): Promise<void> {
  const annotations = { [SIDECAR_ANNOTATION]: release ?? null };
  const patch: KubeRequest = {
    method: "PATCH",
    path: `/api/v1/namespaces/${metadata.namespace}/pods/${spec.pod}/status`,
    contentType: "application/merge-patch+json",
    // The API refuses another UID than that of the pod.
    body: JSON.stringify({ metadata: { uid: metadata.uid, annotations } }),
    attempt: "retry",
  };
  const response = await client.request(patch);
  if (!OF_OTHER_POD.has(response.status)) requireOk(response, patch);
}

/** `undefined` removes it. An endpoint that is gone or is written by another at this moment is left alone. */
export async function annotateEndpoint(
  store: Pick<Datastore, "read" | "commit">,
  key: string,
  release: string | undefined,
): Promise<void> {
  const { answers } = await store.read([{ kind: "key", key }]);
  const entry = answers[0]?.[0];
  if (entry === undefined) return;
  const endpoint = ENDPOINT.codec.read(entry.value, key);
  const { [SIDECAR_ANNOTATION]: _, ...others } = endpoint.metadata.annotations ?? {};
  const annotations = release === undefined ? others : { ...others, [SIDECAR_ANNOTATION]: release };
  const value = ENDPOINT.codec.write({ ...endpoint, metadata: { ...endpoint.metadata, annotations } }, entry.value);
  await store.commit([{ kind: "update", key, value, revision: entry.revision }]);
}
