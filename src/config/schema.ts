/**
 * The network config as written in the file: every field with its type, default,
 * meaning and allowed values.
 *
 * The single source of the decoded type, decoding, defaults, messages and
 * docs/network-config.md. Names here are wire names; `network-config.ts` maps them
 * to the names inside the program.
 */
import { nameProblem } from "../cni/names.ts";
import { CNI_VERSIONS, VERSION_WHEN_ABSENT } from "../cni/version.ts";
import { identity } from "../identity.ts";
import { isNodeName } from "../model/node-name.ts";
import type { DecodedEntries, Entries, Field, Section } from "./field.ts";
import {
  type FieldType,
  filePath,
  flag,
  flagInQuotes,
  httpUrl,
  httpUrls,
  labelMap,
  matchingText,
  oneOf,
  oneOfAnyCase,
  poolList,
  prefixList,
  text,
  wholeNumber,
} from "./fields.ts";
import { INSTALLED_LOG_FILE } from "./installed-network-list.ts";
import { areEndpoints, isDomainName, isHostAndPort } from "./urls.ts";

export type WireConfig = DecodedEntries<ReturnType<typeof buildFields>>;

let built: ReturnType<typeof buildFields> | undefined;

export function networkConfigFields(): ReturnType<typeof buildFields> {
  built ??= buildFields();
  return built;
}

function buildFields() {
  return {
    ...protocolFields(),
    ...nodeFields(),
    ...datastoreFields(),
    ...logFields(),
    ipam: ipamSection(),
    ...smallSections(),
    readiness_gates: optional("Endpoints polled before pod networking continues", httpUrls),
    ...interfaceFields(),
  };
}

/** A required field has no default. */
function required<Value>(meaning: string, type: FieldType<Value>): Field<Value, never> {
  return { kind: "field", meaning, type, required: true, absent: undefined as never };
}

function optional<Value>(meaning: string, type: FieldType<Value>): Field<Value, undefined> {
  return { kind: "field", meaning, type, required: false, absent: undefined };
}

function defaulting<Value>(meaning: string, type: FieldType<Value>, absent: Value): Field<Value, Value> {
  return { kind: "field", meaning, type, required: false, absent };
}

function section<Fields extends Entries>(meaning: string, fields: Fields): Section<Fields> {
  return { kind: "section", meaning, required: false, fields };
}

function protocolFields() {
  const name = matchingText(
    "letters, digits, `_`, `.` and `-`, beginning with a letter or digit",
    (given) => nameProblem(given) === undefined,
  );
  const type: FieldType<string> = { ...text, allowed: `the plugin's name, "${identity.product}"` };
  return {
    name: required("Name of the network", name),
    cniVersion: defaulting(
      "CNI version of the config; chaining plugins needs 0.3.0 or later",
      oneOf(CNI_VERSIONS),
      VERSION_WHEN_ABSENT,
    ),
    type: required("Name of the plugin", type),
  };
}

function nodeFields() {
  return {
    nodename: optional(
      "Name of this node; required if it differs from the host name",
      matchingText("text of at most 253 characters, without a slash", isNodeName),
    ),
    nodename_file: optional("File that contains the node name; used if `nodename` is absent", filePath),
    nodename_file_optional: defaulting(
      "Allow the file named by `nodename_file` to be missing; the default file may always be missing",
      flag,
      false,
    ),
  };
}

function datastoreFields() {
  const datastoreType = oneOf(["etcdv3", "orchestrator", "kubernetes", "embedded"]);
  const endpoints = matchingText("URLs (http:// or https://) separated by commas", areEndpoints);
  return {
    datastore_type: defaulting(
      "Datastore for pools, addresses and endpoints; `embedded` is a file on this host only",
      datastoreType,
      "etcdv3",
    ),
    datastore_path: defaulting(
      "Database file of the `embedded` datastore",
      filePath,
      `${identity.stateDirectory}/datastore.sqlite`,
    ),
    etcd_endpoints: optional("URLs of etcd", endpoints),
    etcd_discovery_srv: optional(
      "Domain whose SRV records list the etcd endpoints; mutually exclusive with `etcd_endpoints`",
      matchingText("a domain name", isDomainName),
    ),
    etcd_key_file: optional("Private key of the client certificate (mutual TLS)", filePath),
    etcd_cert_file: optional("Client certificate (mutual TLS)", filePath),
    etcd_ca_cert_file: optional("One or more root certificates trusted for the etcd server certificate", filePath),
    etcd_authority: defaulting(
      "Deprecated: host and port of etcd; ignored if `etcd_endpoints` is set",
      matchingText("host:port", isHostAndPort),
      "127.0.0.1:2379",
    ),
    etcd_scheme: defaulting("Deprecated: URL scheme for `etcd_authority`", oneOf(["http", "https"]), "http"),
  };
}

