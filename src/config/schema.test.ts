import { describe, expect, test } from "bun:test";
import { decode, type Json, problemsOf, withField } from "../../test/support/network-config.ts";
import { identity } from "../identity.ts";
import type { NetworkConfig } from "./network-config.ts";
import { networkConfigFields } from "./schema.ts";

/** One row for each field of the specification's tables, then those of other products and our own. */
interface FieldRow {
  readonly field: string;
  readonly read: (config: NetworkConfig) => unknown;
  /** The default; not for required fields. */
  readonly absent?: unknown;
  readonly valid: readonly (readonly [given: unknown, read: unknown])[];
  readonly invalid: readonly (readonly [given: unknown, shown: string])[];
  readonly allowed: string;
  /** Other fields that a valid value requires. */
  readonly beside?: Json;
}

const path = (read: FieldRow["read"], field: string, absent?: unknown, beside: Json = {}): FieldRow => ({
  field,
  read,
  absent,
  beside,
  valid: [["/a/file", "/a/file"]],
  invalid: [
    [7, "is 7"],
    [["/a"], "is a list"],
  ],
  allowed: "file path",
});

const flag = (read: FieldRow["read"], field: string): FieldRow => ({
  field,
  read,
  absent: false,
  valid: [
    [true, true],
    [false, false],
  ],
  invalid: [
    ["true", 'is "true"'],
    [1, "is 1"],
  ],
  allowed: "true or false, without quotes",
});

const number = (read: FieldRow["read"], field: string, absent: unknown): FieldRow => ({
  field,
  read,
  absent,
  valid: [
    [1000, 1000],
    [0, absent],
  ],
  invalid: [
    [-1, "is -1"],
    [1000.5, "is 1000.5"],
    ["1000", 'is "1000"'],
  ],
  allowed: "whole number",
});

