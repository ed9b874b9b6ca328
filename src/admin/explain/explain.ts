import { nearestName } from "../../model/nearest-name.ts";
import { quoted } from "../../quote.ts";
import { descriptionOf } from "../../release/crds/all-kinds.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../main/command.ts";
import type { Terminal } from "../main/context.ts";
import { KIND_WORDS } from "../resources/options.ts";
import { kindNamed } from "../resources/reference.ts";
import { type Field, fieldsOfKind } from "./schema-fields.ts";

export async function run(context: Terminal, given: Given): Promise<ExitCode> {
  const [operand, ...more] = given.operands;
  if (operand === undefined || more.length > 0) {
    throw new UsageError(`"explain" takes exactly one KIND or KIND.FIELD; kinds: ${KIND_WORDS.join(", ")}`);
  }
  const [word = "", ...path] = operand.split(".");
  const kind = kindNamed(word);
  const explained = explain(kind, path);
  if (wantsJson(given)) context.stdout(`${JSON.stringify(explained, undefined, 2)}\n`);
  else context.stdout(formatExplained(explained, given.switches.has("recursive") ? "recursive" : "described"));
  return EXIT_OK;
}

/** A field, or the whole kind, with what it means. */
interface Explained {
  readonly kind: string;
  readonly apiVersion: string;
  /** `spec.cidr`; empty for the kind itself. */
  readonly path: string;
  readonly description: string;
  readonly field?: DescribedField;
  readonly fields: readonly DescribedField[];
}

interface DescribedField extends Omit<Field, "fields"> {
  readonly description: string;
  readonly fields: readonly DescribedField[];
}

function explain(kind: AdminKind, path: readonly string[]): Explained {
  const all = fieldsOfKind(kind).map((field) => described(kind.kind, field, ""));
  const field = path.reduce<DescribedField | undefined>((found, name, index) => {
    const here = found?.fields ?? all;
    const next = here.find((each) => each.name === name);
    if (next) return next;
    throw unknownField([kind.kind, ...path.slice(0, index)].join("."), name, here);
  }, undefined);
  return {
    kind: kind.kind,
    apiVersion: kind.codec.apiVersion,
    path: path.join("."),
    description: field?.description ?? descriptionOf(kind.kind, "") ?? "",
    ...(field ? { field } : {}),
    fields: field?.fields ?? all,
  };
}

function described(kind: string, field: Field, above: string): DescribedField {
  const path = above === "" ? field.name : `${above}.${field.name}`;
  const fields = field.fields.map((inner) => described(kind, inner, path));
  return { ...field, description: descriptionOf(kind, path) ?? "", fields };
}

function unknownField(place: string, name: string, fields: readonly Field[]): UsageError {
  const names = fields.map((field) => field.name);
  const nearest = nearestName(name, names);
  const known = names.length === 0 ? "it has no fields" : `known here: ${names.join(", ")}`;
  return new UsageError(
    `${place} has no field ${quoted(name)}; ${nearest === undefined ? known : `did you mean "${nearest}"?`}`,
  );
}

function formatExplained(explained: Explained, style: "described" | "recursive"): string {
  const { kind, apiVersion, field, path, description, fields } = explained;
  return [
    `KIND:     ${kind}`,
    `VERSION:  ${apiVersion}`,
    ...(field ? ["", `FIELD:    ${path} ${typeText(field)}`] : []),
    "",
    "DESCRIPTION:",
    `  ${description}`,
    ...(field ? valueLines(field).map((line) => `  ${line}`) : []),
    ...(fields.length === 0 ? [] : ["", "FIELDS:", ...fields.flatMap((each) => fieldLines(each, style, "  "))]),
    "",
  ].join("\n");
}

function fieldLines(field: DescribedField, style: "described" | "recursive", indent: string): readonly string[] {
  const title = `${indent}${field.name} ${typeText(field)}`;
  if (style === "recursive") {
    return [title, ...field.fields.flatMap((inner) => fieldLines(inner, style, `${indent}  `))];
  }
  return [title, ...[field.description, ...valueLines(field)].map((line) => `${indent}  ${line}`), ""];
}

function typeText({ type, isRequired }: Field): string {
  return `<${type}>${isRequired ? " -required-" : ""}`;
}

function valueLines({ allowed, defaultValue }: Field): readonly string[] {
  return [
    ...(allowed.length === 0 ? [] : [`Allowed values: ${allowed.join(", ")}`]),
    ...(defaultValue === undefined ? [] : [`Default: ${JSON.stringify(defaultValue)}`]),
  ];
}
