/** The settings that select a datastore: the name of each as an option, in the environment, in the file and in a network config. */
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import { identity } from "../../identity.ts";
import type { Option } from "../option.ts";

export interface DatastoreSetting {
  readonly option: Option;
  /** Its environment variable, the one that operators know from other tools. */
  readonly variable: string;
  /** Its name in the tool's configuration file. */
  readonly field: string;
  /** Its name in a network config; the same checks apply. */
  readonly wire: string;
  /** The type of datastore it belongs to; absent if it belongs to all. */
  readonly of?: DatastoreSettings["kind"];
}

/** The tool's configuration file, unless `--config` names another. */
export const CONFIG_FILE = `${identity.configDirectory}/${identity.adminTool}.yaml`;

export const DATASTORE_SETTINGS: readonly DatastoreSetting[] = [
  {
    option: {
      name: "datastore-type",
      value: "TYPE",
      oneOf: ["etcdv3", "embedded", "orchestrator", "kubernetes"],
      summary: "Datastore type (default: etcdv3)",
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
    option: { name: "kubeconfig", value: "FILE", summary: "kubeconfig file for the orchestrator's API" },
    variable: "KUBECONFIG",
    field: "kubeconfig",
    wire: "kubeconfig",
    of: "orchestrator",
  },
];

const CONFIG_OPTION: Option = {
  name: "config",
  value: "FILE",
  summary: `Configuration file of this tool (default: ${CONFIG_FILE})`,
};

export const DATASTORE_OPTIONS: readonly Option[] = [...DATASTORE_SETTINGS.map(({ option }) => option), CONFIG_OPTION];
