/**
 * BGPConfiguration: BGP between nodes and what it announces. `default` is for all nodes; `node.NAME` overrides some of
 * its fields on one node.
 */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { asNumberField } from "./as-number.ts";
import {
  bgpPortField,
  checkPassword,
  checkRefused,
  interfacePatternField,
  passwordField,
  type RefusedFields,
  restartTimeField,
} from "./bgp-fields.ts";
import { prefixField } from "./fields.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";
import { checkSettingsName, OF_ALL_NODES, OF_ONE_NODE } from "./settings-name.ts";

const NUMBER_16 = "([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";
const NUMBER_32 =
  "([0-9]{1,9}|[1-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}|42949672[0-8][0-9]|429496729[0-5])";
/** Standard, of 16 bits each, or large, of 32 bits each. */
export const COMMUNITY_PATTERN = `^(${NUMBER_16}:${NUMBER_16}|${NUMBER_32}:${NUMBER_32}:${NUMBER_32})$`;
const COMMUNITY = new RegExp(COMMUNITY_PATTERN);
const NOT_A_COMMUNITY =
  'is not a community; use two numbers up to 65535, as in "64512:100", or three for a large one, as in "64512:100:1"';

/** Three numbers of 32 bits, or a name. */
const LONGEST_COMMUNITY = 40;
const communityText = v.pipe(
  v.string(),
  v.maxLength(LONGEST_COMMUNITY, `is longer than ${LONGEST_COMMUNITY} characters; use a shorter name`),
);

const networks = v.array(v.object({ cidr: prefixField }));

const specSchema = v.object({
  nodeToNodeMeshEnabled: v.exactOptional(v.boolean()),
  asNumber: v.exactOptional(asNumberField),
  listenPort: v.exactOptional(bgpPortField),
  bindMode: v.exactOptional(v.picklist(["None", "NodeIP"])),
  logSeverityScreen: v.exactOptional(v.picklist(["Debug", "Info", "Warning", "Error", "Fatal"])),
  serviceClusterIPs: v.exactOptional(networks),
  serviceExternalIPs: v.exactOptional(networks),
  serviceLoadBalancerIPs: v.exactOptional(networks),
  communities: v.exactOptional(
    v.array(
      v.object({
        name: communityText,
        value: v.pipe(v.string(), v.regex(COMMUNITY, NOT_A_COMMUNITY), v.maxLength(LONGEST_COMMUNITY, NOT_A_COMMUNITY)),
      }),
    ),
  ),
  prefixAdvertisements: v.exactOptional(v.array(v.object({ cidr: prefixField, communities: v.array(communityText) }))),
  nodeMeshPassword: v.exactOptional(passwordField),
  nodeMeshMaxRestartTime: v.exactOptional(restartTimeField),
  ignoredInterfaces: v.exactOptional(v.array(interfacePatternField)),
  localWorkloadPeeringIPV4: v.exactOptional(v.string()),
  localWorkloadPeeringIPV6: v.exactOptional(v.string()),
  programClusterRoutes: v.exactOptional(v.string()),
});

export type BGPConfigurationSpec = Readonly<v.InferOutput<typeof specSchema>>;
export type BGPConfiguration = Resource<"BGPConfiguration", BGPConfigurationSpec>;

const NO_POD_PEERS = "is not supported: pods are not BGP peers; remove it";
export const REFUSED_CONFIGURATION_FIELDS: RefusedFields = {
  localWorkloadPeeringIPV4: NO_POD_PEERS,
  localWorkloadPeeringIPV6: NO_POD_PEERS,
  programClusterRoutes:
    "is not supported: BIRD programs the routes of pools without a tunnel, the agent those of others; remove it",
};

/** What `node.NAME` may set. */
export const NODE_FIELDS = [
  "listenPort",
  "logSeverityScreen",
  "communities",
  "prefixAdvertisements",
] as const satisfies readonly (keyof BGPConfigurationSpec)[];

