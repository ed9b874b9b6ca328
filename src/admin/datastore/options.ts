/** The settings that select a datastore: the name of each as an option, in the environment, in the file and in a network config. */
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import type { KubeAccess } from "../../config/kube-access.ts";
import { identity } from "../../identity.ts";
import type { Option } from "../main/option.ts";
import { MISMATCH_OPTION } from "../version/compare-with-cluster.ts";

export interface DatastoreSetting {
  readonly option: Option;
  /** It has no option: only a variable and a field of the file. */
  readonly isFileOnly?: true;
  /** Its environment variable, the one that operators know from other tools. */
  readonly variable: string;
  /** Its name in the tool's configuration file. */
  readonly field: string;
  /** Its name in a network config; the same checks apply. */
  readonly wire: string;
  /** The type of datastore it belongs to; absent if it belongs to all. */
  readonly of?: DatastoreSettings["kind"];
  /** It says how the orchestrator's API is reached, and does not select a datastore. */
  readonly access?: keyof KubeAccess;
}

/** The tool's configuration file, unless `--config` names another. */
export const CONFIG_FILE = `${identity.configDirectory}/${identity.adminTool}.yaml`;
/** Used if the usual file does not exist: the name that the peer's users know. */
export const OTHER_CONFIG_FILE = `${identity.configDirectory}/${identity.adminTool}.cfg`;

export const DATASTORE_SETTINGS: readonly DatastoreSetting[] = [
  {
    option: {
      name: "datastore-type",
      value: "TYPE",
      oneOf: ["etcdv3", "embedded", "orchestrator", "kubernetes"],
      summary: "Datastore type: etcdv3 (default), embedded, or orchestrator (also: kubernetes)",
    },
    variable: "DATASTORE_TYPE",
    field: "datastoreType",
    wire: "datastore_type",
  },
  {
    option: { name: "datastore-path", value: "FILE", summary: "File of the embedded datastore" },
    variable: "DATASTORE_PATH",
    field: "datastorePath",
    wire: "datastore_path",
    of: "embedded",
  },
  {
    option: { name: "etcd-endpoints", value: "URLS", summary: "etcd endpoint URLs, separated by commas" },
    variable: "ETCD_ENDPOINTS",
    field: "etcdEndpoints",
    wire: "etcd_endpoints",
    of: "etcd",
  },
  {
    option: {
      name: "etcd-discovery-srv",
      value: "DOMAIN",
      summary: "Domain whose SRV records list the etcd endpoints",
    },
    variable: "ETCD_DISCOVERY_SRV",
    field: "etcdDiscoverySrv",
    wire: "etcd_discovery_srv",
    of: "etcd",
  },
  {
    option: { name: "etcd-ca-cert-file", value: "FILE", summary: "CA certificates that verify the etcd server (TLS)" },
    variable: "ETCD_CA_CERT_FILE",
    field: "etcdCACertFile",
    wire: "etcd_ca_cert_file",
    of: "etcd",
  },
  {
    option: { name: "etcd-cert-file", value: "FILE", summary: "Client certificate for etcd (mutual TLS)" },
    variable: "ETCD_CERT_FILE",
    field: "etcdCertFile",
    wire: "etcd_cert_file",
    of: "etcd",
  },
  {
    option: { name: "etcd-key-file", value: "FILE", summary: "Private key of the client certificate" },
    variable: "ETCD_KEY_FILE",
    field: "etcdKeyFile",
    wire: "etcd_key_file",
    of: "etcd",
  },
  {
    option: { name: "kubeconfig", value: "FILE", summary: "kubeconfig file for the Kubernetes API" },
    variable: "KUBECONFIG",
    field: "kubeconfig",
    wire: "kubeconfig",
    of: "orchestrator",
    access: "kubeconfigs",
  },
  {
    option: { name: "context", value: "NAME", summary: "Context of the kubeconfig (default: its current context)" },
    variable: "K8S_CURRENT_CONTEXT",
    field: "k8sCurrentContext",
    wire: "k8s_current_context",
    of: "orchestrator",
    access: "context",
  },
  accessSetting("api-endpoint", "URL", "K8S_API_ENDPOINT", "k8sAPIEndpoint", "apiRoot", "URL of the Kubernetes API"),
  accessSetting("api-token", "TOKEN", "K8S_API_TOKEN", "k8sAPIToken", "token", "Bearer token for the Kubernetes API"),
  accessSetting(
    "api-ca-file",
    "FILE",
    "K8S_CA_FILE",
    "k8sCAFile",
    "certificateAuthorityFile",
    "CA certificates that verify the Kubernetes API",
  ),
  accessSetting(
    "api-cert-file",
    "FILE",
    "K8S_CERT_FILE",
    "k8sCertFile",
    "clientCertificateFile",
    "Client certificate for the Kubernetes API",
  ),
  accessSetting(
    "api-key-file",
    "FILE",
    "K8S_KEY_FILE",
    "k8sKeyFile",
    "clientKeyFile",
    "Private key of that certificate",
  ),
  etcdSetting("etcd-username", "NAME", "ETCD_USERNAME", "etcdUsername", "User of etcd; needs a password and endpoints"),
  etcdSetting("etcd-password", "PASSWORD", "ETCD_PASSWORD", "etcdPassword", "Password of that user"),
  etcdSetting("etcd-ca-cert", "PEM", "ETCD_CA_CERT", "etcdCACert", "CA certificates themselves, instead of their file"),
  etcdSetting("etcd-cert", "PEM", "ETCD_CERT", "etcdCert", "Client certificate itself, instead of its file"),
  etcdSetting("etcd-key", "PEM", "ETCD_KEY", "etcdKey", "Private key itself, instead of its file"),
];

/** Fields of the peer's file that have no meaning here; they may be in a file that is taken over. */
export const FIELDS_WITHOUT_EFFECT: ReadonlyMap<string, string> = new Map([
  ["k8sClientQPS", "requests are not limited by this tool"],
  ["k8sDisableNodePoll", "nodes are not polled"],
  ["usePodCIDR", "an installation says where addresses come from"],
]);

/** One that would make a connection unsafe is refused, unless it is off. */
export const INSECURE_FIELD = "k8sInsecureSkipTLSVerify";

function accessSetting(
  name: string,
  value: string,
  variable: string,
  field: string,
  access: keyof KubeAccess,
  summary: string,
): DatastoreSetting {
  const wire = variable.toLowerCase();
  return { option: { name, value, summary }, isFileOnly: true, variable, field, wire, of: "orchestrator", access };
}

function etcdSetting(name: string, value: string, variable: string, field: string, summary: string): DatastoreSetting {
  const wire = name.replaceAll("-", "_");
  return { option: { name, value, summary }, isFileOnly: true, variable, field, wire, of: "etcd" };
}

const CONFIG_OPTION: Option = {
  name: "config",
  letter: "c",
  value: "FILE",
  summary: `Configuration file of this tool (default: ${CONFIG_FILE})`,
};

export const DATASTORE_OPTIONS: readonly Option[] = [
  ...DATASTORE_SETTINGS.filter(({ isFileOnly }) => !isFileOnly).map(({ option }) => option),
  CONFIG_OPTION,
  MISMATCH_OPTION,
];
