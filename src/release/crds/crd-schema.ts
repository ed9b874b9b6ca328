/** The parts of a CRD's schema that this product uses. */

/** A rule in the Common Expression Language, evaluated by the API server. */
export interface CelRule {
  readonly rule: string;
  /** Used if there is no `messageExpression`, or if it fails. */
  readonly message: string;
  readonly messageExpression?: string;
  /** `.cidr`: the field that the rule complains about, if it is not the one that has the rule. */
  readonly fieldPath?: string;
}

export interface StructuralSchema {
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly required?: readonly string[];
  readonly items?: StructuralSchema;
  readonly additionalProperties?: StructuralSchema;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly nullable?: true;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  /**
   * Of a list: its members are told apart by these keys, so that different tools can own different members; or each value
   * is in it once.
   */
  readonly "x-kubernetes-list-type"?: "map" | "set";
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-int-or-string"?: true;
  readonly "x-kubernetes-preserve-unknown-fields"?: true;
  readonly "x-kubernetes-validations"?: readonly CelRule[];
}
