/** All fields whose check in the model is a function: what stands for it in a schema. A test on a real API server compares both. */
import { BGP_FIELDS } from "./bgp.ts";
import type { StructuralSchema } from "./crd-schema.ts";
import { ENDPOINT_FIELDS } from "./endpoints.ts";
import { COMMON_FIELDS, COMMON_FIELDS_IN_RULES } from "./fields.ts";
import { INSTALLATION_FIELDS } from "./installation/rules.ts";
import { IPAM_FIELDS } from "./ipam.ts";
import { NODE_AGENT_FIELDS } from "./node-agent-configuration.ts";
import { POLICY_FIELDS } from "./policies.ts";
import { EGRESS_RULE_FIELDS, RULE_FIELDS } from "./policy-rule.ts";

type SchemaOf = ReadonlyMap<unknown, StructuralSchema>;

export const CHECKED_FIELDS: SchemaOf = new Map([
  ...COMMON_FIELDS,
  ...IPAM_FIELDS,
  ...ENDPOINT_FIELDS,
  ...POLICY_FIELDS,
  ...RULE_FIELDS,
  ...NODE_AGENT_FIELDS,
  ...BGP_FIELDS,
  ...INSTALLATION_FIELDS,
]);

/** In rules of policies. */
export const FIELDS_IN_RULES: SchemaOf = new Map(COMMON_FIELDS_IN_RULES);

export const FIELDS_IN_EGRESS_RULES: SchemaOf = new Map([...COMMON_FIELDS_IN_RULES, ...EGRESS_RULE_FIELDS]);
