/** What a release says about a kind besides its schema, which is in `src/model`: columns, rules and descriptions. */
import type { CelRule, StructuralSchema } from "./crd-schema.ts";

/** Texts about fields, by their paths: "" is the kind itself, "spec.cidr". `kubectl explain`, the docs and the admin tool show them. */
export type Descriptions = Readonly<Record<string, string>>;

/** By the path of the field: `spec.cidr`, or "" for the whole object. */
export type RulesByPath = Readonly<Record<string, readonly CelRule[]>>;

/** A column of `kubectl get`; wide columns are shown only with `-o wide`. */
export interface Column {
  readonly name: string;
  readonly path: string;
  readonly type?: "boolean" | "integer" | "number" | "date";
  readonly isWide?: true;
}

/** A kind with a CustomResourceDefinition. */
export interface CustomKind {
  readonly columns: readonly Column[];
  /** The checks of the model in CEL, with its messages: what depends on several fields, and what must not change. */
  readonly rules?: RulesByPath;
  readonly descriptions: Descriptions;
  /** The product writes a status. */
  readonly statusIsWritten?: true;
}

/** A kind without one, since objects of the orchestrator stand for it. Labels of pods are those of the pods themselves. */
interface RepresentedKind {
  readonly orchestratorObject: string;
  readonly descriptions: Descriptions;
}

export type ReleasedKinds = Readonly<Record<string, CustomKind | RepresentedKind>>;

/** Schemas of fields whose check in the model is a function: the same in CEL, with the same messages. */
export type CheckedFields = readonly (readonly [schema: unknown, StructuralSchema])[];

/** The fields of an object, below the path of the object. */
export function below(path: string, own: string, inner: Descriptions): Descriptions {
  const rows = Object.entries(inner).filter(([name]) => name !== "");
  return { [path]: own, ...Object.fromEntries(rows.map(([name, text]) => [`${path}.${name}`, text])) };
}
