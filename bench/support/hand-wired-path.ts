/** Two hosts without this product, each with a pod, connected by VXLAN with `ip` alone, as an administrator would do it. */
import type { NetworkNode } from "../../test/routing/routed-network.ts";
import type { PodPath } from "./pod-path.ts";

interface HandWiredEnd {
  readonly node: NetworkNode;
  readonly pod: string;
  readonly tunnel: string;
  readonly mac: string;
}

export async function wireByHand(first: NetworkNode, second: NetworkNode, podMtu: number): Promise<PodPath> {
  const from: HandWiredEnd = { node: first, pod: "10.60.1.2", tunnel: "10.60.1.1", mac: "66:00:00:00:00:01" };
  const to: HandWiredEnd = { node: second, pod: "10.60.2.2", tunnel: "10.60.2.1", mac: "66:00:00:00:00:02" };
  for (const [own, other] of [
    [from, to],
    [to, from],
  ] as const) {
    await own.node.host.must(["sh", "-ec", scriptOf(own, other, podMtu)]);
  }
  const netnsOf = ({ node }: HandWiredEnd) => node.host.view("/run/netns/vt-hand");
  return { name: "wired by hand", from: netnsOf(from), to: netnsOf(to), address: to.pod };
}

function scriptOf(own: HandWiredEnd, other: HandWiredEnd, podMtu: number): string {
  const addresses = { local: own.node.addresses[0], remote: other.node.addresses[0] };
  return `ip link add vxlan0 address ${own.mac} mtu 1450 type vxlan id 4096 dstport 4789 nolearning \
local ${addresses.local} remote ${addresses.remote} dev eth0
ip address add ${own.tunnel}/32 dev vxlan0
ip link set vxlan0 up
ip neighbour add ${other.tunnel} lladdr ${other.mac} dev vxlan0 nud permanent
ip route add ${other.pod}/32 via ${other.tunnel} dev vxlan0 onlink
ip netns add vt-hand
ip link add hand mtu ${podMtu} type veth peer name eth0 mtu ${podMtu} netns vt-hand
ip address add 169.254.1.1/32 dev hand
ip link set hand up
ip route add ${own.pod}/32 dev hand
ip -n vt-hand address add ${own.pod}/32 dev eth0
ip -n vt-hand link set eth0 up
ip -n vt-hand route add 169.254.1.1 dev eth0
ip -n vt-hand route add default via 169.254.1.1`;
}
