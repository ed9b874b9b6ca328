/**
 * IPPool. The checks of the model are in `src/model/pool-checks.ts` and `ip-pool.ts`, with the messages; the test on a real API
 * server compares both.
 */
import { BLOCK_SIZES } from "../../model/block-sizes.ts";
import { POOL_MESSAGES, UNUSABLE_RANGES } from "../../model/pool-checks.ts";
import { formatted } from "./cel.ts";
import type { CelRule } from "./crd-schema.ts";
import type { ReleasedKinds } from "./kind.ts";

export const IP_POOL: ReleasedKinds = {
  IPPool: {
    columns: [
      { name: "CIDR", path: ".spec.cidr" },
      { name: "Block Size", path: ".spec.blockSize", type: "integer", isWide: true },
      { name: "NAT", path: ".spec.natOutgoing", type: "boolean", isWide: true },
      { name: "IPIP", path: ".spec.ipipMode", isWide: true },
      { name: "VXLAN", path: ".spec.vxlanMode", isWide: true },
      { name: "Uses", path: ".spec.allowedUses", isWide: true },
      { name: "Disabled", path: ".spec.disabled", type: "boolean" },
      { name: "Selector", path: ".spec.nodeSelector" },
      { name: "Namespaces", path: ".spec.namespaceSelector", isWide: true },
    ],
    rules: {
      // A CIDR that is not valid is reported by its own rule alone.
      spec: [...([4, 6] as const).flatMap(blockSizeRules), ...tunnelRules(), fixedBlockSize()],
      "spec.cidr": [fixedCidr(), ...unusableRangeRules()],
    },
    descriptions: {
      "": "A range of addresses for workloads and tunnels, cut into blocks that nodes claim",
      spec: "The pool's range and how it is used",
      "spec.cidr": "Range of addresses; cannot change, and must not overlap another pool",
      "spec.ipipMode": "When packets to other nodes are encapsulated with IPIP; IPv4 only",
      "spec.vxlanMode": "When packets to other nodes are encapsulated with VXLAN",
      "spec.natOutgoing": "Masquerade packets from the pool to destinations outside all pools",
      "spec.nodeSelector": "Selector of the nodes that use the pool",
      "spec.namespaceSelector":
        "Selector, by labels, of the namespaces whose pods use the pool; without it every pod does, and containers without a pod",
      "spec.keepAddresses":
        "Whether pods whose names come again (StatefulSets), and named containers, get their addresses of the pool again after they were deleted; false: not even those with the annotation keepAddresses",
      "spec.keepFor": "How long a kept address waits for its pod; 0s: until it is released (default: 24h)",
      "spec.blockSize":
        "Prefix length of a block (default: 26 for IPv4, 122 for IPv6, or the whole pool if it is smaller); cannot change",
      "spec.disabled": "Assign no new addresses from the pool",
      "spec.disableBGPExport": "Do not announce the pool's blocks with BGP",
      "spec.allowedUses": "What the addresses may be used for",
      "spec.cooldownSeconds":
        "Seconds for which a released address is given to no other owner, even if the pool is full; 0 for the usual rest of 3 minutes, which a full pool cuts short (default: cooldownSeconds of the IPAMConfiguration)",
    },
  },
};

function tunnelRules(): readonly CelRule[] {
  return [
    {
      rule: "self.ipipMode == 'Never' || !isCIDR(self.cidr) || cidr(self.cidr).ip().family() == 4",
      ...problemOf("ipipMode", { message: POOL_MESSAGES.ipipFamily }),
    },
    {
      rule: "self.ipipMode == 'Never' || self.vxlanMode == 'Never'",
      ...problemOf("ipipMode", { message: POOL_MESSAGES.twoTunnels("%s"), values: ["self.vxlanMode"] }),
    },
  ];
}

function fixedBlockSize(): CelRule {
  return {
    rule: `!isCIDR(self.cidr) || !isCIDR(oldSelf.cidr) || ${blockSize("self")} == ${blockSize("oldSelf")}`,
    ...problemOf("blockSize", {
      message: POOL_MESSAGES.fixed(" from %s"),
      values: [`string(${blockSize("oldSelf")})`],
    }),
  };
}

function fixedCidr(): CelRule {
  return {
    // Another spelling of the same CIDR is not a change.
    rule: "self == oldSelf || (isCIDR(self) && isCIDR(oldSelf) && cidr(self) == cidr(oldSelf))",
    message: POOL_MESSAGES.fixed(""),
    messageExpression: formatted(POOL_MESSAGES.fixed(' from "%s"'), ["oldSelf"]),
  };
}

export function unusableRangeRules(): readonly CelRule[] {
  return UNUSABLE_RANGES.map(([range, meaning]) => {
    const network = range.replace(/\/.*/, "");
    return {
      rule: `!isCIDR(self) || !(cidr('${range}').containsIP(cidr(self).ip()) || cidr(self).containsIP('${network}'))`,
      message: POOL_MESSAGES.range(meaning, range),
    };
  });
}

export function blockSizeRules(family: 4 | 6): readonly CelRule[] {
  const sizes = BLOCK_SIZES[family];
  const { shortest, longest } = sizes;
  const length = "cidr(self.cidr).prefixLength()";
  const unconcerned = `!has(self.blockSize) || !isCIDR(self.cidr) || cidr(self.cidr).ip().family() != ${family}`;
  const least = `(${length} > ${shortest} ? ${length} : ${shortest})`;
  return [
    {
      rule: `${unconcerned} || (self.blockSize >= ${shortest} && self.blockSize <= ${longest})`,
      ...problemOf("blockSize", { message: POOL_MESSAGES.blockSize(family, sizes) }),
    },
    {
      rule: `${unconcerned} || self.blockSize < ${shortest} || self.blockSize >= ${length}`,
      ...problemOf("blockSize", {
        message: POOL_MESSAGES.largeBlock("%s", "%s", longest),
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