function logFields() {
  const logLevel = oneOfAnyCase(["ERROR", "WARNING", "INFO", "DEBUG"]);
  return {
    log_level: defaulting("Minimum severity to log", logLevel, "INFO"),
    log_file_path: optional(
      `Log file on the host; if absent, no log file is written. The installed config has \`${INSTALLED_LOG_FILE}\``,
      filePath,
    ),
    log_file_max_size: defaulting("Size in MB at which the log file is rotated", wholeNumber(1), 100),
    log_file_max_age: defaulting("Days after which rotated files are removed", wholeNumber(1), 30),
    log_file_max_count: defaulting("Number of rotated files to keep", wholeNumber(1), 10),
  };
}

function ipamSection() {
  const ipamName = matchingText(
    `the name of an IPAM plugin: "${identity.ipamType}", "host-local" or another in CNI_PATH`,
    // It would call itself endlessly.
    (name) => !name.includes("/") && name !== identity.product,
  );
  const fields = {
    type: required("Name of the IPAM plugin", ipamName),
    assign_ipv4: defaulting("Assign an IPv4 address", flagInQuotes, "true"),
    assign_ipv6: defaulting("Assign an IPv6 address", flagInQuotes, "false"),
    ipv4_pools: optional("Pools to assign IPv4 addresses from; default: all available pools", poolList(4)),
    ipv6_pools: optional(
      'Pools to assign IPv6 addresses from; default: all available pools; used only if `assign_ipv6` is `"true"`',
      poolList(6),
    ),
  };
  const meaning = "IPAM; the fields of another IPAM plugin are passed to it unchanged";
  return { ...section(meaning, fields), required: true };
}

function smallSections() {
  return {
    container_settings: section("Settings of the container's namespace", {
      allow_ip_forwarding: defaulting("Enable IP forwarding inside the container's namespace", flag, false),
    }),
    kubernetes: section("Access to the Kubernetes API", {
      kubeconfig: optional("kubeconfig file (recommended)", filePath),
      k8s_api_root: optional(
        "URL of the API, as an alternative to a kubeconfig; with a kubeconfig it replaces the server of its cluster",
        httpUrl,
      ),
      node_name: optional(
        "Name of this node's Node object, if it differs from the node name",
        matchingText("text without a slash", isNodeName),
      ),
    }),
    policy: policySection(),
    feature_control: section("Features that are disabled by default", {
      ip_addrs_no_ipam: defaulting("Enable the `ipAddrsNoIpam` annotation", flag, false),
      floating_ips: defaulting("Enable the `floatingIPs` annotation", flag, false),
      allowed_source_prefixes: defaulting("Enable the `allowedSourcePrefixes` annotation", flag, false),
      cluster_source_prefixes: optional(
        "Prefixes that pods with `allowedSourcePrefixes` may send from although they overlap a pool or an address of a node; all other addresses of pools and nodes are excluded",
        prefixList,
      ),
    }),
  };
}

function policySection() {
  return section("Network policy, and access to the Kubernetes API as older configs have it", {
    type: optional(
      "Kubernetes policy from the first pod on: see below; for pods it needs access to the Kubernetes API",
      oneOf(["k8s"]),
    ),
    k8s_api_root: optional("URL of the API; `kubernetes.k8s_api_root` takes precedence", httpUrl),
    k8s_auth_token: optional("Bearer token for the API; takes precedence over that of the kubeconfig", text),
    k8s_client_certificate: optional("Client certificate for the API; needs `k8s_client_key`", filePath),
    k8s_client_key: optional("Private key of the client certificate for the API", filePath),
    k8s_certificate_authority: optional("Root certificates trusted for the API server's certificate", filePath),
  });
}

function interfaceFields() {
  return {
    num_queues: defaulting(
      "Number of receive queues and of transmit queues of the virtual interfaces",
      wholeNumber(1, 4096),
      1,
    ),
    mtu: optional("MTU of the virtual interfaces; default: the MTU found by the node agent", wholeNumber(68, 65535)),
    policy_setup_timeout_seconds: defaulting(
      "Maximum time to wait for a new pod's policy to be programmed; 0 does not wait",
      wholeNumber(0),
      0,
    ),
    endpoint_status_dir: defaulting(
      "Directory in which the node agent records which endpoints have their policy programmed",
      filePath,
      `${identity.runDirectory}/endpoint-status`,
    ),
    labels: optional(
      "Labels of the endpoints of this network, for selectors of policies; Kubernetes pods have their own",
      labelMap,
    ),
    include_default_routes: defaulting("Add the default routes even if `host-local` has its own `routes`", flag, false),
  };
}
