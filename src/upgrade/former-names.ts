/** Names that only earlier releases used, and that an upgrade has to know. Pure. */
import { identity } from "../identity.ts";

export { FORMER_API } from "../identity.ts";

const { product } = identity;

/**
 * The aggregated API that served `vendor.org/v3`.
 * @public
 */
export const FORMER_API_SERVER = {
  namespace: `${product}-apiserver`,
  deployment: `${product}-apiserver`,
  service: `${product}-api`,
  apiService: `v3.${identity.apiGroup}`,
} as const;

/** In `kube-system` (manifests) or the system namespace (operator). */
export const FORMER_NODE_DAEMON_SET = `${product}-node`;
/** @public */
export const FORMER_CONTROLLERS = `${product}-kube-controllers`;
/** @public */
export const FORMER_TYPHA = `${product}-typha`;
export const FORMER_CONFIG_MAP = `${product}-config`;
/** @public */
export const FORMER_ETCD_SECRET = `${product}-etcd-secrets`;

/** Policy with another networking plugin: these names do not contain the product's. */
export const FORMER_CANAL = { daemonSet: "canal", etcdDaemonSet: "canal-node", configMap: "canal-config" } as const;

/**
 * Settings of the node agent, now NodeAgentConfiguration.
 * @public
 */
/** Of the former node agents, also as a variable: whether pods may send from the sources that their annotation names. */
export const SOURCE_SPOOFING = { field: "workloadSourceSpoofing", variable: "FELIX_WORKLOADSOURCESPOOFING" } as const;

/** The value that allows it; the other is `Disabled`. */
export function isSpoofingAllowed(value: unknown): boolean {
  return typeof value === "string" && value.toLowerCase() === "any";
}

export const FORMER_AGENT_CONFIGURATION = { kind: "FelixConfiguration", plural: "felixconfigurations" } as const;

/** Annotation of a moved object: the UID of the one that it was copied from. */
export const FORMER_UID = `${identity.labelPrefix}former-uid`;

/** Label of host endpoints for all interfaces whose traffic the temporary policy allows while their default changes. */
export const UPGRADE_MARK = "host-endpoint-upgrade";
