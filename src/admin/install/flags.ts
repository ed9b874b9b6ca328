/** The options of `install` that describe the network, and the Installation that they amount to. Pure. */
import { apiVersionOf, OPERATOR_API } from "../../identity.ts";
import { HOST_LOCAL, OWN_TYPE } from "../../model/installation/cni.ts";
import { DEFAULT_NAME } from "../../model/installation/installation.ts";
import { NETWORK_FIELD } from "../../model/installation/names.ts";
import { ENCAPSULATIONS } from "../../model/installation/pool.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Option } from "../main/option.ts";

const SWITCH = ["Enabled", "Disabled"] as const;

export const NETWORK_OPTIONS: readonly Option[] = [
  {
    name: "pod-cidr",
    value: "CIDR",
    repeats: true,
    summary: "Addresses of pods; repeat it for both families (default: the ranges of the cluster)",
  },
  {
    name: "encapsulation",
    value: "MODE",
    oneOf: ENCAPSULATIONS,
    summary: `Tunnels between nodes, for the pools of --pod-cidr: ${ENCAPSULATIONS.join(", ")}`,
  },
  { name: "bgp", value: "STATE", oneOf: SWITCH, summary: "Routes between nodes by BGP: Enabled or Disabled" },
  { name: "mtu", value: "NUMBER", summary: "MTU of pods (default: detected on each node)" },
  { name: "host-ports", value: "STATE", oneOf: SWITCH, summary: "Host ports of pods: Enabled or Disabled" },
  {
    name: "ipam",
    value: "TYPE",
    oneOf: [OWN_TYPE, HOST_LOCAL],
    summary: `Where addresses come from: ${OWN_TYPE} (pools) or ${HOST_LOCAL} (the range of the node)`,
  },
  { name: "registry", value: "REGISTRY", summary: "Registry of the image, for example registry.example.org/" },
  { name: "image-path", value: "PATH", summary: "Path of the image in the registry" },
  {
    name: "image-pull-secret",
    value: "NAME",
    repeats: true,
    summary: "Secret in the operator's namespace to pull the image with; can be repeated",
  },
  {
    name: "datastore",
    value: "TYPE",
    oneOf: ["Kubernetes", "Etcd"],
    summary: "Where the network keeps its resources: Kubernetes (default) or Etcd",
  },
  { name: "etcd-endpoints", value: "URLS", summary: "etcd endpoint URLs, separated by commas" },
  { name: "etcd-discovery-srv", value: "DOMAIN", summary: "Domain whose SRV records list the etcd endpoints" },
  { name: "etcd-secret", value: "NAME", summary: "Secret in the operator's namespace with the certificates of etcd" },
];

/** Whether any of these options is given: then there is no file. */
export function networkFlags({ values, lists }: Given): readonly string[] {
  return NETWORK_OPTIONS.map(({ name }) => name).filter(
    (name) => values.has(name) || (lists.get(name) ?? []).length > 0,
  );
}

export function installationFromFlags({ values, lists }: Given): KubeObject {
  const cidrs = (lists.get("pod-cidr") ?? []).flatMap((each) => each.split(","));
  const encapsulation = values.get("encapsulation");
  if (encapsulation !== undefined && cidrs.length === 0) {
    throw new UsageError('"--encapsulation" needs "--pod-cidr": it is that of the pools');
  }
  const mtu = values.get("mtu");
  const network = withoutAbsent({
    bgp: values.get("bgp"),
    hostPorts: values.get("host-ports"),
    mtu: mtu === undefined ? undefined : wholeNumber(mtu),
    ipPools: cidrs.length === 0 ? undefined : cidrs.map((cidr) => withoutAbsent({ cidr, encapsulation })),
  });
  const secrets = lists.get("image-pull-secret") ?? [];
  const ipam = values.get("ipam");
  const spec = withoutAbsent({
    registry: values.get("registry"),
    imagePath: values.get("image-path"),
    imagePullSecrets: secrets.length === 0 ? undefined : secrets.map((name) => ({ name })),
    cni: ipam === undefined ? undefined : { type: OWN_TYPE, ipam: { type: ipam } },
    datastore: datastoreOf(values),
    [NETWORK_FIELD]: Object.keys(network).length === 0 ? undefined : network,
  });
  return { apiVersion: apiVersionOf(OPERATOR_API), kind: "Installation", metadata: { name: DEFAULT_NAME }, spec };
}

function datastoreOf(values: Given["values"]): object | undefined {
  const endpoints = values.get("etcd-endpoints");
  const discoverySrv = values.get("etcd-discovery-srv");
  const secretName = values.get("etcd-secret");
  if (endpoints !== undefined && discoverySrv !== undefined) {
    throw new UsageError('"--etcd-discovery-srv" cannot be used with "--etcd-endpoints"');
  }
  const hasServers = endpoints !== undefined || discoverySrv !== undefined;
  const type = values.get("datastore") ?? (hasServers ? "Etcd" : undefined);
  const servers = '"--etcd-endpoints" or "--etcd-discovery-srv"';
  if (type === undefined && secretName !== undefined) throw new UsageError(`"--etcd-secret" needs ${servers}`);
  if (type === "Etcd" && !hasServers) throw new UsageError(`"--datastore Etcd" needs ${servers}`);
  if (type === undefined) return undefined;
  const urls = endpoints?.split(",").map((url) => url.trim());
  return withoutAbsent({
    type,
    etcd: hasServers ? withoutAbsent({ endpoints: urls, discoverySrv, secretName }) : undefined,
  });
}

function wholeNumber(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new UsageError(`"--mtu" must be a whole number, not "${text}"`);
  return Number(text);
}

function withoutAbsent(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
