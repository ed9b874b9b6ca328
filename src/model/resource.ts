/**
 * Resources and their codec: decode what a user applies (strict), read from the
 * datastore (tolerant), write to it.
 *
 * Each kind is defined once, in its own file, with `defineResource`.
 */
import * as v from "valibot";
import { PluginError } from "../errors.ts";
import { apiVersionOf, type GroupVersion } from "../identity.ts";
import { checkLabels, isResourceName, type Metadata, metadataSchema } from "./metadata.ts";
import { type Checked, formatProblems, type Problem } from "./problem.ts";
import { decodeShape, findUnknownFields, keepUnknownFields, withoutNulls } from "./shape.ts";
import { parseStored } from "./stored.ts";

export interface Resource<Kind extends string = string, Spec = unknown> {
  readonly apiVersion: string;
  readonly kind: Kind;
  readonly metadata: Metadata;
  readonly spec: Spec;
  readonly status?: unknown;
}

export interface ResourceCodec<R extends Resource> {
  readonly kind: R["kind"];
  readonly api: GroupVersion;
  /** `vendor.org/v3`: the `apiVersion` of resources of this kind. */
  readonly apiVersion: string;
  readonly namespaced: boolean;
  /** The only allowed name, if there is only one object of this kind. */
  readonly onlyName?: string;
  /** The schema of `spec`: types, defaults, messages and the CRD are derived from it. */
  readonly specSchema: v.GenericSchema;
  /** Decodes what a user applies: reports all problems together, including unknown fields. */
  decode(value: unknown): Checked<R>;
  /** Reads a stored resource: fields of other releases are ignored, absent ones get their defaults. `key` is for the message. */
  read(text: string, key: string): R;
  /** Like `read`, for an object that is already parsed, as from the orchestrator's API. */
  readObject(value: unknown, key: string): R;
  /**
   * The text to store, without `resourceVersion`, which comes from the datastore.
   * `before`: the text that it replaces, whose fields of other releases are kept.
   */
  write(resource: R, before?: string): string;
  /** Returns a resource of this kind, with defaults for absent fields. */
  make(metadata: Metadata, spec: R["spec"]): R;
}

interface Definition<Kind extends string, Schema extends v.GenericSchema, Spec> {
  readonly kind: Kind;
  /** The API group that the kind belongs to, and its version. */
  readonly api: GroupVersion;
  readonly spec: Schema;
  readonly namespaced: boolean;
  /** The only allowed name, if there is only one object of this kind. */
  readonly onlyName?: string;
  /** Fields of the whole resource whose `null` is a problem; elsewhere it means absent. */
  readonly findEmpty?: (value: unknown) => readonly Problem[];
  /** Defaults that depend on other fields, and canonical text. */
  readonly complete: (spec: v.InferOutput<Schema>) => Spec;
  /** Checks that involve several fields. */
  readonly check?: (spec: Spec, metadata: Metadata) => readonly Problem[];
}

export function defineResource<const Kind extends string, Schema extends v.GenericSchema, Spec>(
  definition: Definition<Kind, Schema, Spec>,
): ResourceCodec<Resource<Kind, Spec>> {
  const { kind, api, findEmpty = () => [] } = definition;
  const apiVersion = apiVersionOf(api);
  const whole = wholeSchema(apiVersion, definition.spec);
  const readWithoutNulls = (value: unknown, key: string): Resource<Kind, Spec> => {
    const shape = decodeWhole(definition, whole, value);
    if (shape.ok) return shape.value;
    throw malformed(kind, key, shape.problems);
  };
  const readObject = (value: unknown, key: string) => {
    const empty = findEmpty(value);
    if (empty.length > 0) throw malformed(kind, key, empty);
    return readWithoutNulls(withoutNulls(value), key);
  };
  return {
    kind,
    api,
    apiVersion,
    namespaced: definition.namespaced,
    ...(definition.onlyName === undefined ? {} : { onlyName: definition.onlyName }),
    specSchema: definition.spec,
    decode: (value) => {
      const decoded = decodeApplied(definition, whole, withoutNulls(value));
      const empty = findEmpty(value);
      return empty.length === 0
        ? decoded
        : { ok: false, problems: [...empty, ...(decoded.ok ? [] : decoded.problems)] };
    },
    // Our own programs write no nulls.
    read: (text, key) => (text.includes("null") ? readObject : readWithoutNulls)(parseStored(text, kind, key), key),
    readObject,
    write: (resource, before) => writeResource(resource, whole, before),
    make: (metadata, spec) => ({ apiVersion, kind, metadata, spec }),
  };
}

