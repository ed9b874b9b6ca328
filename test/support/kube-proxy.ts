/** The real kube-proxy on a node of a test cluster: Services by nftables rules of its own. */
import { join } from "node:path";
import type { Host } from "./host.ts";
import { type HostDaemon, startHostDaemon } from "./host-daemon.ts";
import { type ApiServer, kubeProgram } from "./kube-apiserver.ts";

interface KubeProxyPlan {
  readonly node: string;
  /** The addresses of pods, one range of each family: what comes from elsewhere is masqueraded. */
  readonly podRanges: readonly string[];
}

/** The role of this name is built in. */
const USER = "system:kube-proxy";

export function startKubeProxy(host: Host, server: ApiServer, { node, podRanges }: KubeProxyPlan): HostDaemon {
  const { credentials } = server;
  const certificate = credentials.makeUser("proxy", `/CN=${USER}`);
  const config = join(host.directory, "kube-proxy.json");
  host.writeFile(
    config,
    JSON.stringify({
      apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
      kind: "KubeProxyConfiguration",
      mode: "nftables",
      clientConnection: { kubeconfig: credentials.writeKubeconfig("proxy", certificate) },
      hostnameOverride: node,
      clusterCIDR: podRanges.join(","),
      bindAddress: podRanges.every((range) => range.includes(":")) ? "::" : "0.0.0.0",
      healthzBindAddress: "127.0.0.1:10256",
      metricsBindAddress: "127.0.0.1:10249",
      // The limits of conntrack belong to the machine, not to a network namespace.
      conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
    }),
  );
  return startHostDaemon(host, "kube-proxy", [kubeProgram("kube-proxy"), `--config=${config}`]);
}
