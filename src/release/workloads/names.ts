/** The names that the rendered objects, the installation of a node and the operator agree on. */
import { FLOWS_API, identity, OPERATOR_API } from "../../identity.ts";

/** Selects the pods of a workload; the selector of a workload cannot be changed later. */
export function podLabels(workload: string): Readonly<Record<string, string>> {
  return { "app.kubernetes.io/name": workload, "app.kubernetes.io/part-of": identity.product };
}

/** Annotations of pods: if one of them changes, the pods are replaced. */
export const CONFIG_HASH = `${OPERATOR_API.group}/cni-config-hash`;
export const ETCD_SECRET_HASH = `${OPERATOR_API.group}/etcd-secret-hash`;

/** Annotation of the node agent's pods: they request tokens of the plugin that are bound to their Node. */
export const BINDS_TOKENS = `${OPERATOR_API.group}/binds-tokens`;

export const NETWORK_CONFIG_MAP = "cni-config";
export const NETWORK_CONFIG_KEY = "config";
/** Where the containers find the network config, and the certificates of etcd. */
export const NETWORK_CONFIG_MOUNT = `/etc/${identity.product}-install`;
export const ETCD_SECRETS_MOUNT = `/etc/${identity.product}-etcd-secrets`;

/** An administrator writes it in a cluster without kube-proxy, in the namespace of the operator: where the API server is. */
export const API_ENDPOINT_CONFIG_MAP = "kubernetes-services-endpoint";

/** The DaemonSet that removes the product from the nodes. */
export const UNINSTALL = `${identity.nodeAgent}-uninstall`;

/** Of the node agent (NodeAgentConfiguration `healthPort`), the controllers and the operator (`HEALTH_PORT`). */
export const NODE_HEALTH_PORT = 9099;
export const CONTROLLERS_HEALTH_PORT = 9095;
export const OPERATOR_HEALTH_PORT = 9096;

/** Keys of a Secret with a certificate of the product, and of the ConfigMap with its authority. */
export const TLS_KEYS = {
  authorities: "ca.crt",
  authorityKey: "ca.key",
  certificate: "tls.crt",
  key: "tls.key",
} as const;

/** Of the console: its workload, account, Service and role; the Secret with its certificate, the ConfigMap with the authority. */
export const CONSOLE = identity.console;
/** Where its pod serves the page over TLS (`CONSOLE_PORT`), and its health (`HEALTH_PORT`). */
export const CONSOLE_PORT = 8443;
export const CONSOLE_HEALTH_PORT = 9092;
export const CONSOLE_HEALTH_PATH = "/healthz";
/**
 * Where its pod finds the certificate (`TLS_CERT_FILE`) and the key (`TLS_KEY_FILE`), which are renewed there while it runs. Every
 * name and address that it may be reached under is in the certificate.
 */
export const CONSOLE_TLS_MOUNT = `/etc/${CONSOLE}-tls`;
/** Variable of the controllers, which make the certificate: "Enabled" or "Disabled". */
export const CONSOLE_VARIABLE = "CONSOLE";
/** Tells the console the Service of a Prometheus: `NAMESPACE/SERVICE:PORT`. */
export const ALERTS_VARIABLE = "ALERTS_SERVICE";
/** Annotation of its Service: further names and addresses for the certificate, separated by commas. */
export const CONSOLE_HOSTS = `${OPERATOR_API.group}/console-hosts`;

/** Of the API of flows: its Service, the Secret and the ConfigMap with its certificates, its roles. */
export const FLOWS = `${identity.product}-flows`;
/** The role of the node agents that reach it, and the role of those who may read it. */
export const FLOW_AGENTS = `${FLOWS}-agents`;
export const FLOW_READER = `${FLOWS}-reader`;
export const FLOWS_API_SERVICE = `${FLOWS_API.version}.${FLOWS_API.group}`;
/** Where the controllers serve the API to the API server, and links to node agents. */
export const FLOWS_API_PORT = 9097;
export const FLOWS_LINK_PORT = 9098;
/** Of the port for links, in the Service. */
export const FLOWS_LINK = "links";
/** Of the tokens with which node agents open links. */
export const FLOWS_AUDIENCE = FLOWS_API.group;
/** Variable of the controllers: "Enabled" or "Disabled". */
export const FLOWS_VARIABLE = "FLOWS";

/** In the certificate of the API. */
export function flowServerName(namespace: string): string {
  return `${FLOWS}.${namespace}.svc`;
}
