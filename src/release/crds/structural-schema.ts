/**
 * The schema of a kind as the orchestrator's API wants it: structural, with
 * defaults, limits and CEL rules that have the messages of the schema. Pure.
 *
 * What a check function of a schema means cannot be read from it: for those
 * schemas, `checked-fields.ts` has the rules.
 */
import { NETWORK_FIELD } from "../../model/installation/names.ts";
import { MOST_POOLS } from "../../model/installation/pool.ts";
import { MOST_LISTED } from "../../model/ip-address-list.ts";
import { isObject } from "../../model/shape.ts";
import { CHECKED_FIELDS, FIELDS_IN_EGRESS_RULES, FIELDS_IN_RULES } from "./checked-fields.ts";
import type { CelRule, StructuralSchema } from "./crd-schema.ts";

/** What the generator knows about a field besides its schema, by its path: `spec.cidr`. */
export interface FieldNotes {
  readonly describe: (path: string) => string | undefined;
  readonly rules: (path: string) => readonly CelRule[];
}

type Members = Readonly<Record<string, unknown>>;

/** Longer texts are refused; without limits the API server does not accept rules about texts and lists. */
const LONGEST_TEXT = 1024;
/** A block has at most this many addresses, and so have lists of them. */
const LONGEST_LIST = 4096;
/** The API server estimates the cost of validations for the longest lists, and refuses a definition that costs too much. */
const MOST_RULES = 128;
const LONGEST_LIST_IN_RULE = 256;

export function structuralSchema(schema: unknown, path: string, notes: FieldNotes): StructuralSchema {
  const { inner, isNullable, defaultValue } = unwrapped(schema);
  const description = notes.describe(path) ?? describeMember(path, notes);
  const checked = fieldsInRule(path)?.get(inner) ?? CHECKED_FIELDS.get(inner);
  const shape = checked ?? shapeOf(inner, path, notes);
  // A default of the whole spec would have to satisfy the rules without the defaults inside it.
  const hasDefault = defaultValue !== undefined && (path !== "spec" || notes.rules(path).length === 0);
  const rules = [...(shape["x-kubernetes-validations"] ?? []), ...boundsOf(inner), ...notes.rules(path)];
  return {
    ...(description === undefined ? {} : { description }),
    ...shape,
    ...(isNullable ? { nullable: true } : {}),
    ...(hasDefault ? { default: defaultValue } : {}),
    ...(rules.length === 0 ? {} : { "x-kubernetes-validations": rules }),
  };
}

/** A field of the members of a list is described under its path without brackets, as `explain` shows it. */
function describeMember(path: string, { describe }: FieldNotes): string | undefined {
  return path.endsWith("[]") ? undefined : describe(path.replaceAll("[]", ""));
}

function shapeOf(schema: Members, path: string, notes: FieldNotes): StructuralSchema {
  const { type, item, value, entries, options } = schema;
  switch (type) {
    case "object":
    case "loose_object":
      return objectShape(isObject(entries) ? entries : {}, path, notes);
    case "array":
      return {
        type: "array",
        maxItems: longestList(path),
        ...listKeys(path),
        items: structuralSchema(item, `${path}[]`, notes),
      };
    case "record":
      return { type: "object", additionalProperties: structuralSchema(value, `${path}{}`, notes) };
    case "picklist":
      return picklistShape(Array.isArray(options) ? options : []);
    case "string":
      requireNoCheck(schema, path);
      return { type: "string", maxLength: longestText(schema) };
    case "boolean":
      return { type: "boolean" };
    case "number":
      return { type: "integer", format: "int32" };
    default:
      throw new Error(`Cannot describe "${path}" in a CRD: its schema is of type "${type}"; add a case for it`);
  }
}

function fieldsInRule(path: string): ReadonlyMap<unknown, StructuralSchema> | undefined {
  if (!isInRule(path)) return undefined;
  return path.startsWith("spec.egress") ? FIELDS_IN_EGRESS_RULES : FIELDS_IN_RULES;
}

function isInRule(path: string): boolean {
  return /^spec\.(ingress|egress)\[\]/.test(path);
}

const NETWORK = `spec.${NETWORK_FIELD}`;

