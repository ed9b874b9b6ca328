/**
 * Prepares the best-known peer for measurements: Calico's CNI and IPAM plugins
 * on the caller's etcd, executed with the environment of a runtime. Their log,
 * lock and node name files have fixed paths: use them on a private host
 * (test/support/host.ts).
 */
import { join } from "node:path";
import { type Built, part } from "../../test/parts/build.ts";
import type { RunOptions } from "../../test/support/host.ts";

export interface PeerCalico {
  /** Contains `calico` and `calico-ipam`: the CNI_PATH. */
  readonly pluginDirectory: string;
  /** The network config for stdin of either program. */
  readonly config: string;
  /** All environment variables of one call. */
  environment(command: string, attachment: PeerAttachment): Readonly<Record<string, string>>;
}

export interface PeerAttachment {
  readonly containerId: string;
  readonly netns: string;
}

export interface PeerSettings {
  readonly etcdEndpoint: string;
  readonly cidr: string;
  readonly node: string;
}

/** Runs a command on the host where etcd is reachable and the plugin will run; throws if it fails. */
type Must = (command: readonly string[], options: RunOptions) => Promise<string>;

/** Builds the peer on demand (minutes, once) and fills its datastore: cluster information, one pool, this node. */
export async function preparePeerCalico(settings: PeerSettings, must: Must): Promise<PeerCalico | { missing: string }> {
  const [plugins, calicoctl] = [await part("calico"), await part("calicoctl")];
  const missing = missingOf(plugins) ?? missingOf(calicoctl);
  if (!("path" in plugins) || !("path" in calicoctl)) return { missing: missing ?? "" };

  const environment = { DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: settings.etcdEndpoint };
  const apply = [calicoctl.path, "apply", "--allow-version-mismatch", "-f", "-"];
  await must(apply, { environment, stdin: resourcesOf(settings) });
  return {
    pluginDirectory: plugins.path,
    config: JSON.stringify(configOf(settings)),
    environment: (command, { containerId, netns }) => ({
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
      CNI_COMMAND: command,
      CNI_CONTAINERID: containerId,
      CNI_NETNS: netns,
      CNI_IFNAME: "eth0",
      CNI_PATH: plugins.path,
    }),
  };
}

/** The program for a plugin type of the peer. */
export function peerProgram(peer: PeerCalico, type: "calico" | "calico-ipam"): string {
  return join(peer.pluginDirectory, type);
}

function missingOf(built: Built): string | undefined {
  return "missing" in built ? built.missing : undefined;
}

function configOf({ etcdEndpoint, node }: PeerSettings): object {
  return {
    name: "peer",
    cniVersion: "1.0.0",
    type: "calico",
    datastore_type: "etcdv3",
    etcd_endpoints: etcdEndpoint,
    nodename: node,
    nodename_file_optional: true,
    log_level: "error",
    ipam: { type: "calico-ipam", assign_ipv4: "true", assign_ipv6: "false" },
  };
}

/** calicoctl creates the cluster information together with the first resource. */
function resourcesOf({ cidr, node }: PeerSettings): string {
  const apiVersion = "projectcalico.org/v3";
  const resources = [
    { apiVersion, kind: "Node", metadata: { name: node }, spec: {} },
    { apiVersion, kind: "IPPool", metadata: { name: "peer" }, spec: { cidr, natOutgoing: false } },
  ];
  return resources.map((resource) => JSON.stringify(resource)).join("\n---\n");
}
