/** What the step has to know to go on, and to go back: saved before its first write. Pure. */
import * as v from "valibot";
import { PluginError } from "../../../errors.ts";
import type { HostEndpoint } from "../../../model/host-endpoint.ts";
import { HOST_ENDPOINT } from "../../../model/kinds.ts";
import { decodeShape } from "../../../model/shape.ts";
import { parseJson } from "../../../parse-json.ts";
import { storedResource } from "../../engine/change-record.ts";

const texts = v.record(v.string(), v.string());
const savedShape = v.object({
  /** As they were stored. */
  endpoints: v.array(storedResource),
  labels: v.array(
    v.object({
      node: v.string(),
      target: v.object({ kind: v.picklist(["orchestrator", "record"]), name: v.string() }),
      former: texts,
      wanted: texts,
    }),
  ),
  /** Absent: it was not set. */
  autoCreate: v.exactOptional(v.picklist(["Enabled", "Disabled"])),
});

export type SavedMigration = Readonly<v.InferOutput<typeof savedShape>>;

export function readSaved(text: string): SavedMigration {
  const decoded = decodeShape(savedShape, parseJson(text));
  if (decoded.ok) return decoded.value;
  throw new PluginError("record-malformed", "Cannot read the backup of the host endpoints");
}

export function savedEndpoints({ endpoints }: SavedMigration): readonly HostEndpoint[] {
  return endpoints.map((each) => HOST_ENDPOINT.codec.readObject(each, "backup"));
}
