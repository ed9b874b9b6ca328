/** Other ways to a pod: a port of its node, and floating addresses; and which address of a pod a place outside sees. */
import { hearUdp, insideNetns } from "../support/namespace-sockets.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import type { RoutedPod, RoutedSite } from "./routed-site.ts";

/** Maps a port of the node to port 80 of the pod, as a runtime does it after the network's own plugin. */
export async function publishPort({ node, addresses, containerId, inner }: RoutedPod, hostPort: number): Promise<void> {
  const ips = addresses.map((address) => ({ address: `${address}/${address.includes(":") ? 128 : 32}`, interface: 0 }));
  const config = {
    ...{ cniVersion: "1.1.0", name: "net", type: "portmap" },
    prevResult: { cniVersion: "1.1.0", interfaces: [{ name: "eth0", sandbox: inner }], ips },
    runtimeConfig: { portMappings: [{ hostPort, containerPort: 80, protocol: "tcp" }] },
  };
  await node.host.must([builtProgram("portmap")], {
    stdin: JSON.stringify(config),
    environment: {
      ...{ CNI_COMMAND: "ADD", CNI_CONTAINERID: containerId, CNI_NETNS: inner },
      ...{ CNI_IFNAME: "eth0", CNI_PATH: "/opt/cni/bin" },
    },
  });
}

/** The name of the pod's WorkloadEndpoint. */
export async function endpointOf(site: RoutedSite, { addresses }: RoutedPod): Promise<string> {
  const list = JSON.parse(await site.admin("get workloadendpoints -A -o json")) as {
    readonly items: readonly { metadata: { name: string }; spec: { ipNetworks: readonly string[] } }[];
  };
  const found = list.items.find(({ spec }) => spec.ipNetworks.includes(`${addresses[0]}/32`));
  if (found === undefined) throw new Error(`no endpoint with ${addresses[0]}`);
  return found.metadata.name;
}

/** IPv4, IPv6. */
export async function giveFloatingAddresses(
  site: RoutedSite,
  pod: RoutedPod,
  floating: readonly [string, string],
): Promise<void> {
  const ipNATs = pod.addresses.map((internalIP, index) => ({ internalIP, externalIP: floating[index] }));
  const patch = JSON.stringify({ spec: { ipNATs } });
  await site.admin(`patch workloadendpoint ${await endpointOf(site, pod)} -n routed -p ${patch}`);
}

const PORT = 9;

/** The addresses that a place outside of the cluster sees if the pod sends to it: IPv4, IPv6. */
export async function sourcesSeenOutside({ network }: RoutedSite, { netns }: RoutedPod): Promise<readonly string[]> {
  const { outside } = network;
  using heard = await hearUdp(outside.netns, PORT);
  for (const [index, address] of outside.addresses.entries()) {
    const hostname = address.includes(":") ? "::" : "0.0.0.0";
    const socket = await insideNetns(netns, () => Bun.udpSocket({ hostname, port: 0 }));
    await pollUntil(() => {
      if (heard.senders.length <= index) socket.send("?", PORT, address);
      return heard.senders.length > index;
    }, `a datagram at ${address}`);
    socket.close();
  }
  return [...new Set(heard.senders)];
}