const FIELDS: readonly FieldRow[] = [
  {
    field: "name",
    read: (config) => config.name,
    valid: [["k8s-pod-network", "k8s-pod-network"]],
    invalid: [
      ["", "is missing"],
      ["a b", 'is "a b"'],
      [5, "is 5"],
    ],
    allowed: "letters, digits",
  },
  {
    field: "cniVersion",
    read: (config) => config.cniVersion,
    absent: "0.1.0",
    valid: [["0.3.0", "0.3.0"]],
    invalid: [
      ["2.0.0", 'is "2.0.0"'],
      [1, "is 1"],
    ],
    allowed: '"1.1.0"',
  },
  {
    field: "type",
    read: (config) => config.type,
    valid: [[identity.product, identity.product]],
    invalid: [
      [null, "is missing"],
      [[], "is a list"],
    ],
    allowed: identity.product,
  },
  {
    field: "nodename",
    read: (config) => config.node.name,
    absent: undefined,
    valid: [["node-1", "node-1"]],
    invalid: [
      [{}, "is an object"],
      ["a/b", 'is "a/b"'],
      ["\ud800", "is"],
      ["n".repeat(254), "is"],
    ],
    allowed: "text",
  },
  {
    field: "datastore_type",
    read: (config) => config.datastoreType,
    absent: "etcdv3",
    valid: [
      ["etcdv3", "etcdv3"],
      ["orchestrator", "orchestrator"],
      ["kubernetes", "orchestrator"],
      ["embedded", "embedded"],
    ],
    invalid: [["consul", 'is "consul"']],
    allowed: '"etcdv3", "orchestrator", "kubernetes" or "embedded"',
  },
  {
    field: "etcd_endpoints",
    read: (config) => config.etcd.endpoints,
    absent: undefined,
    valid: [
      ["http://a:2379", ["http://a:2379"]],
      [" https://a:2379/ ,https://[::1]:2379", ["https://a:2379", "https://[::1]:2379"]],
    ],
    invalid: [
      ["a:2379", 'is "a:2379"'],
      ["http://a:2379,,", 'is "http://a:2379,,"'],
      ["http://", 'is "http://"'],
      [["http://a:2379"], "is a list"],
    ],
    allowed: "separated by commas",
  },
  {
    field: "etcd_discovery_srv",
    read: (config) => config.etcd.discoveryDomain,
    absent: undefined,
    valid: [["etcd.example.org", "etcd.example.org"]],
    invalid: [
      ["http://example.org", 'is "http://example.org"'],
      ["a b", 'is "a b"'],
    ],
    allowed: "domain name",
  },
  path((config) => config.etcd.keyFile, "etcd_key_file", undefined, { etcd_cert_file: "/c" }),
  path((config) => config.etcd.certFile, "etcd_cert_file", undefined, { etcd_key_file: "/k" }),
  path((config) => config.etcd.caCertFile, "etcd_ca_cert_file"),
  {
    field: "etcd_authority",
    read: (config) => config.etcd.authority,
    absent: "127.0.0.1:2379",
    valid: [
      ["etcd:4001", "etcd:4001"],
      ["[::1]:2379", "[::1]:2379"],
    ],
    invalid: [
      ["etcd", 'is "etcd"'],
      ["http://etcd:4001", 'is "http://etcd:4001"'],
      ["etcd:70000", 'is "etcd:70000"'],
    ],
    allowed: "host:port",
  },
  {
    field: "etcd_scheme",
    read: (config) => config.etcd.scheme,
    absent: "http",
    valid: [["https", "https"]],
    invalid: [["ftp", 'is "ftp"']],
    allowed: '"http" or "https"',
  },
  {
    field: "log_level",
    read: (config) => config.log.level,
    absent: "INFO",
    valid: [
      ["ERROR", "ERROR"],
      ["WARNING", "WARNING"],
      ["info", "INFO"],
      ["Debug", "DEBUG"],
    ],
    invalid: [
      ["verbose", 'is "verbose"'],
      [3, "is 3"],
    ],
    allowed: '"ERROR", "WARNING", "INFO" or "DEBUG"',
  },
  path((config) => config.log.filePath, "log_file_path"),
  number((config) => config.log.maxSizeMegabytes, "log_file_max_size", 100),
  number((config) => config.log.maxAgeDays, "log_file_max_age", 30),
  number((config) => config.log.maxCount, "log_file_max_count", 10),
  {
    field: "ipam",
    read: (config) => config.ipam.type,
    valid: [[{ type: "host-local" }, "host-local"]],
    invalid: [
      [null, "is missing"],
      [identity.ipamType, `is "${identity.ipamType}"`],
    ],
    allowed: "an object",
  },
  {
    field: "ipam.type",
    read: (config) => config.ipam.type,
    valid: [["host-local", "host-local"]],
    invalid: [
      ["", "is missing"],
      ["../x", 'is "../x"'],
      [identity.product, `is "${identity.product}"`],
    ],
    allowed: identity.ipamType,
  },
  {
    field: "ipam.assign_ipv4",
    read: (config) => config.ipam.assignIpv4,
    absent: true,
    valid: [
      ["true", true],
      ["false", false],
    ],
    invalid: [
      [true, "is true"],
      ["no", 'is "no"'],
    ],
    allowed: '"true" or "false", as a string',
  },
  {
    field: "ipam.assign_ipv6",
    read: (config) => config.ipam.assignIpv6,
    absent: false,
    valid: [
      ["true", true],
      ["false", false],
    ],
    invalid: [
      [false, "is false"],
      ["yes", 'is "yes"'],
    ],
    allowed: '"true" or "false", as a string',
  },
  {
    field: "ipam.ipv4_pools",
    read: (config) => config.ipam.ipv4Pools,
    absent: undefined,
    valid: [
      [
        ["10.0.0.0/16", "blue"],
        ["10.0.0.0/16", "blue"],
      ],
      [[], undefined],
    ],
    invalid: [["10.0.0.0/16", 'is "10.0.0.0/16"']],
    allowed: "IPv4 CIDR or the name of a pool",
  },
  {
    field: "ipam.ipv6_pools",
    read: (config) => config.ipam.ipv6Pools,
    absent: undefined,
    beside: { assign_ipv6: "true" },
    valid: [
      [
        ["fd00::/48", "blue"],
        ["fd00::/48", "blue"],
      ],
    ],
    invalid: [[{}, "is an object"]],
    allowed: "IPv6 CIDR or the name of a pool",
  },
  flag((config) => config.allowIpForwarding, "container_settings.allow_ip_forwarding"),
  {
    field: "readiness_gates",
    read: (config) => config.readinessGates,
    absent: [],
    valid: [[["http://localhost:9099/readiness"], ["http://localhost:9099/readiness"]]],
    invalid: [["http://localhost", 'is "http://localhost"']],
    allowed: "a list, each entry a URL",
  },
  path((config) => config.kubernetes.kubeconfig, "kubernetes.kubeconfig"),
  {
    field: "kubernetes.k8s_api_root",
    read: (config) => config.kubernetes.apiRoot,
    absent: undefined,
    valid: [["https://10.96.0.1:443", "https://10.96.0.1:443"]],
    invalid: [["10.96.0.1", 'is "10.96.0.1"']],
    allowed: "URL",
  },
  {
    field: "kubernetes.node_name",
    read: (config) => config.kubernetes.nodeName,
    absent: undefined,
    valid: [["node-1", "node-1"]],
    invalid: [["a/b", 'is "a/b"']],
    allowed: "text without a slash",
  },
  {
    field: "policy.k8s_api_root",
    read: (config) => config.kubernetes.olderFields.apiRoot,
    absent: undefined,
    valid: [["https://10.96.0.1:443", "https://10.96.0.1:443"]],
    invalid: [["10.96.0.1", 'is "10.96.0.1"']],
    allowed: "URL",
  },
  path((config) => config.kubernetes.olderFields.clientCertificateFile, "policy.k8s_client_certificate", undefined, {
    k8s_client_key: "/key",
  }),
  path((config) => config.kubernetes.olderFields.clientKeyFile, "policy.k8s_client_key", undefined, {
    k8s_client_certificate: "/cert",
  }),
  path((config) => config.kubernetes.olderFields.certificateAuthorityFile, "policy.k8s_certificate_authority"),
  {
    field: "policy.k8s_auth_token",
    read: (config) => config.kubernetes.olderFields.token,
    absent: undefined,
    valid: [["word", "word"]],
    invalid: [[1, "is 1"]],
    allowed: "text",
  },
  {
    field: "policy.type",
    read: (config) => config.policyType,
    absent: undefined,
    valid: [
      ["k8s", "k8s"],
      ["", undefined],
    ],
    invalid: [["x", 'is "x"']],
    allowed: 'only "k8s"',
  },
  flag((config) => config.features.ipAddrsNoIpam, "feature_control.ip_addrs_no_ipam"),
  flag((config) => config.features.floatingIps, "feature_control.floating_ips"),
  flag((config) => config.features.allowedSourcePrefixes, "feature_control.allowed_source_prefixes"),
  {
    field: "feature_control.cluster_source_prefixes",
    read: (config) => config.clusterSourcePrefixes,
    absent: [],
    valid: [
      [
        ["10.0.0.0/24", "fd00::/64"],
        ["10.0.0.0/24", "fd00::/64"],
      ],
    ],
    invalid: [["10.0.0.0/24", 'is "10.0.0.0/24"']],
    allowed: "CIDR",
  },
  {
    ...number((config) => config.queueCount, "num_queues", 1),
    valid: [
      [4, 4],
      [0, 1],
    ],
  },
  number((config) => config.mtu, "mtu", undefined),
  {
    field: "labels",
    read: (config) => config.labels,
    absent: {},
    valid: [
      [
        { role: "web", "example.org/tier": "" },
        { role: "web", "example.org/tier": "" },
      ],
      [{}, {}],
    ],
    invalid: [
      ["role=web", 'is "role=web"'],
      [["web"], "is a list"],
      [{ "a b": "c" }, 'is "a b"'],
    ],
    allowed: "an object of text",
  },
  path((config) => config.node.nameFile, "nodename_file"),
  flag((config) => config.node.nameFileOptional, "nodename_file_optional"),
  number((config) => config.policySetupTimeoutSeconds, "policy_setup_timeout_seconds", 0),
  path((config) => config.endpointStatusDirectory, "endpoint_status_dir", `${identity.runDirectory}/endpoint-status`),
  flag((config) => config.includeDefaultRoutes, "include_default_routes"),
  path((config) => config.datastorePath, "datastore_path", `${identity.stateDirectory}/datastore.sqlite`),
];

