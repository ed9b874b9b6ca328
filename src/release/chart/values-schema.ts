/** The JSON schema of the chart's values: that of an Installation is the one of its CRD, without what is refused anyway. */

import { NETWORK_FIELD } from "../../model/installation/names.ts";
import { REFUSED_NETWORK_FIELDS } from "../../model/installation/network.ts";
import { REFUSED_SPEC_FIELDS } from "../../model/installation/spec.ts";
import type { CelRule, StructuralSchema } from "../crds/crd-schema.ts";
import { OPERATOR_KINDS } from "../crds/installation/kinds.ts";

type JsonSchema = Readonly<Record<string, unknown>>;

export function valuesSchema(): JsonSchema {
  const text = (description: string): JsonSchema => ({ type: "string", description });
  const anyObject = (description: string): JsonSchema => ({ type: "object", description });
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    ...closed({
      imagePullSecrets: {
        ...anyObject("Contents of .dockerconfigjson, by the names of the Secrets"),
        additionalProperties: { type: ["string", "object"] },
      },
      installation: installationSchema(),
      kubernetesServiceEndpoint: closed({
        host: text("Address or name of the API server; empty: that of the Service kubernetes"),
        port: { type: ["string", "integer"], description: "Port of the API server" },
      }),
      operator: closed({
        image: text("Full name of the image; empty: that of the release"),
        replicas: { type: "integer", minimum: 1, description: "Number of pods; one of them is active" },
        podAnnotations: anyObject("Annotations of the pods"),
        resources: anyObject("Resources of the container"),
        affinity: anyObject("Affinity of the pods"),
        nodeSelector: anyObject("Labels of the nodes that the pods may run on"),
        tolerations: { type: "array", items: { type: "object" }, description: "Tolerations of the pods" },
      }),
      // Set by Helm for charts that depend on this one.
      global: anyObject("Values of the chart that contains this one"),
    }),
  };
}

function closed(properties: JsonSchema): JsonSchema {
  return { type: "object", properties, additionalProperties: false };
}

function installationSchema(): JsonSchema {
  const spec = OPERATOR_KINDS.find(({ kind }) => kind === "Installation")?.schema.properties?.["spec"] ?? {};
  const { properties, ...schema } = jsonSchema(spec, "");
  return {
    ...schema,
    properties: {
      enabled: { type: "boolean", description: "Whether the chart renders the Installation" },
      ...Object(properties),
    },
  };
}

const REFUSED = new Set([
  ...Object.keys(REFUSED_SPEC_FIELDS),
  ...Object.keys(REFUSED_NETWORK_FIELDS).map((field) => `${NETWORK_FIELD}.${field}`),
]);

/** A field that is refused is not in the schema, and what is not in the schema is refused. */
function jsonSchema(schema: StructuralSchema, path: string): JsonSchema {
  const { description, enum: values, items, additionalProperties, properties } = schema;
  return {
    ...(description === undefined ? {} : { description }),
    type: schema["x-kubernetes-int-or-string"] ? ["integer", "string"] : schema.type,
    ...(values === undefined ? {} : { enum: values }),
    ...patternOf(schema),
    ...bounds(schema),
    ...(items === undefined ? {} : { items: jsonSchema(items, path) }),
    ...(additionalProperties === undefined ? {} : { additionalProperties: jsonSchema(additionalProperties, path) }),
    ...(properties === undefined ? {} : objectSchema(schema, properties, path)),
  };
}

function objectSchema(
  { required }: StructuralSchema,
  properties: Readonly<Record<string, StructuralSchema>>,
  path: string,
): JsonSchema {
  const members = Object.entries(properties).flatMap(([name, member]) => {
    const field = path === "" ? name : `${path}.${name}`;
    return REFUSED.has(field) ? [] : [[name, jsonSchema(member, field)] as const];
  });
  return {
    ...(required === undefined ? {} : { required }),
    properties: Object.fromEntries(members),
    additionalProperties: false,
  };
}

/** Patterns and limits of the CRD are rules, because only a rule has a message of its own. */
function patternOf(schema: StructuralSchema): JsonSchema {
  const [pattern = schema.pattern] = rulesOf(schema).flatMap(
    ({ rule }) => /^self\.matches\(r'(.*)'\)$/.exec(rule)?.[1] ?? [],
  );
  return pattern === undefined ? {} : { pattern };
}

function bounds(schema: StructuralSchema): JsonSchema {
  const limit = (sign: string) =>
    rulesOf(schema).flatMap(({ rule }) => new RegExp(`^self ${sign} (-?\\d+)$`).exec(rule)?.[1] ?? []);
  const [minimum = schema.minimum] = limit(">=").map(Number);
  const [maximum = schema.maximum] = limit("<=").map(Number);
  return {
    ...(minimum === undefined ? {} : { minimum }),
    ...(maximum === undefined ? {} : { maximum }),
    ...(schema.maxItems === undefined ? {} : { maxItems: schema.maxItems }),
    ...(schema.maxLength === undefined ? {} : { maxLength: schema.maxLength }),
  };
}

function rulesOf(schema: StructuralSchema): readonly CelRule[] {
  return schema["x-kubernetes-validations"] ?? [];
}