/** The CRD has rules with the same messages. */
export const CONFIGURATION_MESSAGES = {
  onlyDefault: `applies to all nodes; move it to "${OF_ALL_NODES}"`,
  asNumber: `applies to all nodes; move it to "${OF_ALL_NODES}", or set spec.bgp.asNumber of the Node`,
  needsMesh: (field: string) => `ends the mesh that ${field} is for; remove one of the two`,
  community: "is neither a community nor the name of one; add it to communities",
} as const;

export const bgpConfiguration = defineResource({
  kind: "BGPConfiguration",
  api: PRODUCT_API,
  namespaced: false,
  spec: v.optional(specSchema, {}),
  complete: (spec): BGPConfigurationSpec => spec,
  check: (spec, { name }) => [
    ...checkSettingsName(name),
    ...checkRefused(spec, REFUSED_CONFIGURATION_FIELDS),
    ...(name === OF_ALL_NODES ? checkMesh(spec) : checkFieldsOfNode(spec)),
    ...checkPassword(spec.nodeMeshPassword, "spec.nodeMeshPassword"),
    ...checkCommunities(spec),
  ],
});

function checkFieldsOfNode(spec: BGPConfigurationSpec): readonly Problem[] {
  const known: readonly string[] = [...NODE_FIELDS, ...Object.keys(REFUSED_CONFIGURATION_FIELDS)];
  return Object.entries(spec)
    .filter(([field]) => !known.includes(field))
    .map(([field, value]) => ({
      // Whatever follows the name of a password is redacted.
      ...(field === "nodeMeshPassword"
        ? { path: `spec.${field}.${Object.keys(value)[0]}`, value: undefined }
        : { path: `spec.${field}`, value }),
      message: field === "asNumber" ? CONFIGURATION_MESSAGES.asNumber : CONFIGURATION_MESSAGES.onlyDefault,
    }));
}

function checkMesh(spec: BGPConfigurationSpec): readonly Problem[] {
  if (spec.nodeToNodeMeshEnabled !== false) return [];
  return (["nodeMeshPassword", "nodeMeshMaxRestartTime"] as const)
    .filter((field) => spec[field] !== undefined)
    .map((field) => ({
      path: "spec.nodeToNodeMeshEnabled",
      value: false,
      message: CONFIGURATION_MESSAGES.needsMesh(field),
    }));
}

function checkCommunities({ communities = [], prefixAdvertisements = [] }: BGPConfigurationSpec): readonly Problem[] {
  const names = new Set(communities.map(({ name }) => name));
  return prefixAdvertisements.flatMap((advertisement, index) =>
    advertisement.communities.flatMap((text, place) =>
      names.has(text) || isCommunity(text)
        ? []
        : [
            {
              path: `spec.prefixAdvertisements[${index}].communities[${place}]`,
              value: text,
              message: CONFIGURATION_MESSAGES.community,
            },
          ],
    ),
  );
}

export function isCommunity(text: string): boolean {
  return COMMUNITY.test(text);
}

export type BgpSettings = BGPConfigurationSpec &
  Required<
    Pick<
      BGPConfigurationSpec,
      "nodeToNodeMeshEnabled" | "asNumber" | "listenPort" | "bindMode" | "logSeverityScreen" | "communities"
    >
  >;

export const DEFAULT_AS_NUMBER = 64_512;
const DEFAULTS = {
  nodeToNodeMeshEnabled: true,
  asNumber: DEFAULT_AS_NUMBER,
  listenPort: 179,
  bindMode: "None",
  logSeverityScreen: "Info",
  communities: [],
} as const;

/** Each field as `node.NAME` sets it, otherwise `default`, otherwise the built-in value. */
export function bgpSettings(configurations: Iterable<BGPConfiguration>, node: string): BgpSettings {
  const byName = new Map(Array.from(configurations, (each) => [each.metadata.name, each.spec]));
  const { communities: common = [], ...ofAll } = byName.get(OF_ALL_NODES) ?? {};
  const { communities: own = [], ...ofOne } = byName.get(`${OF_ONE_NODE}${node}`) ?? {};
  return { ...DEFAULTS, ...ofAll, ...ofOne, communities: [...own, ...common] };
}
