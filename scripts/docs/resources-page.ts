/** Generates docs/resources.md from the table of kinds and their schemas. */

import { PUBLIC_KINDS, type PublicKind } from "../../src/model/kinds.ts";
import { isObject } from "../../src/model/shape.ts";
import { FIELDS_WITHOUT_EFFECT } from "../../src/model/without-effect.ts";
import { descriptionOf } from "../../src/release/crds/all-kinds.ts";

type Row = readonly [field: string, type: string, fallback: string];

export function resourcesPage(): string {
  return [...introduction(), ...PUBLIC_KINDS.flatMap(kindSection), ""].join("\n");
}

function introduction(): readonly string[] {
  return [
    "# Resources",
    "",
    "<!-- Written by `make fmt` from src/model/kinds.ts. Do not edit. -->",
    "",
    "Every resource has `apiVersion` (the API group of its kind and its version), `kind`, `metadata` (`name`, `namespace`, `labels`, `annotations` …) and `spec`.",
    "Names consist of lower-case letters, digits, `-` and `.`, and have at most 253 characters. Fields that are not listed here are rejected. Fields that a newer release stored",
    "are kept when this release changes the resource. `explain` of the admin tool shows these tables too. Selectors are described in [selectors.md](selectors.md).",
    "",
    "Rules for IP pools: pools must not overlap; the CIDR must not have host bits; `blockSize` is a prefix length, 20 to 32 (default 26) for IPv4",
    "and 116 to 128 (default 122) for IPv6, and a block must not be larger than its pool (a pool smaller than the default block is one block); `cidr` and `blockSize` cannot be changed; at most one of",
    "`ipipMode` and `vxlanMode` may differ from `Never`, and IPIP is not supported for IPv6.",
    "",
    "Rules for policies: a policy in another tier than `default` is named `TIER.NAME`, and the tier must exist. `ports` and `notPorts` need the protocol TCP, UDP or SCTP; `icmp` and `notICMP` need",
    "ICMP or ICMPv6, and a type. `services` excludes all other criteria of its side, needs a namespace in a global policy, and needs the Kubernetes API as the datastore. A staged",
    "policy is never enforced; with `stagedAction: Delete` it has no field but `tier`. `doNotTrack` and `preDNAT` need `applyOnForward` and exclude each other; a `preDNAT` policy has no egress rules. A profile has no `Pass`. The tier `default`",
    "exists always, cannot be deleted and denies what no rule of its policies allows; another tier is deleted only without policies. A stored rule with a field that this release does",
    "not know makes its policy deny everything: the field may be a criterion.",
    "",
    "Rules for ContainerLabels: they name either a container and its node, or a network, and at least one label. There is one resource for each container or network. Labels that begin with the",
    "product's own prefix, `pcns.` or `pcsa.` are refused. They are for containers without a pod, so the kind does not exist with the Kubernetes API as the datastore; there, label the pods.",
    "The name of a container is the one that it had when it was connected: after `podman rename`, restart it. If two runtimes on a host both have a container of that name, both get the labels. Deleting a Node",
    "keeps the ContainerLabels of its containers, and lists them.",
  ];
}

function kindSection(row: PublicKind): readonly string[] {
  const { kind, plural, shortNames, namespaced, codec } = row;
  const name = codec.onlyName ?? "NAME";
  const key = row.key(namespaced ? { name, namespace: "NAMESPACE" } : { name });
  const only = codec.onlyName === undefined ? "" : ` There is only one, named \`${codec.onlyName}\`.`;
  const fields = fieldRows(codec.specSchema, "", true).map((cells) => {
    const meaning = descriptionOf(kind, `spec.${cells[0].replaceAll(/`|\[\]/g, "")}`) ?? "";
    return `| ${[...cells, meaning].join(" | ")} |`;
  });
  return [
    "",
    `## ${kind}`,
    "",
    `${descriptionOf(kind, "")}.`,
    "",
    `\`apiVersion: ${codec.apiVersion}\`; other names: \`${[plural, ...shortNames].join("`, `")}\`; ${namespaced ? "namespaced" : "cluster-scoped"}; key: \`${key}\`.${only}`,
    "",
    "| Field | Type | Default | Meaning |",
    "|---|---|---|---|",
    ...fields,
    ...withoutEffectLines(kind),
  ];
}

function withoutEffectLines(kind: string): readonly string[] {
  const rows = FIELDS_WITHOUT_EFFECT.filter((row) => row.kind === kind);
  if (rows.length === 0) return [];
  const lines = rows.map(({ field, consequence }) => `- \`${field}\`: ${consequence}`);
  return ["", "Accepted, but without effect in this version:", "", ...lines];
}

/** One row for each field with a value; objects are replaced by their fields. */
function fieldRows(schema: unknown, path: string, isRequired: boolean): readonly Row[] {
  if (!isObject(schema)) return [];
  const { type, wrapped, entries, item } = schema;
  if (wrapped !== undefined) {
    const rows = fieldRows(wrapped, path, false);
    return rows.map((row, index) =>
      index === 0 && row[0] === `\`${path}\`` ? withDefault(row, schema["default"]) : row,
    );
  }
  if (isObject(entries)) {
    return Object.entries(entries).flatMap(([name, inner]) =>
      fieldRows(inner, path === "" ? name : `${path}.${name}`, true),
    );
  }
  if (type === "array" && isObject(item) && isObject(item["entries"])) return fieldRows(item, `${path}[]`, true);
  return [[`\`${path}\``, typeText(schema), isRequired ? "required" : "none"]];
}

function withDefault([field, type]: Row, value: unknown): Row {
  return [field, type, value === undefined ? "none" : `\`${JSON.stringify(value)}\``];
}

function typeText(schema: unknown): string {
  if (!isObject(schema)) return "";
  const { type, options, item } = schema;
  if (type === "array") return `list of ${typeText(item)}`;
  if (type === "record") return "map of strings";
  if (type === "union" && Array.isArray(options)) return [...new Set(options.map(typeText))].join(" or ");
  if (type === "picklist" && Array.isArray(options)) return options.map((option) => `\`${option}\``).join(", ");
  return String(type);
}
