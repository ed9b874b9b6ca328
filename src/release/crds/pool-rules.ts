/** The rules of IP pools as CEL: what must not change, and what depends on several fields. */
import { BLOCK_SIZES } from "../../model/block-sizes.ts";
import { UNUSABLE_RANGES } from "../../model/pool-checks.ts";
import type { CelRule } from "./crd-schema.ts";
import { formatted } from "./formatted-message.ts";

const REPLACE_POOL = "create another pool and disable this one";

/** Rules of `spec`. A CIDR that is not valid is reported by its own rule alone. */
export const POOL_SPEC_RULES: readonly CelRule[] = [
  ...([4, 6] as const).flatMap(blockSizeRules),
  {
    rule: "self.ipipMode == 'Never' || !isCIDR(self.cidr) || cidr(self.cidr).ip().family() == 4",
    ...problemOf("ipipMode", { message: 'is not supported for IPv6; use "Never", or vxlanMode' }),
  },
  {
    rule: "self.ipipMode == 'Never' || self.vxlanMode == 'Never'",
    ...problemOf("ipipMode", {
      message: 'cannot be combined with vxlanMode %s; set one of the two to "Never"',
      values: ["self.vxlanMode"],
    }),
  },
  {
    rule: `!isCIDR(self.cidr) || !isCIDR(oldSelf.cidr) || ${blockSize("self")} == ${blockSize("oldSelf")}`,
    ...problemOf("blockSize", {
      message: `cannot be changed from %s; ${REPLACE_POOL}`,
      values: [`string(${blockSize("oldSelf")})`],
    }),
  },
];

export const UNUSABLE_RANGE_RULES: readonly CelRule[] = UNUSABLE_RANGES.map(([range, meaning]) => {
  const network = range.replace(/\/.*/, "");
  return {
    rule: `!isCIDR(self) || !(cidr('${range}').containsIP(cidr(self).ip()) || cidr(self).containsIP('${network}'))`,
    message: `overlaps the ${meaning} range ${range}; use a CIDR that does not overlap it`,
  };
});

/** Rules of `spec.cidr`. */
export const POOL_CIDR_RULES: readonly CelRule[] = [
  {
    // Another spelling of the same CIDR is not a change.
    rule: "self == oldSelf || (isCIDR(self) && isCIDR(oldSelf) && cidr(self) == cidr(oldSelf))",
    message: `cannot be changed; ${REPLACE_POOL}`,
    messageExpression: formatted(`cannot be changed from "%s"; ${REPLACE_POOL}`, ["oldSelf"]),
  },
  ...UNUSABLE_RANGE_RULES,
];

export function blockSizeRules(family: 4 | 6): readonly CelRule[] {
  const { shortest, longest } = BLOCK_SIZES[family];
  const length = "cidr(self.cidr).prefixLength()";
  const unconcerned = `!has(self.blockSize) || !isCIDR(self.cidr) || cidr(self.cidr).ip().family() != ${family}`;
  const least = `(${length} > ${shortest} ? ${length} : ${shortest})`;
  return [
    {
      rule: `${unconcerned} || (self.blockSize >= ${shortest} && self.blockSize <= ${longest})`,
      ...problemOf("blockSize", { message: `is out of range for IPv${family}; use ${shortest} to ${longest}` }),
    },
    {
      rule: `${unconcerned} || self.blockSize < ${shortest} || self.blockSize >= ${length}`,
      ...problemOf("blockSize", {
        message: `makes a block larger than the pool %s; use %s to ${longest}, or a larger pool`,
        values: ["self.cidr", `string(${least})`],
      }),
    },
  ];
}

interface FieldMessage {
  readonly message: string;
  /** The expressions whose values replace `%s`. */
  readonly values?: readonly string[];
}

/** Of a rule about several fields, the API server names the field that is given here, but not its value. */
function problemOf(field: "blockSize" | "ipipMode", { message, values = [] }: FieldMessage): Omit<CelRule, "rule"> {
  const value = field === "blockSize" ? `string(${blockSize("self")})` : `self.${field}`;
  return {
    fieldPath: `.${field}`,
    message: message.replaceAll("%s", "…"),
    messageExpression: formatted(`%s: ${message}`, [value, ...values]),
  };
}

/** The block size of a pool; its default depends on the CIDR, so that it cannot be a default of the schema. */
function blockSize(pool: string): string {
  const length = `cidr(${pool}.cidr).prefixLength()`;
  const byDefault = (family: 4 | 6) => {
    const { usual } = BLOCK_SIZES[family];
    return `(${length} > ${usual} ? ${length} : ${usual})`;
  };
  const isIpv4 = `cidr(${pool}.cidr).ip().family() == 4`;
  return `(has(${pool}.blockSize) ? ${pool}.blockSize : (${isIpv4} ? ${byDefault(4)} : ${byDefault(6)}))`;
}
