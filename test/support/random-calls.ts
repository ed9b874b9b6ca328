/**
 * Random invalid calls of the plugins: a valid call with random changes of its
 * environment, its arguments, its config or the bytes of the config. Some stay
 * valid. Pure: the same seed gives the same calls.
 */
import { identity } from "../../src/identity.ts";

export interface RandomCall {
  /** The name of the program. */
  readonly name: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly stdin: Uint8Array;
}

/** Values for valid calls. */
export interface Rightness {
  /** Namespaces that exist. */
  readonly netns: readonly string[];
  readonly pluginDirectory: string;
  /** The fields of the network config that select a datastore. */
  readonly datastore: Readonly<Record<string, unknown>>;
}

type Random = () => number;
type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

export function randomCall(random: Random, right: Rightness): RandomCall {
  const name = pick(random, NAMES);
  const command = pick(random, COMMANDS);
  const environment = rightEnvironment(random, command, right);
  let config = rightConfig(name, right);
  const spoils = Math.floor(random() ** 2 * 6);
  let spoiled = environment;
  for (let each = 0; each < spoils; each++) {
    if (random() < 0.3) spoiled = spoilEnvironment(random, spoiled);
    else config = spoilValue(random, config);
  }
  return {
    name,
    args: random() < 0.05 ? [pick(random, ARGUMENTS)] : [],
    environment: spoiled,
    stdin: random() < 0.2 ? spoilBytes(random, config) : encode(config),
  };
}

const NAMES = [
  ...Array.from({ length: 6 }, () => identity.product),
  identity.ipamType,
  identity.ipamType,
  "host-local",
  "portmap",
  "bandwidth",
] as const;
const COMMANDS = ["ADD", "ADD", "ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"] as const;
const ARGUMENTS = ["-v", "--help", "", "ADD", "-", "--", "\u{1f980}", "-x=1", identity.product];

function rightEnvironment(random: Random, command: string, right: Rightness): Readonly<Record<string, string>> {
  const pod = Math.floor(random() * 1e6);
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: `container-${pod}`,
    CNI_NETNS: pick(random, right.netns),
    CNI_IFNAME: "eth0",
    CNI_PATH: right.pluginDirectory,
    CNI_ARGS: random() < 0.5 ? "" : `IgnoreUnknown=1;K8S_POD_NAMESPACE=fuzz;K8S_POD_NAME=pod-${pod}`,
  };
}

function rightConfig(name: string, { datastore }: Rightness): Json {
  const main = {
    cniVersion: "1.1.0",
    name: "fuzz",
    type: name,
    nodename: "node-1",
    log_level: "ERROR",
    ...(datastore as { readonly [name: string]: Json }),
    ipam: { type: identity.ipamType, assign_ipv4: "true", assign_ipv6: "true", ipv4_pools: ["client-ipv4"] },
    container_settings: { allow_ip_forwarding: false },
    feature_control: { ip_addrs_no_ipam: false, floating_ips: false },
    num_queues: 1,
    mtu: 1400,
    "cni.dev/valid-attachments": [{ containerID: "nobody", ifname: "eth0" }],
    prevResult: PREVIOUS,
  };
  const ranges = [[{ subnet: "10.89.0.0/24", rangeStart: "10.89.0.10" }], [{ subnet: "fd89::/112" }]];
  const runtimeConfig = { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] };
  if (name === "host-local") return { ...main, ipam: { type: name, ranges, routes: [{ dst: "0.0.0.0/0" }] } };
  if (name === "portmap") return { ...main, snat: true, runtimeConfig };
  if (name === "bandwidth") return { ...main, ingressRate: 8000, ingressBurst: 8000 };
  return main;
}

const PREVIOUS: Json = {
  cniVersion: "1.1.0",
  interfaces: [
    { name: "vend0" },
    { name: "eth0", mac: "02:00:00:00:00:01", sandbox: "/run/netns/vt-fuzz0", mtu: 1400 },
  ],
  ips: [{ address: "10.90.0.5/32", interface: 1 }],
  routes: [{ dst: "0.0.0.0/0", gw: "169.254.1.1" }],
  dns: {},
};