function malformed(kind: string, key: string, problems: readonly Problem[]): PluginError {
  return new PluginError("record-malformed", `Cannot read ${kind} at "${key}": ${formatProblems(problems)}`);
}

function wholeSchema(apiVersion: string, spec: v.GenericSchema) {
  return v.object({
    apiVersion: v.optional(v.string(), apiVersion),
    kind: v.string(),
    metadata: metadataSchema,
    spec,
    status: v.exactOptional(v.unknown()),
  });
}

type WholeSchema = ReturnType<typeof wholeSchema>;

function decodeWhole<Kind extends string, Schema extends v.GenericSchema, Spec>(
  { kind, complete }: Definition<Kind, Schema, Spec>,
  whole: WholeSchema,
  value: unknown,
): Checked<Resource<Kind, Spec>> {
  const shape = decodeShape(whole, value);
  if (!shape.ok) return shape;
  const completed = complete(shape.value.spec as v.InferOutput<Schema>);
  return { ok: true, value: { ...shape.value, kind, spec: completed } };
}

function decodeApplied<Kind extends string, Schema extends v.GenericSchema, Spec>(
  definition: Definition<Kind, Schema, Spec>,
  whole: WholeSchema,
  value: unknown,
): Checked<Resource<Kind, Spec>> {
  const unknown = findUnknownFields(whole, value);
  const shape = decodeWhole(definition, whole, value);
  if (!shape.ok) return { ok: false, problems: [...unknown, ...shape.problems] };

  const envelope = checkEnvelope(definition, value, shape.value);
  const problems = [...unknown, ...envelope, ...(definition.check?.(shape.value.spec, shape.value.metadata) ?? [])];
  return problems.length === 0 ? shape : { ok: false, problems };
}

function checkEnvelope(
  {
    kind,
    api,
    namespaced,
    onlyName,
  }: Pick<Definition<string, v.GenericSchema, unknown>, "kind" | "api" | "namespaced" | "onlyName">,
  given: unknown,
  { apiVersion, metadata }: Resource,
): readonly Problem[] {
  const problems: Problem[] = [];
  const givenKind = v.parse(v.object({ kind: v.string() }), given).kind;
  const { name, namespace } = metadata;

  const served = apiVersionOf(api);
  if (apiVersion !== served) {
    problems.push({ path: "apiVersion", value: apiVersion, message: `is not supported; use "${served}"` });
  }
  if (givenKind !== kind)
    problems.push({ path: "kind", value: givenKind, message: `is not the expected kind; use "${kind}"` });
  if (onlyName !== undefined && name !== onlyName) {
    problems.push({
      path: "metadata.name",
      value: name,
      message: onlyNameMessage(kind, onlyName),
    });
  } else if (!isResourceName(name)) {
    problems.push({ path: "metadata.name", value: name, message: NAME_RULE });
  }
  if (!namespaced && namespace !== undefined) {
    problems.push({
      path: "metadata.namespace",
      value: namespace,
      message: `is not allowed: ${kind} is not namespaced; remove it`,
    });
  }
  if (namespaced && namespace !== undefined && !isResourceName(namespace)) {
    problems.push({ path: "metadata.namespace", value: namespace, message: NAME_RULE });
  }
  return [...problems, ...checkLabels(metadata.labels ?? {}, "metadata.labels")];
}

const NAME_RULE =
  'is not a valid name; use lower-case letters, digits, "-" and ".", beginning and ending with a letter or digit, at most 253 characters';

/** The rule of the CRDs has the same one. */
export function onlyNameMessage(kind: string, onlyName: string): string {
  return `is not allowed: there is only one ${kind}; use "${onlyName}"`;
}

function writeResource(resource: Resource, whole: WholeSchema, before: string | undefined): string {
  const { resourceVersion: _, ...metadata } = resource.metadata;
  const stored = { ...resource, metadata };
  return JSON.stringify(before === undefined ? stored : keepUnknownFields(whole, JSON.parse(before), stored));
}
