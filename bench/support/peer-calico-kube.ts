/**
 * Calico's CNI and IPAM plugins with the caller's API server as their datastore:
 * the resources they read, their own role, and their config. Run them on a private
 * host, like those on etcd (peer-calico.ts).
 */
import { type Built, part } from "../../test/parts/build.ts";
import type { ApiServer } from "../../test/support/kube-apiserver.ts";
import { customResource } from "../../test/support/kube-resources.ts";

interface PeerOnKube {
  /** Contains `calico` and `calico-ipam`: the CNI_PATH. */
  readonly pluginDirectory: string;
  /** The network config for stdin. */
  readonly config: string;
  /** The user whose requests the audit log shows. */
  readonly user: string;
}

interface PeerSettings {
  readonly cidr: string;
  /** A Node of the cluster. */
  readonly node: string;
}

type Server = Pick<ApiServer, "apply" | "kubectl" | "serviceAccount">;

const GROUP = "crd.projectcalico.org";
const NAME = "calico-cni-plugin";

/** Of the kinds that the plugins use. The schema accepts anything: it costs the API server least. */
const KINDS = {
  blockaffinities: "BlockAffinity",
  clusterinformations: "ClusterInformation",
  ipamblocks: "IPAMBlock",
  ipamconfigs: "IPAMConfig",
  ipamhandles: "IPAMHandle",
  ippools: "IPPool",
  ipreservations: "IPReservation",
} as const;

/** Builds the peer on demand (minutes, once). */
export async function preparePeerOnKube(server: Server, settings: PeerSettings): Promise<PeerOnKube | Missing> {
  const plugins = await part("calico");
  if ("missing" in plugins) return plugins;
  const resources = Object.entries(KINDS).map(([plural, kind]) =>
    customResource({ group: GROUP, version: "v1", plural, kind, namespaced: false }),
  );
  await server.apply(listOf(resources));
  const names = Object.keys(KINDS).map((plural) => `crd/${plural}.${GROUP}`);
  await server.kubectl(["wait", "--for=condition=Established", ...names, "--timeout=30s"]);
  await server.apply(listOf([...peerResources(settings), ROLE]));
  const { kubeconfig, user } = await server.serviceAccount({ name: NAME, clusterRole: NAME });
  const config = {
    name: "peer",
    cniVersion: "1.0.0",
    type: "calico",
    datastore_type: "kubernetes",
    nodename: settings.node,
    nodename_file_optional: true,
    log_level: "error",
    policy: { type: "k8s" },
    kubernetes: { kubeconfig },
    ipam: { type: "calico-ipam", assign_ipv4: "true", assign_ipv6: "false" },
  };
  return { pluginDirectory: plugins.path, config: JSON.stringify(config), user };
}

type Missing = Extract<Built, { missing: string }>;

function peerResources({ cidr }: PeerSettings): readonly object[] {
  const apiVersion = `${GROUP}/v1`;
  return [
    {
      apiVersion,
      kind: "ClusterInformation",
      metadata: { name: "default" },
      spec: { calicoVersion: "v3.31.0", clusterType: "k8s", datastoreReady: true },
    },
    {
      apiVersion,
      kind: "IPPool",
      metadata: { name: "peer" },
      spec: { cidr, blockSize: 26, ipipMode: "Never", vxlanMode: "Never", nodeSelector: "all()" },
    },
  ];
}

/** As in the peer's own manifest. */
const ROLE = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRole",
  metadata: { name: NAME },
  rules: [
    { apiGroups: [""], resources: ["pods", "nodes", "namespaces"], verbs: ["get"] },
    { apiGroups: [""], resources: ["pods/status"], verbs: ["patch"] },
    {
      apiGroups: [GROUP],
      resources: Object.keys(KINDS),
      verbs: ["get", "list", "create", "update", "delete"],
    },
  ],
};

function listOf(items: readonly object[]): string {
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}
