/** The kinds of the operator's API group: what a user applies, and what the operator reports. */
import { identity, OPERATOR_API } from "../../../identity.ts";
import { wireSpecSchema } from "../../../model/installation/spec.ts";
import { descriptionOf } from "../all-kinds.ts";
import type { StructuralSchema } from "../crd-schema.ts";
import type { DefinedKind } from "../definition.ts";
import type { Column } from "../kind.ts";
import { structuralSchema } from "../structural-schema.ts";
import { INSTALLATION_RULES } from "./rules.ts";

const STATUS_KIND = `${identity.title}Status`;

export const OPERATOR_KINDS: readonly DefinedKind[] = [
  {
    kind: "Installation",
    plural: "installations",
    shortNames: [],
    namespaced: false,
    api: OPERATOR_API,
    isForUsers: true,
    columns: [
      ...conditionColumns("Ready"),
      { name: "Version", path: `.status.${identity.product}Version`, isWide: true },
      { name: "Message", path: messageOf("Ready") },
    ],
    schema: installationSchema(),
    hasStatusResource: true,
  },
  {
    kind: STATUS_KIND,
    plural: `${STATUS_KIND.toLowerCase()}es`,
    shortNames: [],
    namespaced: false,
    api: OPERATOR_API,
    isForUsers: true,
    columns: [...conditionColumns("Available"), { name: "Message", path: messageOf("Available") }],
    schema: wholeSchema(STATUS_KIND, { spec: { type: "object" }, status: { conditions: conditions(STATUS_KIND) } }),
    hasStatusResource: true,
  },
];

/** `first`: the condition that says whether all is well; its message is the one that matters if it is not. */
function conditionColumns(first: string): readonly Column[] {
  return [
    ...[first, "Progressing", "Degraded"].map((type) => ({ name: type, path: `${condition(type)}.status` })),
    { name: "Since", path: `${condition(first)}.lastTransitionTime`, type: "date" as const },
  ];
}

function messageOf(type: string): string {
  return `${condition(type)}.message`;
}

function condition(type: string): string {
  return `.status.conditions[?(@.type=='${type}')]`;
}

function installationSchema(): StructuralSchema {
  const kind = "Installation";
  const notes = {
    describe: (path: string) => descriptionOf(kind, path),
    rules: (path: string) => INSTALLATION_RULES[path] ?? [],
  };
  const text = (path: string): StructuralSchema => ({ type: "string", ...described(kind, path) });
  const version = `${identity.product}Version`;
  const schema = wholeSchema(kind, {
    spec: structuralSchema(wireSpecSchema, "spec", notes),
    status: {
      variant: text("status.variant"),
      [version]: text(`status.${version}`),
      mtu: { type: "integer", format: "int32", ...described(kind, "status.mtu") },
      computed: {
        type: "object",
        "x-kubernetes-preserve-unknown-fields": true,
        ...described(kind, "status.computed"),
      },
      conditions: conditions(kind),
    },
  });
  return { ...schema, "x-kubernetes-validations": INSTALLATION_RULES[""] ?? [] };
}

interface Parts {
  readonly spec: StructuralSchema;
  readonly status: Readonly<Record<string, StructuralSchema>>;
}

function wholeSchema(kind: string, { spec, status }: Parts): StructuralSchema {
  return {
    ...described(kind, ""),
    type: "object",
    properties: {
      apiVersion: { type: "string", ...described(kind, "apiVersion") },
      kind: { type: "string", ...described(kind, "kind") },
      metadata: { type: "object" },
      spec: { ...spec, ...described(kind, "spec") },
      status: { type: "object", properties: status, ...described(kind, "status") },
    },
  };
}

function conditions(kind: string): StructuralSchema {
  const field = (name: string, type: StructuralSchema): StructuralSchema => ({
    ...type,
    ...described(kind, `status.conditions.${name}`),
  });
  return {
    type: "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    ...described(kind, "status.conditions"),
    items: {
      type: "object",
      required: ["type", "status"],
      properties: {
        type: field("type", { type: "string" }),
        status: field("status", { type: "string", enum: ["True", "False", "Unknown"] }),
        reason: field("reason", { type: "string" }),
        message: field("message", { type: "string" }),
        observedGeneration: field("observedGeneration", { type: "integer", format: "int64" }),
        lastTransitionTime: field("lastTransitionTime", { type: "string", format: "date-time" }),
      },
    },
  };
}

function described(kind: string, path: string): { readonly description?: string } {
  const description = descriptionOf(kind, path);
  return description === undefined ? {} : { description };
}
