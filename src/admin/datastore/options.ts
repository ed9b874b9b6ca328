/** The settings that choose a datastore: how each is called as an option, in the environment, in the file and on the wire. */
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import { identity } from "../../identity.ts";
import type { Option } from "../option.ts";

export interface DatastoreSetting {
  readonly option: Option;
  /** The environment's name, the one operators know from elsewhere. */
  readonly variable: string;
  /** Its name in the tool's own file. */
  readonly field: string;
  /** Its name in a network config, whose checks it shares. */
  readonly wire: string;
  /** The kind of datastore it belongs to; absent for what belongs to all. */
  readonly of?: DatastoreSettings["kind"];
}

/** Where the tool finds its own settings when nobody names another file. */
export const CONFIG_FILE = `${identity.configDirectory}/${identity.adminTool}.yaml`;

export const DATASTORE_SETTINGS: readonly DatastoreSetting[] = [
  {
    option: {
      name: "datastore-type",
      value: "TYPE",
      oneOf: ["etcdv3", "embedded", "orchestrator", "kubernetes"],
      summary: "What kind of datastore; etcdv3 is the default",
    },
    variable: "DATASTORE_TYPE",
    field: "datastoreType",
    wire: "datastore_type",
  },
  {
    option: { name: "datastore-path", value: "FILE", summary: "The file of the embedded datastore" },
    variable: "DATASTORE_PATH",
    field: "datastorePath",
    wire: "datastore_path",
    of: "embedded",
  },
  {
    option: { name: "etcd-endpoints", value: "URLS", summary: "etcd's URLs, separated by commas" },
    variable: "ETCD_ENDPOINTS",
    field: "etcdEndpoints",
    wire: "etcd_endpoints",
    of: "etcd",
  },
  {
    option: { name: "etcd-discovery-srv", value: "DOMAIN", summary: "Domain whose SRV records name etcd's endpoints" },
    variable: "ETCD_DISCOVERY_SRV",
    field: "etcdDiscoverySrv",
    wire: "etcd_discovery_srv",
    of: "etcd",
  },
  {
    option: { name: "etcd-ca-cert-file", value: "FILE", summary: "Root certificates trusted for etcd's certificate" },
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
    option: { name: "kubeconfig", value: "FILE", summary: "Access to the orchestrator's API" },
    variable: "KUBECONFIG",
    field: "kubeconfig",
    wire: "kubeconfig",
    of: "orchestrator",
  },
];

const CONFIG_OPTION: Option = {
  name: "config",
  value: "FILE",
  summary: `Take settings from this file instead of ${CONFIG_FILE}`,
};

export const DATASTORE_OPTIONS: readonly Option[] = [...DATASTORE_SETTINGS.map(({ option }) => option), CONFIG_OPTION];
