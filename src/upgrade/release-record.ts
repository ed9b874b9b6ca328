/** Helm's record of one revision of a release: a Secret whose value is JSON, gzipped and encoded twice. Pure. */
import * as v from "valibot";
import type { Fields } from "../kube/objects.ts";
import { decodeShape } from "../model/shape.ts";
import { parseJson } from "../parse-json.ts";

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