describe("networkConfigFields()", () => {
  test("has a row in the table above for every field", () => {
    const fields = Object.entries(networkConfigFields()).flatMap(([name, field]) => {
      return field.kind === "section" ? Object.keys(field.fields).map((inner) => `${name}.${inner}`) : [name];
    });

    expect(
      FIELDS.map((row) => row.field)
        .filter((field) => field !== "ipam")
        .sort(),
    ).toEqual(fields.sort());
  });
});

describe.each(FIELDS.map((row) => ({ ...row, name: row.field })))("$name", (row) => {
  if ("absent" in row) {
    test(`fills in ${row.field} if it is absent or null`, () => {
      expect(row.read(decode(withField(row.field, undefined)))).toEqual(row.absent);
      expect(row.read(decode(withField(row.field, null)))).toEqual(row.absent);
    });
  }
  test.each(row.valid.map(([given, read]) => ({ given, read })))(`reads ${row.field}: $given`, ({ given, read }) => {
    expect(row.read(decode(withField(row.field, given, row.beside)))).toEqual(read);
  });
  test.each(row.invalid.map(([given, shown]) => ({ given, shown })))(
    `refuses ${row.field}: $given with path, value and what is allowed`,
    ({ given, shown }) => {
      const problems = problemsOf(withField(row.field, given, row.beside));

      expect(Object.keys(problems)).toEqual([row.field]);
      expect(problems[row.field]).toContain(`"${row.field}" ${shown}`);
      expect(problems[row.field]).toContain(row.allowed);
    },
  );
});
