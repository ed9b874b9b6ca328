/** BGPFilter: which routes a peer gets and gives. The first rule that matches a route decides. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { addressBits, type Family } from "../ip/address.ts";
import { parsePrefix } from "../ip/prefix.ts";
import { interfacePatternField } from "./bgp-fields.ts";
import { prefixField } from "./fields.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";

const lengths = (bits: number) => {
  const message = `is not a prefix length; use 0 to ${bits}`;
  const length = v.pipe(v.number(), v.integer(message), v.minValue(0, message), v.maxValue(bits, message));
  return v.object({ min: v.exactOptional(length), max: v.exactOptional(length) });
};

const rule = (family: Family) =>
  v.object({
    action: v.picklist(["Accept", "Reject"]),
    cidr: v.exactOptional(prefixField),
    matchOperator: v.exactOptional(v.picklist(["Equal", "NotEqual", "In", "NotIn"])),
    prefixLength: v.exactOptional(lengths(addressBits(family))),
    source: v.exactOptional(v.picklist(["RemotePeers"])),
    interface: v.exactOptional(interfacePatternField),
  });

const specSchema = v.object({
  exportV4: v.exactOptional(v.array(rule(4))),
  importV4: v.exactOptional(v.array(rule(4))),
  exportV6: v.exactOptional(v.array(rule(6))),
  importV6: v.exactOptional(v.array(rule(6))),
});

export type BGPFilterSpec = Readonly<v.InferOutput<typeof specSchema>>;
export type BGPFilterRule = NonNullable<BGPFilterSpec["exportV4"]>[number];
export type BGPFilter = Resource<"BGPFilter", BGPFilterSpec>;

export const RULE_LISTS = [
  ["exportV4", 4],
  ["importV4", 4],
  ["exportV6", 6],
  ["importV6", 6],
] as const satisfies readonly (readonly [keyof BGPFilterSpec, Family])[];

/** The CRD has rules with the same messages. */
export const FILTER_MESSAGES = {
  operator: "needs matchOperator; add Equal, NotEqual, In or NotIn",
  cidr: "needs cidr; add the network that it compares with",
  lengthsWithoutRange: "needs matchOperator In or NotIn; use one of them, or remove prefixLength",
  lengthsReversed: "has a min above max; exchange them",
  family: (family: Family) => `is not an IPv${family} network; move the rule to the list of its family`,
} as const;

export const bgpFilter = defineResource({
  kind: "BGPFilter",
  api: PRODUCT_API,
  namespaced: false,
  spec: v.optional(specSchema, {}),
  complete: (spec): BGPFilterSpec => spec,
  check: (spec) =>
    RULE_LISTS.flatMap(([list, family]) =>
      (spec[list] ?? []).flatMap((each, index) => checkRule(each, family, `spec.${list}[${index}]`)),
    ),
});

function checkRule(rule: BGPFilterRule, family: Family, path: string): readonly Problem[] {
  const { cidr, matchOperator, prefixLength } = rule;
  const problem = (field: keyof BGPFilterRule, message: string): Problem => ({
    path: `${path}.${field}`,
    value: rule[field],
    message,
  });
  const isRange = matchOperator === "In" || matchOperator === "NotIn";
  const { min = 0, max = Number.POSITIVE_INFINITY } = prefixLength ?? {};
  return [
    ...(cidr !== undefined && matchOperator === undefined ? [problem("cidr", FILTER_MESSAGES.operator)] : []),
    ...(cidr === undefined && matchOperator !== undefined ? [problem("matchOperator", FILTER_MESSAGES.cidr)] : []),
    ...(cidr !== undefined && parsePrefix(cidr)?.network.family !== family
      ? [problem("cidr", FILTER_MESSAGES.family(family))]
      : []),
    ...(prefixLength !== undefined && !isRange ? [problem("prefixLength", FILTER_MESSAGES.lengthsWithoutRange)] : []),
    ...(min > max ? [problem("prefixLength", FILTER_MESSAGES.lengthsReversed)] : []),
  ];
}