/** Lists that a rule compares with each other, or whose members have rules: of BGP and of installations. */
const SHORT_LISTS: Readonly<Record<string, number>> = {
  "spec.serviceClusterIPs": 128,
  "spec.serviceExternalIPs": 128,
  "spec.serviceLoadBalancerIPs": 128,
  "spec.ignoredInterfaces": 64,
  "spec.filters": 64,
  "spec.communities": 64,
  "spec.prefixAdvertisements": 64,
  "spec.prefixAdvertisements[].communities": 16,
  "spec.exportV4": 128,
  "spec.importV4": 128,
  "spec.exportV6": 128,
  "spec.importV6": 128,
  "spec.imagePullSecrets": 32,
  "spec.controlPlaneTolerations": 64,
  "spec.componentResources": 2,
  "spec.datastore.etcd.endpoints": 32,
  "spec.console.hosts": 32,
  "spec.addresses": MOST_LISTED,
  [`${NETWORK}.ipPools`]: MOST_POOLS,
  [`${NETWORK}.ipPools[].allowedUses`]: 2,
  [`${NETWORK}.readinessGates`]: 32,
  [`${NETWORK}.ipv4Pools`]: 64,
  [`${NETWORK}.ipv6Pools`]: 64,
  [`${NETWORK}.nodeAddressAutodetectionV4.cidrs`]: 32,
  [`${NETWORK}.nodeAddressAutodetectionV6.cidrs`]: 32,
};

/** Lists whose members are told apart by a field. */
const LIST_KEYS: Readonly<Record<string, string>> = { [`${NETWORK}.ipPools`]: "cidr" };

/** Lists of texts that repeat none. */
const SETS: readonly string[] = ["spec.addresses"];

function listKeys(path: string): StructuralSchema {
  if (SETS.includes(path)) return { "x-kubernetes-list-type": "set" };
  const key = LIST_KEYS[path];
  return key === undefined ? {} : { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key] };
}

/** Lists of a rule whose members have rules of their own. */
const SHORT_LISTS_IN_RULE: Readonly<Record<string, number>> = { "http.methods": 32, "http.paths": 32 };

function longestList(path: string): number {
  const short = SHORT_LISTS[path];
  if (short !== undefined) return short;
  if (isInRule(path)) return SHORT_LISTS_IN_RULE[path.replace(/^[^.]*\.[^.]*\./, "")] ?? LONGEST_LIST_IN_RULE;
  return path === "spec.ingress" || path === "spec.egress" ? MOST_RULES : LONGEST_LIST;
}

function longestText({ pipe }: Members): number {
  const steps = Array.isArray(pipe) ? pipe.filter(isObject) : [];
  return Number(steps.find((step) => step["type"] === "max_length")?.["requirement"] ?? LONGEST_TEXT);
}

/** A check is code: without rules of its own, the API server would accept everything. */
function requireNoCheck({ pipe }: Members, path: string): void {
  if (!Array.isArray(pipe) || !pipe.some((step) => isObject(step) && step["type"] === "check")) return;
  throw new Error(
    `Cannot describe "${path}" in a CRD: its schema has a check; add its rules to the file of its kind in src/release/crds`,
  );
}

function picklistShape(options: readonly unknown[]): StructuralSchema {
  if (options.every((option) => typeof option === "number")) return { type: "integer", format: "int32", enum: options };
  return { type: "string", enum: options };
}

function objectShape(entries: Members, path: string, notes: FieldNotes): StructuralSchema {
  const properties = Object.entries(entries).map(
    ([name, member]) => [name, structuralSchema(member, `${path}.${name}`, notes)] as const,
  );
  const required = Object.entries(entries).flatMap(([name, member]) => (unwrapped(member).isRequired ? [name] : []));
  return {
    type: "object",
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(properties),
  };
}

interface Unwrapped {
  readonly inner: Members;
  readonly isRequired: boolean;
  readonly isNullable: boolean;
  readonly defaultValue: unknown;
}

/** Without what makes the schema optional or nullable. */
function unwrapped(schema: unknown): Unwrapped {
  if (!isObject(schema)) return { inner: {}, isRequired: false, isNullable: false, defaultValue: undefined };
  const { wrapped, type } = schema;
  if (wrapped === undefined) return { inner: schema, isRequired: true, isNullable: false, defaultValue: undefined };
  const inside = unwrapped(wrapped);
  return {
    inner: inside.inner,
    isRequired: inside.isRequired && type === "nullable",
    isNullable: inside.isNullable || type === "nullable" || type === "nullish",
    defaultValue: schema["default"] ?? inside.defaultValue,
  };
}

/** Limits of a number and patterns become rules, because only a rule has a message of its own. */
function boundsOf({ pipe }: Members): readonly CelRule[] {
  const steps = Array.isArray(pipe) ? pipe.filter(isObject) : [];
  return steps.flatMap(({ type, requirement, message }): CelRule[] => {
    if (requirement instanceof RegExp) {
      return [{ rule: `self.matches(r'${requirement.source}')`, message: String(message) }];
    }
    const sign = type === "min_value" ? ">=" : type === "max_value" ? "<=" : undefined;
    return sign === undefined ? [] : [{ rule: `self ${sign} ${requirement}`, message: String(message) }];
  });
}
