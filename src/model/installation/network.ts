/** `spec.vendorNetwork`: the network of the pods. */
import * as v from "valibot";
import { identity } from "../../identity.ts";
import { prefixField } from "../fields.ts";
import { cniSchema } from "./cni.ts";
import { anyObjectField, onlyValues, switchField, wholeNumber } from "./fields.ts";
import { declaredPool } from "./pool.ts";

const NOT_A_TIMEOUT = "is not a number of seconds; use a whole number from 0 (do not wait) to 3600";
const NOT_QUEUES = "is not a number of queues; use a whole number from 1 to 4096";
export const NOT_AN_MTU = "is not an MTU; use a whole number from 68 to 65535, or 0 to detect it on each node";
export const SMALLEST_MTU = 68;

const NOT_A_URL = 'is not a URL; use one that starts with "http://" or "https://"';
const url = v.pipe(v.string(), v.regex(/^https?:\/\/[^\s/]+(\/.*)?$/, NOT_A_URL));

/** Exactly one of its fields; see `checkDetection`. */
export const detectionSchema = v.object({
  firstFound: v.exactOptional(v.boolean()),
  kubernetes: v.exactOptional(v.picklist(["NodeInternalIP"])),
  interface: v.exactOptional(v.string()),
  skipInterface: v.exactOptional(v.string()),
  canReach: v.exactOptional(v.string()),
  cidrs: v.exactOptional(v.array(prefixField)),
});

export type DeclaredDetection = Readonly<v.InferOutput<typeof detectionSchema>>;

export const networkSchema = v.object({
  linuxDataplane: v.exactOptional(
    onlyValues(
      ["Iptables", "Nftables"],
      'is not supported: policy is enforced with nftables; use "Nftables" ("Iptables" means the same)',
    ),
  ),
  windowsDataplane: v.exactOptional(
    onlyValues(["Disabled"], 'is not supported: nodes run Linux; use "Disabled" or remove it'),
  ),
  bgp: v.exactOptional(switchField),
  ipPools: v.exactOptional(v.array(declaredPool)),
  mtu: v.exactOptional(wholeNumber(NOT_AN_MTU, 0, 65_535)),
  nodeAddressAutodetectionV4: v.exactOptional(detectionSchema),
  nodeAddressAutodetectionV6: v.exactOptional(detectionSchema),
  hostPorts: v.exactOptional(switchField),
  hostPortsSNAT: v.exactOptional(switchField),
  bandwidth: v.exactOptional(switchField),
  multiInterfaceMode: v.exactOptional(
    onlyValues(["None"], 'is not supported: a pod has one interface of this network; use "None" or remove it'),
  ),
  containerIPForwarding: v.exactOptional(switchField),
  linuxPolicySetupTimeoutSeconds: v.exactOptional(wholeNumber(NOT_A_TIMEOUT, 0, 3600)),
  featureControl: v.exactOptional(
    v.object({
      ipAddrsNoIpam: v.exactOptional(v.boolean()),
      floatingIPs: v.exactOptional(v.boolean()),
      allowedSourcePrefixes: v.exactOptional(v.boolean()),
      clusterSourcePrefixes: v.exactOptional(v.array(prefixField)),
    }),
  ),
  numQueues: v.exactOptional(wholeNumber(NOT_QUEUES, 1, 4096)),
  readinessGates: v.exactOptional(v.array(url)),
  ipv4Pools: v.exactOptional(v.array(v.string())),
  ipv6Pools: v.exactOptional(v.array(v.string())),
  /** The same as `spec.cni`. */
  cni: v.exactOptional(cniSchema),
  sysctl: v.exactOptional(v.array(anyObjectField)),
});

export type DeclaredNetwork = Readonly<v.InferOutput<typeof networkSchema>>;

export const REFUSED_NETWORK_FIELDS = {
  sysctl: `is not supported: ${identity.title} does not set sysctls of pods; remove it, and set them with securityContext.sysctls of the pods`,
} as const;
