/** Generates docs/installation-resource.md from the CRD of the Installation. */

import { apiVersionOf, identity, OPERATOR_API } from "../../src/identity.ts";
import { NETWORK_FIELD } from "../../src/model/installation/names.ts";
import { REFUSED_NETWORK_FIELDS } from "../../src/model/installation/network.ts";
import { REFUSED_SPEC_FIELDS } from "../../src/model/installation/spec.ts";
import type { StructuralSchema } from "../../src/release/crds/crd-schema.ts";
import { OPERATOR_KINDS } from "../../src/release/crds/installation/kinds.ts";
import { INSTALLATION_OPTIONS } from "./installation-options.ts";

const { title, operator, adminTool } = identity;
const KIND = "Installation";

const REFUSED: Readonly<Record<string, string>> = {
  ...REFUSED_SPEC_FIELDS,
  ...Object.fromEntries(
    Object.entries(REFUSED_NETWORK_FIELDS).map(([field, why]) => [`${NETWORK_FIELD}.${field}`, why]),
  ),
};

/** Fields whose members are those of another field on the page, or as the orchestrator has them. */
const WITHOUT_MEMBERS = [/olerations$/, /resource(s|Requirements)$/, /V6$/, new RegExp(`^${NETWORK_FIELD}\\.cni$`)];

export function installationPage(): string {
  const schema = OPERATOR_KINDS.find(({ kind }) => kind === KIND)?.schema ?? {};
  const rows = rowsOf(schema.properties?.["spec"] ?? {}, "");
  const isOfNetwork = ([field]: Row) => field === NETWORK_FIELD || field.startsWith(`${NETWORK_FIELD}.`);
  return [
    ...introduction(),
    ...section(
      "General",
      rows.filter((row) => !isOfNetwork(row)),
    ),
    ...section(`\`${NETWORK_FIELD}\``, rows.filter(isOfNetwork)),
    "",
    "## Refused fields",
    "",
    `Fields of the same resource of other networks that nothing in ${title} carries out. They are refused, so that nobody relies on them.`,
    "",
    "| Field | Reason |",
    "|---|---|",
    ...Object.entries(REFUSED).map(([field, why]) => `| \`${field}\` | ${why.replace(/^is /, "")} |`),
    ...options(),
    ...rules(),
    ...status(schema.properties?.["status"] ?? {}),
    "",
  ].join("\n");
}

type Row = readonly [field: string, type: string, meaning: string];

function rowsOf(schema: StructuralSchema, path: string): readonly Row[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]): readonly Row[] => {
    const field = path === "" ? name : `${path}.${name}`;
    if (Object.hasOwn(REFUSED, field)) return [];
    const own: Row = [field, typeOf(member), member.description ?? ""];
    if (WITHOUT_MEMBERS.some((pattern) => pattern.test(field))) return [own];
    return [own, ...rowsOf(member.items ?? member, field)];
  });
}

function typeOf({ type, items, additionalProperties, enum: values, ...more }: StructuralSchema): string {
  if (values !== undefined) return values.map((value) => (value === "" ? "empty" : `\`${value}\``)).join(", ");
  if (items !== undefined) return items.properties === undefined ? `list of ${typeOf(items)}` : "list";
  if (additionalProperties !== undefined) return "map of strings";
  return more["x-kubernetes-int-or-string"] ? "integer or string" : (type ?? "");
}

function section(name: string, rows: readonly Row[]): readonly string[] {
  const lines = rows.map(([field, type, meaning]) => `| \`${field}\` | ${type} | ${meaning} |`);
  return ["", `## ${name}`, "", "| Field | Type | Meaning |", "|---|---|---|", ...lines];
}

