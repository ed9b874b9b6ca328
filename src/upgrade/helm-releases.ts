/** Helm's records of a release: one Secret per revision, whose value is JSON, gzipped and encoded twice. Newest first. */

import * as v from "valibot";
import { identity } from "../identity.ts";
import type { ClusterObjects, Fields } from "../kube/objects.ts";
import { decodeShape } from "../model/shape.ts";
import { parseJson } from "../parse-json.ts";
import type { ChartRelease } from "./engine/facts.ts";
import type { PlanningSite } from "./engine/step.ts";

/** A release that is not where the chart has to be installed. */
export function movingRelease({ facts: { method } }: Pick<PlanningSite, "facts">): ChartRelease | undefined {
  return method.kind === "chart" && method.release.namespace !== identity.operator ? method.release : undefined;
}

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

export const RELEASE_SECRET_TYPE = "helm.sh/release.v1";

const secretShape = v.object({
  metadata: v.object({ name: v.string(), namespace: v.string() }),
  type: v.literal(RELEASE_SECRET_TYPE),
  data: v.object({ release: v.string() }),
});

const recordShape = v.looseObject({
  name: v.string(),
  version: v.number(),
  info: v.object({ status: v.string() }),
  chart: v.object({ metadata: v.object({ name: v.string(), version: v.string() }) }),
});

export interface ReleaseRecord {
  readonly name: string;
  /** Where the record is, which is where Helm looks for the release. */
  readonly namespace: string;
  /** Name of the Secret. */
  readonly secret: string;
  readonly revision: number;
  /** `deployed`, `superseded`, `pending-upgrade` … */
  readonly status: string;
  readonly chartName: string;
  readonly chartVersion: string;
  /** All of it; `config` is what the user has set. */
  readonly record: Fields;
}

/** `undefined` if the Secret is not a record of Helm, or cannot be read. */
export function releaseRecord(secret: unknown): ReleaseRecord | undefined {
  const decoded = decodeShape(secretShape, secret);
  if (!decoded.ok) return undefined;
  const { metadata, data } = decoded.value;
  const record = decodeShape(recordShape, unpackRelease(data.release));
  if (!record.ok) return undefined;
  const { name, version, info, chart } = record.value;
  return {
    name,
    namespace: metadata.namespace,
    secret: metadata.name,
    revision: version,
    status: info.status,
    chartName: chart.metadata.name,
    chartVersion: chart.metadata.version,
    record: record.value,
  };
}

/** `data.release`: the API encodes what Helm has encoded already. `undefined` if it cannot be read. */
export function unpackRelease(value: string): unknown {
  try {
    const packed = Buffer.from(Buffer.from(value, "base64").toString("latin1"), "base64");
    const isCompressed = packed[0] === 0x1f && packed[1] === 0x8b;
    return parseJson(new TextDecoder().decode(isCompressed ? Bun.gunzipSync(packed) : packed));
  } catch {
    return undefined;
  }
}

/** The opposite of `unpackRelease`. */
export function packRelease(record: object): string {
  const packed = Buffer.from(Bun.gzipSync(Buffer.from(JSON.stringify(record))));
  return Buffer.from(packed.toString("base64")).toString("base64");
}