/** Values that are difficult for decoders; none is a URL that a gate or a datastore would wait for. */
const VALUES: readonly Json[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e21,
  2 ** 53,
  "",
  " ",
  "true",
  "0",
  "null",
  "..",
  "a/b",
  "../../x",
  "fuzz",
  "1.1.0",
  "0.2.0",
  "9.9.9",
  "10.90.0.5",
  "10.90.0.0/16",
  "fd90::/64",
  "::ffff:1.2.3.4/200",
  "host-local",
  identity.product,
  identity.ipamType,
  "embedded",
  "orchestrator",
  "k8s",
  "\u0000",
  "ö\u{1f980}\u202e",
  "\ud800",
  "x".repeat(300),
  "[::1]:0",
  "toString",
  "__proto__",
  [],
  {},
  [[]],
  [null],
  [""],
  ["a", "a"],
  { type: {} },
  { length: 1 },
];

const KEYS = [
  "type",
  "name",
  "ipam",
  "plugins",
  "__proto__",
  "constructor",
  "runtimeConfig",
  "args",
  "dns",
  "ips",
  "x",
];

/** Replaces, removes, adds or duplicates something at a random place of the value. */
function spoilValue(random: Random, value: Json): Json {
  if (random() < 0.15 || value === null || typeof value !== "object") return pick(random, VALUES);
  if (isList(value)) {
    if (value.length === 0 || random() < 0.3) return [...value, pick(random, VALUES)];
    const place = Math.floor(random() * value.length);
    return value.map((each, index) => (index === place ? spoilValue(random, each) : each));
  }
  const names = Object.keys(value);
  const chosen = pick(random, names.length === 0 ? KEYS : names);
  const entries = Object.entries(value);
  if (random() < 0.2) return Object.fromEntries(entries.filter(([name]) => name !== chosen));
  if (random() < 0.1) return Object.fromEntries([...entries, [pick(random, KEYS), pick(random, VALUES)]]);
  return Object.fromEntries(entries.map(([name, each]) => [name, name === chosen ? spoilValue(random, each) : each]));
}

function spoilEnvironment(
  random: Random,
  environment: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const name = pick(random, Object.keys(environment));
  if (random() < 0.25) return Object.fromEntries(Object.entries(environment).filter(([each]) => each !== name));
  return { ...environment, [name]: pick(random, TEXTS) };
}

/** An environment cannot contain a zero byte. */
const TEXTS = [
  "",
  " ",
  "add",
  "ADD ",
  "VERSION",
  "/",
  "/proc/self/ns/net",
  "/dev/null",
  "/run/netns/absent",
  "relative",
  "..",
  "a/b",
  "eth0:1",
  "interface-name-too-long",
  "IP=10.90.0.77",
  "IP=999.1.1.1",
  "IP=fd90::1,10.90.0.1",
  "K8S_POD_NAME=a",
  "K8S_POD_NAMESPACE=A_B;K8S_POD_NAME=..",
  "IgnoreUnknown=maybe;X",
  "=;=;;",
  "ö\u{1f980}",
  "x".repeat(5000),
];

/** The text of the config truncated, repeated, nested, or with random bytes. */
function spoilBytes(random: Random, config: Json): Uint8Array {
  const bytes = encode(config);
  const place = Math.floor(random() * bytes.length);
  const ways: readonly (() => Uint8Array)[] = [
    () => bytes.slice(0, place),
    () => Buffer.concat([bytes, bytes]),
    () => Buffer.concat([Uint8Array.of(0xef, 0xbb, 0xbf), bytes]),
    () => bytes.map((byte, index) => (index === place ? Math.floor(random() * 256) : byte)),
    () => Buffer.concat([bytes.slice(0, place), Uint8Array.of(0xff, 0xfe, 0), bytes.slice(place)]),
    () => Buffer.from(`${"[".repeat(20_000)}${"]".repeat(20_000)}`),
    () => Buffer.from(`{"name":${"1".repeat(400)},"cniVersion":1e999}`),
    () => Buffer.from(new TextDecoder().decode(bytes).replace('"name"', '"name":"other","name"')),
    () => new Uint8Array(),
    () => Uint8Array.from({ length: 64 }, () => Math.floor(random() * 256)),
  ];
  return pick(random, ways)();
}

function encode(config: Json): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(config));
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

function pick<T>(random: Random, values: readonly T[]): T {
  const value = values[Math.floor(random() * values.length)];
  if (value === undefined) throw new Error("Cannot pick: there is nothing to pick from");
  return value;
}
