/** Helm's records of a release, newest first. */
import type { ClusterObjects, Fields } from "../../../kube/objects.ts";
import { RELEASE_SECRET_TYPE, type ReleaseRecord, releaseRecord } from "../../release-record.ts";

interface ReleaseName {
  readonly name: string;
  readonly namespace: string;
}

/** The Secrets of all its revisions. */
export async function releaseSecrets(
  objects: ClusterObjects,
  { name, namespace }: ReleaseName,
): Promise<readonly Fields[]> {
  const secrets = await objects.list(`/api/v1/namespaces/${namespace}/secrets`, {
    labelSelector: `owner=helm,name=${name}`,
    fieldSelector: `type=${RELEASE_SECRET_TYPE}`,
  });
  // Members of lists do not name their kind.
  return secrets.map((secret) => ({ ...secret, apiVersion: "v1", kind: "Secret" }));
}

export async function releaseRecords(objects: ClusterObjects, release: ReleaseName): Promise<readonly ReleaseRecord[]> {
  const secrets = await releaseSecrets(objects, release);
  const records = secrets.flatMap((secret) => releaseRecord(secret) ?? []);
  return records.sort((one, other) => other.revision - one.revision);
}

export function isPending({ status }: Pick<ReleaseRecord, "status">): boolean {
  return status.startsWith("pending-");
}

/** The one that Helm compares with: the deployed one, although a later upgrade may have failed. `records`: newest first. */
export function recordInUse(records: readonly ReleaseRecord[]): ReleaseRecord | undefined {
  return records.find(({ status }) => status === "deployed") ?? records[0];
}

/** What the user gave Helm, without the defaults of the chart. */
export function valuesOf({ record }: ReleaseRecord): Fields {
  const { config } = record;
  return typeof config === "object" && config !== null ? { ...config } : {};
}

export function secretPath({ namespace, secret }: Pick<ReleaseRecord, "namespace" | "secret">): string {
  return `/api/v1/namespaces/${namespace}/secrets/${secret}`;
}
