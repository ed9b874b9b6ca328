/** Pods of the orchestrator as records that can only be read. */
import { POD_RECORDS_PREFIX, podRecordKey, podRecordOf } from "../../model/pod-record.ts";
import type { ApiObject } from "./api.ts";
import { type KindMapping, readOnly } from "./kind-mapping.ts";

/**
 * Those of one node, or all. The agent of a node records them as endpoints if another plugin connects them, with the
 * addresses that the kubelet reports: annotations that our plugin would write are only those of a user then.
 */
export function podRecords(node?: string): KindMapping {
  const query = node === undefined ? {} : { query: { fieldSelector: `spec.nodeName=${node}` } };
  return {
    prefix: POD_RECORDS_PREFIX,
    path: () => undefined,
    collections: () => [{ path: "/api/v1/pods", ...query }],
    record: (pod) => ({
      key: podRecordKey(pod.metadata),
      value: JSON.stringify(podRecordOf(node === undefined ? pod : withoutAnnotations(pod))),
    }),
    ...readOnly("it is an object of the orchestrator"),
  };
}

function withoutAnnotations(pod: ApiObject): ApiObject {
  return { ...pod, metadata: { ...pod.metadata, annotations: {} } };
}
