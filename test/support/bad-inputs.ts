/** Thirty configs with typical mistakes, and the position and message that are reported for each. */
import { identity } from "../../src/identity.ts";
import { MINIMAL } from "./network-config.ts";

export interface BadInput {
  readonly wrong: string;
  readonly text: string;
  /** Path of the reported field; empty for the whole file. */
  readonly path: string;
  /** What the message must contain: the value, what is allowed, the fix. */
  readonly says: readonly string[];
}

const ipam = (fields: object) => ({ ipam: { type: identity.ipamType, ...fields } });

function config(wrong: string, fields: object, path: string, ...says: string[]): BadInput {
  return { wrong, text: JSON.stringify({ ...MINIMAL, ...fields }, undefined, 2), path, says };
}

function list(wrong: string, fields: object, path: string, ...says: string[]): BadInput {
  const plugins = [{ type: identity.product, ...ipam({}) }];
  return { wrong, text: JSON.stringify({ name: "pods", cniVersion: "1.0.0", plugins, ...fields }), path, says };
}

export const BAD_INPUTS: readonly BadInput[] = [
  { wrong: "a comma too many", text: '{\n  "name": "a",\n}', path: "", says: ["JSON", "name in double quotes"] },
  { wrong: "an empty file", text: "", path: "", says: ["JSON", "end of the file"] },
  { wrong: "a list instead of an object", text: "[]", path: "", says: ["object"] },
  config("no name", { name: "" }, "name", "missing", 'add "name"'),
  config("a name with a space", { name: "my net" }, "name", '"my net"', "letters, digits"),
  config("a CNI version that does not exist", { cniVersion: "2.0.0" }, "cniVersion", '"2.0.0"', '"1.1.0"'),
  config("no ipam", { ipam: undefined }, "ipam", "missing", 'add "ipam"'),
  config("no ipam type", { ipam: {} }, "ipam.type", "missing", identity.ipamType),
  config("a path as ipam type", { ipam: { type: "../evil" } }, "ipam.type", '"../evil"', "name of an IPAM plugin"),
  config("a boolean for assign_ipv4", ipam({ assign_ipv4: true }), "ipam.assign_ipv4", "true", '"assign_ipv4": "true"'),
  config("yes for assign_ipv6", ipam({ assign_ipv6: "yes" }), "ipam.assign_ipv6", '"yes"', '"true" or "false"'),
  config("an IPv6 CIDR among IPv4 pools", ipam({ ipv4_pools: ["fd00::/64"] }), "ipam.ipv4_pools[0]", "IPv4"),
  config("an IPv4 CIDR among IPv6 pools", ipam({ ipv6_pools: ["10.0.0.0/8"] }), "ipam.ipv6_pools[0]", "IPv6"),
  config("pools that are not a list", ipam({ ipv4_pools: "blue" }), "ipam.ipv4_pools", '"blue"', '["…"]'),
  config("a prefix too long", ipam({ ipv4_pools: ["10.0.0.0/33"] }), "ipam.ipv4_pools[0]", '"10.0.0.0/33"'),
  config("an unknown datastore", { datastore_type: "consul" }, "datastore_type", '"consul"', '"etcdv3"'),
  config("endpoints without a scheme", { etcd_endpoints: "10.0.0.1:2379" }, "etcd_endpoints", "http:// or https://"),
  config(
    "a password in bad endpoints",
    { etcd_endpoints: "root:secret@10.0.0.1:2379" },
    "etcd_endpoints",
    "[redacted]@10.0.0.1:2379",
  ),
  config(
    "endpoints and discovery",
    { etcd_endpoints: "http://a:2379", etcd_discovery_srv: "a.org" },
    "etcd_discovery_srv",
    "one of the two",
  ),
  config("a certificate without key", { etcd_cert_file: "/dev/null" }, "etcd_cert_file", 'add "etcd_key_file"'),
  config("a key without certificate", { etcd_key_file: "/dev/null" }, "etcd_key_file", 'add "etcd_cert_file"'),
  config("a CA file that is not there", { etcd_ca_cert_file: "/no/ca" }, "etcd_ca_cert_file", "/no/ca", "no such file"),
  config("an unknown log level", { log_level: "verbose" }, "log_level", '"verbose"', '"DEBUG"'),
  config("a negative size", { log_file_max_size: -5 }, "log_file_max_size", "-5", "whole number, 1 or more"),
  config("a fraction of days", { log_file_max_age: 1.5 }, "log_file_max_age", "1.5", "whole number"),
  config("minus one queue", { num_queues: -1 }, "num_queues", "-1", "from 1 to 4096"),
  config("a number in quotes", { mtu: "1450" }, "mtu", '"1450"', 'write "mtu": 1450'),
  config("an unknown policy type", { policy: { type: "x" } }, "policy.type", '"x"', 'only "k8s"'),
  config(
    "a gate that is not a URL",
    { readiness_gates: ["localhost:9099"] },
    "readiness_gates[0]",
    "localhost:9099",
    "a URL",
  ),
  list(
    "two plugins below 0.3.0",
    { cniVersion: "0.2.0", plugins: [{ type: "a" }, { type: "b" }] },
    "cniVersion",
    "0.3.0",
  ),
  list("a list of nothing", { plugins: [] }, "plugins", "empty"),
];
