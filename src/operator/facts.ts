/** What rendering depends on, from the objects that the operator follows. Pure. */
import { ETCD_SECRET_KEYS } from "../config/etcd-secret-keys.ts";
import { parsePrefix } from "../ip/prefix.ts";
import type { IPPool } from "../model/ip-pool.ts";
import type { ClusterFacts } from "../release/installation/cluster-facts.ts";
import { type LiveObject, textAt, textsAt } from "../release/live-object.ts";
import { API_ENDPOINT_CONFIG_MAP } from "../release/workloads/names.ts";
import { hashOf } from "../release/workloads/pod-parts.ts";
import { VERSION } from "../version.ts";
import { type FollowedSnapshot, type Namespaces, objectNamed } from "./followed-objects.ts";

const HASH_DIGITS = 16;

/** `secret`: with the certificates of etcd. */
export function clusterFacts(
  snapshot: FollowedSnapshot,
  namespaces: Namespaces,
  { pools, secret }: { readonly pools: readonly IPPool[]; readonly secret: LiveObject | undefined },
): ClusterFacts {
  const apiEndpoint = apiEndpointIn(snapshot, namespaces);
  return {
    version: VERSION,
    namespace: namespaces.components,
    pools,
    platformPodCidrs: platformPodCidrs(snapshot),
    ...(apiEndpoint === undefined ? {} : { apiEndpoint }),
    ...(secret === undefined ? {} : { etcdSecretHash: secretHash(secret), etcdSecretKeys: keysOf(secret) }),
  };
}

/** The certificates and the key, decoded; only those that are not empty. */
export function etcdFilesIn(secret: LiveObject | undefined): Readonly<Record<string, string>> {
  const data = textsAt(secret, "data");
  const files = Object.values(ETCD_SECRET_KEYS).map(
    (key) => [key, Buffer.from(data[key] ?? "", "base64").toString("utf8")] as const,
  );
  return Object.fromEntries(files.filter(([, text]) => text.trim() !== ""));
}

function keysOf(secret: LiveObject): readonly string[] {
  return Object.keys(etcdFilesIn(secret));
}

function secretHash(secret: LiveObject): string {
  return hashOf(secret["data"] ?? {}).slice(0, HASH_DIGITS);
}

function apiEndpointIn(snapshot: FollowedSnapshot, { operator }: Namespaces): ClusterFacts["apiEndpoint"] {
  const settings = objectNamed(snapshot, "settings", { namespace: operator, name: API_ENDPOINT_CONFIG_MAP });
  const { KUBERNETES_SERVICE_HOST: host = "", KUBERNETES_SERVICE_PORT: port = "" } = textsAt(settings, "data");
  return host === "" || port === "" ? undefined : { host, port };
}

/** `networking.podSubnet` of kubeadm, without what is not a CIDR. */
function platformPodCidrs(snapshot: FollowedSnapshot): readonly string[] {
  const config = objectNamed(snapshot, "platform", { namespace: "kube-system", name: "kubeadm-config" });
  const cidrs = textAt(yamlIn(textAt(config, "data", "ClusterConfiguration")), "networking", "podSubnet");
  return cidrs
    .split(",")
    .map((cidr) => cidr.trim())
    .filter((cidr) => parsePrefix(cidr) !== undefined);
}

function yamlIn(text: string): unknown {
  try {
    return Bun.YAML.parse(text);
  } catch {
    return undefined;
  }
}
