/**
 * The file between export and import: one JSON object per line, the first says what it is and how many follow. Values are the
 * texts of the records, so that numbers above 2^53 stay exact. docs/datastore-migration.md describes it. Pure.
 */
import * as v from "valibot";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { decodeShape } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import type { CopiedRecord } from "../former-storage/conversion.ts";

const KIND = "DatastoreExport";
const FORMAT = 1;

const headerShape = v.object({
  kind: v.literal(KIND),
  format: v.number(),
  run: v.string(),
  clusterGUID: v.string(),
  records: v.number(),
});
const recordShape = v.object({
  part: v.picklist(["record", "node"]),
  what: v.string(),
  key: v.string(),
  node: v.exactOptional(v.string()),
  value: v.string(),
});

export interface ExportFile {
  readonly run: string;
  readonly clusterGUID: string;
  readonly records: readonly CopiedRecord[];
  readonly nodes: readonly CopiedRecord[];
}

export function encodeExport({ run, clusterGUID, records, nodes }: ExportFile): string {
  const lines = [
    ...records.map((record) => ({ part: "record", ...record })),
    ...nodes.map((record) => ({ part: "node", ...record })),
  ];
  const header = { kind: KIND, format: FORMAT, run, clusterGUID, records: lines.length };
  return [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join("");
}

export function decodeExport(text: string): ExportFile {
  const [first = "", ...rest] = text.split("\n").filter((line) => line !== "");
  const header = decodeLine(headerShape, first, 1);
  if (header.format !== FORMAT)
    throw malformed(1, `format ${header.format} is not known; use the ${identity.adminTool} that wrote it`);
  if (rest.length !== header.records) {
    throw malformed(rest.length + 1, `it has ${rest.length} of ${header.records} records; export it again`);
  }
  const lines = rest.map((line, index) => decodeLine(recordShape, line, index + 2));
  const of = (wanted: "record" | "node") =>
    lines.filter(({ part }) => part === wanted).map(({ part: _, ...record }): CopiedRecord => record);
  return { run: header.run, clusterGUID: header.clusterGUID, records: of("record"), nodes: of("node") };
}

function decodeLine<Schema extends v.GenericSchema>(
  schema: Schema,
  line: string,
  number: number,
): v.InferOutput<Schema> {
  let value: unknown;
  try {
    value = parseJson(line);
  } catch {
    throw malformed(number, "it is not JSON");
  }
  const decoded = decodeShape(schema, value);
  if (decoded.ok) return decoded.value;
  throw malformed(number, decoded.problems.map(({ path, message }) => `"${path}" ${message}`).join("; "));
}

function malformed(line: number, state: string): PluginError {
  return new PluginError("decode-failure", `Cannot read the export, line ${line}: ${state}`);
}
