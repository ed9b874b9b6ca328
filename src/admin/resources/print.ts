/** Formats resources for stdout, in the requested format. */
import type { Given } from "../command.ts";
import type { AdminKind } from "../kinds/kind.ts";
import type { Option } from "../option.ts";
import { formatTable } from "../table.ts";
import { formatYaml } from "../yaml.ts";
import { referenceText } from "./reference.ts";
import type { Stored } from "./stored.ts";

const FORMATS = ["table", "wide", "yaml", "json", "name"] as const;
type Format = (typeof FORMATS)[number];

export const FORMAT_OPTION: Option = {
  name: "output",
  letter: "o",
  value: "FORMAT",
  oneOf: FORMATS,
  summary: "Output format: table (default), wide, yaml, json or name",
};

export interface Answer {
  /** The requested kinds, whether resources were found or not. */
  readonly kinds: readonly AdminKind[];
  readonly found: readonly Stored[];
  /** One resource was requested by name: it is printed without a list around it. */
  readonly isSingle: boolean;
  /** The resources may be of several namespaces. */
  readonly showsNamespace: boolean;
  readonly now: Date;
}

export function formatOf(given: Given): Format {
  const asked = given.values.get(FORMAT_OPTION.name);
  return FORMATS.find((format) => format === asked) ?? "table";
}

export function printResources(format: Format, answer: Answer): string {
  switch (format) {
    case "json":
      return `${JSON.stringify(asDocument(answer), undefined, 2)}\n`;
    case "yaml":
      return formatYaml(asDocument(answer));
    case "name":
      return answer.found.map(({ kind, resource }) => `${referenceText(kind, resource.metadata)}\n`).join("");
    case "table":
    case "wide":
      return tables(answer, format);
  }
}

/** The apiVersion of a list with members of several API groups, as in the orchestrator's own lists. */
const MIXED_API_VERSION = "v1";

/** A document that `-f` can read again. */
function asDocument({ kinds: asked, found, isSingle }: Answer): unknown {
  const [first] = found;
  if (isSingle && first) return first.resource;
  const kinds = new Set(found.map(({ kind }) => kind.kind));
  const apiVersions = new Set(asked.map(({ codec }) => codec.apiVersion));
  return {
    apiVersion: apiVersions.size === 1 ? [...apiVersions].join("") : MIXED_API_VERSION,
    kind: kinds.size === 1 ? `${[...kinds].join("")}List` : "List",
    items: found.map(({ resource }) => resource),
  };
}

function tables(answer: Answer, format: "table" | "wide"): string {
  const kinds = [...new Set(answer.found.map(({ kind }) => kind))];
  return kinds.map((kind) => tableOf(kind, answer, format)).join("\n");
}

function tableOf(kind: AdminKind, { found, showsNamespace, now }: Answer, format: "table" | "wide"): string {
  const columns = kind.columns.filter(({ isWide }) => format === "wide" || !isWide);
  const namespaced = kind.namespaced && showsNamespace;
  const header = [...(namespaced ? ["NAMESPACE"] : []), "NAME", ...columns.map((column) => column.header), "AGE"];
  const rows = found
    .filter((each) => each.kind === kind)
    .map(({ resource }) => [
      ...(namespaced ? [resource.metadata.namespace ?? ""] : []),
      resource.metadata.name,
      ...columns.map((column) => column.cell(resource)),
      ageOf(resource.metadata.creationTimestamp, now),
    ]);
  return formatTable(header, rows);
}

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
] as const;

/** `5d`, `3h`, `10m`, `7s`; empty if unknown. */
function ageOf(timestamp: string | undefined, now: Date): string {
  const created = timestamp === undefined ? Number.NaN : Date.parse(timestamp);
  if (Number.isNaN(created)) return "";
  const seconds = Math.max(0, Math.floor((now.getTime() - created) / 1000));
  const [unit, size] = UNITS.find(([, length]) => seconds >= 2 * length) ?? ["s", 1];
  return `${Math.floor(seconds / size)}${unit}`;
}
