/**
 * The network config as it is written in the file: every field, its type, its
 * default, its meaning and what it allows.
 *
 * The one source: decoding, messages and docs/network-config.md all follow
 * from it. Names here are wire names; `network-config.ts` gives each its name
 * inside the program.
 * The schema is built when first asked for: a command that reads no config
 * does not pay for it.
 */
import * as v from "valibot";
import { identity } from "../identity.ts";
import {
  filePath,
  flag,
  flagInQuotes,
  httpUrl,
  httpUrls,
  matchingText,
  oneOf,
  oneOfAnyCase,
  poolList,
  text,
  wholeNumber,
} from "./fields.ts";
import { areEndpoints, isDomainName, isHostAndPort } from "./urls.ts";

const DATASTORE_TYPES = ["etcdv3", "orchestrator", "kubernetes", "embedded"] as const;
const LOG_LEVELS = ["ERROR", "WARNING", "INFO", "DEBUG"] as const;

/**
 * What the installed config carries; a config without `log_file_path` logs to no file.
 * @public
 */
export const INSTALLED_LOG_FILE = `${identity.logDirectory}/cni/cni.log`;

export type WireSchema = ReturnType<typeof buildWireSchema>;
export type WireConfig = v.InferOutput<WireSchema>;

let built: WireSchema | undefined;

export function wireSchema(): WireSchema {
  built ??= buildWireSchema();
  return built;
}

function buildWireSchema() {
  return v.object({
    ...protocolFields(),
    ...nodeFields(),
    ...datastoreFields(),
    ...logFields(),
    ipam: ipamSchema(),
    ...nestedObjects(),
    ...interfaceFields(),
  });
}

function protocolFields() {
  return {
    name: matchingText("Name of the network", "a letter or digit, then letters, digits, `_`, `.` or `-`", (name) =>
      /^[a-zA-Z0-9][\w.-]*$/.test(name),
    ),
    cniVersion: v.optional(
      matchingText(
        "CNI version of the config; chaining plugins needs 0.3.0 or later",
        "a version of three numbers such as 1.0.0",
        (version) => /^\d+\.\d+\.\d+$/.test(version),
      ),
      "0.1.0",
    ),
    type: text("Name of the plugin", `the plugin's name, "${identity.product}"`),
  };
}

function nodeFields() {
  return {
    nodename: v.optional(text("Name of this node; needed when it differs from the host name")),
    nodename_file: v.optional(filePath("File that holds the node name; used when `nodename` is absent")),
    nodename_file_optional: v.optional(
      flag("Whether the file named by `nodename_file` may be missing; the default file always may"),
      false,
    ),
  };
}

function datastoreFields() {
  return {
    datastore_type: v.optional(
      oneOf("Where pools, addresses and endpoints are kept; `embedded` is a file on this host alone", DATASTORE_TYPES),
      "etcdv3",
    ),
    datastore_path: v.optional(
      filePath("Database file of the `embedded` datastore"),
      `${identity.stateDirectory}/datastore.sqlite`,
    ),
    etcd_endpoints: v.optional(
      matchingText("etcd's URLs", "URLs (http:// or https://) separated by commas", areEndpoints),
    ),
    etcd_discovery_srv: v.optional(
      matchingText(
        "Domain whose SRV records name etcd's endpoints; excludes `etcd_endpoints`",
        "a domain name",
        isDomainName,
      ),
    ),
    etcd_key_file: v.optional(filePath("Private key of the client certificate (mutual TLS)")),
    etcd_cert_file: v.optional(filePath("Client certificate (mutual TLS)")),
    etcd_ca_cert_file: v.optional(filePath("Root certificates, one or more, trusted for etcd's server certificate")),
    etcd_authority: v.optional(
      matchingText(
        "Deprecated: etcd's host and port; ignored when `etcd_endpoints` is set",
        "host:port",
        isHostAndPort,
      ),
      "127.0.0.1:2379",
    ),
    etcd_scheme: v.optional(oneOf("Deprecated: the scheme that goes with `etcd_authority`", ["http", "https"]), "http"),
  };
}

