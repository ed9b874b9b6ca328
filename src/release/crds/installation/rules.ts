/**
 * The rules of an Installation as CEL, with the messages of the model: what can be said without the defaults and
 * without the cluster. The operator reports the rest in its conditions.
 */
import { DETECTION_MESSAGES } from "../../../model/installation/check.ts";
import { CNI_DIFFERS, PLUGIN_DIFFERS, SAME_CNI_FIELDS } from "../../../model/installation/cni.ts";
import { NOT_A_HOST } from "../../../model/installation/console.ts";
import { DATASTORE_MESSAGES } from "../../../model/installation/datastore.ts";
import { anyObjectField, quantityField } from "../../../model/installation/fields.ts";
import { DEFAULT_NAME, NOT_AN_INSTALLATION, OVERLAY_NAME } from "../../../model/installation/installation.ts";
import { NETWORK_FIELD } from "../../../model/installation/names.ts";
import { NOT_AN_MTU, REFUSED_NETWORK_FIELDS, SMALLEST_MTU } from "../../../model/installation/network.ts";
import { IPIP_OF_IPV6 } from "../../../model/installation/pool.ts";
import { maxUnavailableField, REFUSED_SPEC_FIELDS, SHARE_OF_NODES } from "../../../model/installation/spec.ts";
import { refusals } from "../cel.ts";
import type { CelRule } from "../crd-schema.ts";
import { blockSizeRules, unusableRangeRules } from "../ip-pool.ts";
import type { CheckedFields, RulesByPath } from "../kind.ts";

const METHODS = ["firstFound", "kubernetes", "interface", "skipInterface", "canReach", "cidrs"];
const count = `[${METHODS.map((method) => `has(self.${method})`).join(", ")}].filter(given, given).size()`;

const DETECTION: readonly CelRule[] = [
  { rule: `${count} >= 1`, message: DETECTION_MESSAGES.none },
  { rule: `${count} <= 1`, message: DETECTION_MESSAGES.several },
  {
    rule: "!has(self.firstFound) || self.firstFound",
    fieldPath: ".firstFound",
    message: DETECTION_MESSAGES.notFirst,
  },
];

const POOL: readonly CelRule[] = [
  ...([4, 6] as const).flatMap(blockSizeRules),
  {
    rule: "!has(self.encapsulation) || !self.encapsulation.startsWith('IPIP') || !isCIDR(self.cidr) || cidr(self.cidr).ip().family() == 4",
    fieldPath: ".encapsulation",
    message: IPIP_OF_IPV6,
  },
];

const SAME_PLUGIN: CelRule = {
  rule: "!has(self.type) || !has(self.plugin) || self.type == self.plugin",
  fieldPath: ".plugin",
  message: PLUGIN_DIFFERS,
};

export const INSTALLATION_RULES: RulesByPath = {
  "": [
    {
      rule: `self.metadata.name in ['${DEFAULT_NAME}', '${OVERLAY_NAME}']`,
      message: `metadata.name ${NOT_AN_INSTALLATION}`,
    },
  ],
  spec: [...refusals(REFUSED_SPEC_FIELDS), ...SAME_CNI_FIELDS.map(sameCni), datastoreIsFixed()],
  "spec.cni.ipam": [SAME_PLUGIN],
  "spec.datastore.etcd": [
    {
      rule: "!has(self.endpoints) || size(self.endpoints) == 0 || !has(self.discoverySrv)",
      fieldPath: ".discoverySrv",
      message: DATASTORE_MESSAGES.twoSources,
    },
  ],
  "spec.console.hosts[]": [{ rule: "self.matches('[a-z]') && !self.contains(':') || isIP(self)", message: NOT_A_HOST }],
  [`spec.${NETWORK_FIELD}.cni.ipam`]: [SAME_PLUGIN],
  [`spec.${NETWORK_FIELD}`]: refusals(REFUSED_NETWORK_FIELDS),
  [`spec.${NETWORK_FIELD}.mtu`]: [{ rule: `self == 0 || self >= ${SMALLEST_MTU}`, message: NOT_AN_MTU }],
  [`spec.${NETWORK_FIELD}.nodeAddressAutodetectionV4`]: DETECTION,
  [`spec.${NETWORK_FIELD}.nodeAddressAutodetectionV6`]: DETECTION,
  [`spec.${NETWORK_FIELD}.ipPools[]`]: POOL,
  [`spec.${NETWORK_FIELD}.ipPools[].cidr`]: unusableRangeRules(),
};

export const INSTALLATION_FIELDS: CheckedFields = [
  [anyObjectField, { type: "object", "x-kubernetes-preserve-unknown-fields": true }],
  [quantityField, { "x-kubernetes-int-or-string": true }],
  // Not CEL: in its estimate of costs a number or text is a text without a limit.
  [maxUnavailableField, { "x-kubernetes-int-or-string": true, minimum: 1, pattern: SHARE_OF_NODES.source }],
];

function sameCni([ownField, nestedField]: (typeof SAME_CNI_FIELDS)[number]): CelRule {
  const [own, nested] = [`cni.${ownField}`, `${NETWORK_FIELD}.cni.${nestedField}`];
  return {
    rule: `!${given(own)} || !${given(nested)} || self.${own} == self.${nested}`,
    fieldPath: `.${nested}`,
    message: CNI_DIFFERS,
  };
}

/** Whether the field and everything above it is set: `has(self.a) && has(self.a.b)`. */
function given(path: string, self = "self"): string {
  const parts = path.split(".");
  return `(${parts.map((_, index) => `has(${self}.${parts.slice(0, index + 1).join(".")})`).join(" && ")})`;
}

function datastoreIsFixed(): CelRule {
  const type = (self: string) => `(${given("datastore.type", self)} ? ${self}.datastore.type : 'Kubernetes')`;
  return {
    rule: `${type("self")} == ${type("oldSelf")}`,
    fieldPath: ".datastore",
    message: `type ${DATASTORE_MESSAGES.fixed}`,
  };
}