function introduction(): readonly string[] {
  return [
    "# The Installation resource",
    "",
    "<!-- Written by `make fmt` from src/model/installation/. Do not edit. -->",
    "",
    `\`${operator}\` installs what the Installation \`default\` says, and carries out every change of it. The whole network with all defaults is:`,
    "",
    "```yaml",
    `apiVersion: ${apiVersionOf(OPERATOR_API)}`,
    `kind: ${KIND}`,
    "metadata:",
    "  name: default",
    "```",
    "",
    `Every field is optional. The operator writes the defaults that it used into \`default\`, so that another release with other defaults changes nothing. An Installation named \`overlay\``,
    "overrides fields of `default`: members of objects are merged, lists and single values replace those of `default`, and so do selectors of nodes, affinities, resources and the methods to find an address",
    "as a whole. Nothing of the overlay is copied into `default`; `status.computed` shows both together. Another name is refused.",
    "",
    "The fields below are those of `spec`. `kubectl explain installation.spec` shows the same texts.",
  ];
}

function options(): readonly string[] {
  const rows = Object.entries(INSTALLATION_OPTIONS).map(
    ([option, row]) => `| \`${option}\` | ${"field" in row ? `\`${row.field}\`` : `none: ${row.reason}`} |`,
  );
  return [
    "",
    "## Options of the network config",
    "",
    "The operator writes the [network config](network-config.md) of every node, so it need not be edited. What each of its options is here; `portmap` and `bandwidth` are the entries of the",
    "chained plugins ([host ports](host-ports.md), [shaping](shaping.md)), which are left out of the list when they are disabled.",
    "",
    "| Option | Field |",
    "|---|---|",
    ...rows,
  ];
}

function rules(): readonly string[] {
  return [
    "",
    "## Rules",
    "",
    "The API server refuses what is wrong in itself: values that are not allowed, refused fields, a CIDR with host bits, more than one method to find an address. What depends on defaults or on the",
    "cluster is reported by the operator as the condition `Degraded` with the reason `InvalidConfigurationError`; the message names the field, its value and what to do, and until it is corrected nothing",
    "is changed: what runs goes on as it is.",
    "",
    `- \`spec.cni\` and \`spec.${NETWORK_FIELD}.cni\` mean the same; fields that are in both must be equal.`,
    "- `cni.ipam.plugin` (`Spec.CNI.IPAM.Plugin`) is another name of `cni.ipam.type`; if both are set, they must be equal. In `default` the operator adds `type` beside it, because former releases know no other",
    "  name: to change it there, set both. In an `overlay`, which the operator does not write, use `type` if you may go back to a release before this field.",
    "- `datastore.etcd` needs either `endpoints` or `discoverySrv`; the one of an `overlay` replaces the other of `default`. The domain of `discoverySrv` must be resolved on the nodes and in the pods of the operator and the controllers.",
    `- Without BGP (\`bgp: Disabled\`) pools need VXLAN or VXLANCrossSubnet. With HostLocal they need None or IPIP.`,
    "- If the platform has pod CIDRs (the `podSubnet` of kubeadm), pools for workloads must be inside of them.",
    "- Pools must not overlap each other or other pools of the datastore; their CIDR, name and block size cannot be changed.",
    "- A pool that exists already and that is exactly as declared is adopted: it gets the label " +
      `\`app.kubernetes.io/managed-by=${operator}\`. One that differs is not touched: declare it as it is, or label it yourself.`,
    "- Pools are never deleted, neither with the Installation nor when they are removed from the list. A pool that is removed from the list is disabled: it gives out no more addresses. Delete it with",
    `  \`${adminTool} delete ippool NAME\` when its addresses are no longer in use.`,
    "- `ipv4Pools` and `ipv6Pools` name pools that exist or are declared. They have no effect with HostLocal and are refused there.",
    "- The datastore cannot be changed later.",
  ];
}

function status(schema: StructuralSchema): readonly string[] {
  const rows = Object.entries(schema.properties ?? {}).map(
    ([field, { description = "" }]) => `| \`${field}\` | ${description} |`,
  );
  return [
    "",
    "## Status",
    "",
    "| Field | Meaning |",
    "|---|---|",
    ...rows,
    "",
    `\`kubectl get installation\` shows the conditions of the whole, \`kubectl get ${title.toLowerCase()}status\` those of each component: \`installation\` (whether the resource is valid), \`ippools\`, \`node\` and`,
    "`controllers`. The message of the first condition says what is wrong and what to do, or what is still awaited.",
  ];
}