function logFields() {
  return {
    log_level: v.optional(oneOfAnyCase("The least grave lines that are logged", LOG_LEVELS), "INFO"),
    log_file_path: v.optional(
      filePath(
        `Log file on the host; absent means no log file. The installed config carries \`${INSTALLED_LOG_FILE}\``,
      ),
    ),
    log_file_max_size: v.optional(wholeNumber("Megabytes at which the log file is rotated", 1), 100),
    log_file_max_age: v.optional(wholeNumber("Days after which a rotated file is removed", 1), 30),
    log_file_max_count: v.optional(wholeNumber("Rotated files that are kept", 1), 10),
  };
}

function ipamSchema() {
  return v.pipe(
    v.object({
      type: matchingText(
        "Name of the IPAM plugin",
        `the name of an IPAM plugin: "${identity.ipamType}", "host-local" or another in CNI_PATH`,
        (name) => !name.includes("/"),
      ),
      assign_ipv4: v.optional(flagInQuotes("Whether an IPv4 address is assigned"), "true"),
      assign_ipv6: v.optional(flagInQuotes("Whether an IPv6 address is assigned"), "false"),
      ipv4_pools: v.optional(poolList("Pools that IPv4 addresses come from; absent means all available", 4)),
      ipv6_pools: v.optional(
        poolList('Pools that IPv6 addresses come from; honoured only when `assign_ipv6` is `"true"`', 6),
      ),
    }),
    v.description("Address management; the fields of another IPAM plugin are handed to it untouched"),
    v.metadata({ allowed: "an object" }),
  );
}

function nestedObjects() {
  return {
    container_settings: section("Settings of the container's namespace", {
      allow_ip_forwarding: v.optional(flag("IP forwarding inside the container's namespace"), false),
    }),
    kubernetes: section("Access to the orchestrator's API", {
      kubeconfig: v.optional(filePath("kubeconfig file; the recommended way")),
      k8s_api_root: v.optional(httpUrl("Location of the API, given directly")),
    }),
    policy: section("Network policy", {
      type: v.optional(oneOf("Enforces the orchestrator's NetworkPolicy resource", ["k8s"])),
    }),
    feature_control: section("Features that are off unless switched on", {
      ip_addrs_no_ipam: v.optional(flag("Honours the `ipAddrsNoIpam` annotation"), false),
      floating_ips: v.optional(flag("Honours the `floatingIPs` annotation"), false),
    }),
    readiness_gates: v.optional(httpUrls("Endpoints that must answer before pod networking continues")),
  };
}

function section<const Entries extends v.ObjectEntries>(meaning: string, entries: Entries) {
  return v.optional(
    v.pipe(v.object(entries), v.description(meaning), v.metadata({ allowed: "an object" })),
    // Every field of a section is optional, so its defaults follow from an empty one.
    {} as v.InferInput<v.ObjectSchema<Entries, undefined>>,
  );
}

function interfaceFields() {
  return {
    num_queues: v.optional(wholeNumber("Receive queues, and transmit queues, of the virtual interfaces", 1, 4096), 1),
    mtu: v.optional(wholeNumber("MTU of the virtual interfaces; absent means what the node agent found", 68, 65535)),
    policy_setup_timeout_seconds: v.optional(
      wholeNumber("Longest wait for a new pod's policy to be programmed; 0 does not wait", 0),
      0,
    ),
    endpoint_status_dir: v.optional(
      filePath("Directory where the node agent tells which endpoints have their policy"),
      `${identity.runDirectory}/endpoint-status`,
    ),
    include_default_routes: v.optional(
      flag("With `host-local` routes of one's own: also adds the default routes"),
      false,
    ),
  };
}
