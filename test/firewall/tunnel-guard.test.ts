/**
 * Tunnelled packets that reach a node by a Service whose endpoint is the tunnel port of that node. The node that translates
 * sends on with its own address, so that the other takes it for the sender.
 *
 *   stranger ──▶ node-1: 192.0.2.1, port 30789 ──▶ node-2: 192.0.2.2, port 4789 ──▶ the pods of node-2
 *
 * The rules of `nft` are those that kube-proxy makes of such a Service. The kernel of the tests may have no IPIP device: of
 * IPIP a raw socket of node-2 receives what the device would get.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { applyTunnelGuard } from "../../src/firewall/apply-tunnel.ts";
import { parseAddress } from "../../src/ip/address.ts";
import { closeNetlinkSocket, openNetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { hearUdp, insideNetns, openUdpClient, serveUdp, type UdpListener } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { pollUntil } from "../support/poll.ts";
import { frameOf } from "../support/raw-frame.ts";
import { rawArrives } from "../support/raw-ip.ts";

const area = new NetnsArea("tunnelguard");
const canRun = canMakeNetns && Bun.which("nft") !== null;
const VXLAN_PORT = 4789;
const POD_PORT = 5000;
const POD_OF_NODE_2 = "10.244.2.0";
const MAC = "66:00:00:00:00:02";
const NODES = ["192.0.2.1", "192.0.2.2", "198.51.100.3", "fd99::1", "fd99::2"] as const;

/** What kube-proxy writes on node-1, for a Service with each kind of address. */
const SERVICES = `
table inet kube-proxy {
  chain services {
    meta nfproto ipv4 udp dport 30789 dnat ip to 192.0.2.2:4789
    meta nfproto ipv6 udp dport 30789 dnat ip6 to [fd99::2]:4789
    udp dport 30790 dnat ip to 192.0.2.2:30789
    udp dport 30053 dnat ip to 192.0.2.2:53
    ip daddr { 203.0.113.80, 10.96.0.80 } udp dport 4789 dnat ip to 192.0.2.2:4789
    ip daddr 203.0.113.80 ip protocol 4 dnat ip to 192.0.2.2
  }
  chain prerouting { type nat hook prerouting priority -100; jump services; }
  chain output { type nat hook output priority -100; jump services; }
  chain postrouting { type nat hook postrouting priority 100; ct status dnat masquerade; }
}`;
const SERVICES_OF_NODE_2 = `
table ip kube-proxy {
  chain prerouting { type nat hook prerouting priority -100; udp dport 30789 dnat to 192.0.2.2:4789; }
}`;

describe.skipIf(!canRun)(
  `the guard of the tunnels${canRun ? "" : " (skipped: needs root, ip, nsenter and nft)"}`,
  () => {
    let [node1, node2, node3, stranger, pod]: TestNetns[] = [];
    let pods: UdpListener;

    beforeAll(async () => {
      area.sweep();
      const wires = area.create("switch");
      [node1, node2, node3, stranger, pod] = ["node1", "node2", "node3", "stranger", "pod"].map((name) =>
        area.create(name),
      );
      runIn(wires, ["ip", "link", "add", "bridge", "type", "bridge"]);
      runIn(wires, ["ip", "link", "set", "bridge", "up"]);
      for (const [index, host] of [the(node1), the(node2), the(stranger)].entries()) {
        const end = host === stranger ? "66" : `${index + 1}`;
        runIn(wires, ["ip", "link", "add", `port${index}`, "type", "veth", "peer", "name", "eth0", "netns", host.name]);
        runIn(wires, ["ip", "link", "set", `port${index}`, "master", "bridge", "up"]);
        sh(
          host,
          `ip link set eth0 up; ip addr add 192.0.2.${end}/24 dev eth0; ip addr add fd99::${end}/64 dev eth0 nodad`,
        );
      }
      for (const [name, host, address, gateway] of [
        ["pod", the(pod), "10.244.1.9", "10.244.1.1"],
        ["node3", the(node3), "198.51.100.3", "198.51.100.1"],
      ] as const) {
        sh(the(node1), `ip link add ${name} type veth peer name eth0 netns ${host.name}; ip link set ${name} up`);
        sh(the(node1), `ip addr add ${gateway}/24 dev ${name}`);
        sh(host, `ip link set eth0 up; ip addr add ${address}/24 dev eth0; ip route add default via ${gateway}`);
      }
      sh(the(node1), "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding");
      sh(the(node1), "ip route add default via 192.0.2.66");
      for (const host of [node2, stranger]) sh(the(host), "ip route add default via 192.0.2.1");
      for (const [device, family] of [
        ["vxlan.vendor", "192.0.2.2"],
        ["vxlan-v6.vendor", "fd99::2"],
      ] as const) {
        sh(
          the(node2),
          `for each in all default; do echo 0 >/proc/sys/net/ipv4/conf/$each/rp_filter; done
         ip link add ${device} type vxlan id 4096 dstport ${VXLAN_PORT} local ${family} dev eth0 nolearning
         ip link set ${device} address ${MAC} up`,
        );
      }
      sh(the(node2), `ip addr add ${POD_OF_NODE_2}/32 dev vxlan.vendor; ip route add 10.244.1.0/24 dev vxlan.vendor`);
      runIn(the(node1), ["nft", "-f", "-"], SERVICES);
      runIn(the(node2), ["nft", "-f", "-"], SERVICES_OF_NODE_2);
      for (const host of [node1, node2, node3]) guard(the(host));
      pods = await hearUdp(the(node2).path, POD_PORT, POD_OF_NODE_2);
    });
    afterAll(() => {
      pods?.[Symbol.dispose]();
      area.sweep();
    });

    const guard = ({ path }: TestNetns) =>
      insideNetns(path, () => {
        const socket = openNetlinkSocket("netfilter");
        const senders = NODES.map((text) => the(parseAddress(text)));
        applyTunnelGuard(socket, { tunnels: ["vxlan4", "vxlan6", "ipip4"], senders, isPartial: false });
        closeNetlinkSocket(socket);
      });
    /** What both nodes have dropped. */
    const dropped = () => {
      const text = [node1, node2].map((host) => sh(the(host), "nft list table inet vendor_tunnel")).join("");
      return Array.from(text.matchAll(/counter packets (\d+)/g), ([, packets]) => Number(packets)).reduce(
        (a, b) => a + b,
      );
    };
    const delivered = (source: string) => pods.senders.filter((sender) => sender === source).length;
    /** Sends a packet of a forged pod in VXLAN, and returns what becomes of it. */
    const send = async (from: TestNetns, { to, port, source }: { to: string; port: number; source: string }) => {
      const before = dropped();
      const inner = frameOf({ mac: MAC, tags: [], source, target: POD_OF_NODE_2, port: POD_PORT });
      const socket = await insideNetns(from.path, () =>
        Bun.udpSocket({ hostname: to.includes(":") ? "::" : "0.0.0.0", port: 0 }),
      );
      try {
        socket.send(Uint8Array.of(8, 0, 0, 0, 0, 0x10, 0, 0, ...inner), port, to);
      } catch {
        // The kernel tells the sender that a rule of its own host has dropped it.
      }
      await pollUntil(
        () => delivered(source) > 0 || dropped() > before,
        `the packet of ${source} to ${to}, port ${port}`,
      );
      socket.close();
      return delivered(source) > 0 ? "delivered" : "dropped";
    };

    test.each([
      ["directly", "stranger", "192.0.2.2", VXLAN_PORT],
      ["by the node port of another node", "stranger", "192.0.2.1", 30789],
      ["by a node port over IPv6", "stranger", "fd99::1", 30789],
      ["by an external address or one of a load balancer", "stranger", "203.0.113.80", VXLAN_PORT],
      ["by a cluster address, from a pod", "pod", "10.96.0.80", VXLAN_PORT],
      ["by a cluster address, from a process of a node", "node1", "10.96.0.80", VXLAN_PORT],
      ["by a node port that leads to a node port of the node itself", "stranger", "192.0.2.1", 30790],
    ] as const)("drops what is sent %s", async (way, sender, to, port) => {
      const source = `10.244.1.${100 + way.length}`;
      expect(await send(the({ stranger, pod, node1 }[sender]), { to, port, source })).toBe("dropped");
    });

    test("drops IPIP whose destination was translated", async () => {
      const before = dropped();
      const probe = { from: the(stranger).path, to: the(node2).path, target: "203.0.113.80", protocol: 4 };
      expect(await rawArrives({ ...probe, patience: 500 })).toBe(false);
      expect(dropped()).toBe(before + 1);
    });

    test("delivers what nodes send, also if another node routes it", async () => {
      const to = { to: "192.0.2.2", port: VXLAN_PORT };
      expect(await send(the(node1), { ...to, source: "10.244.1.11" })).toBe("delivered");
      expect(await send(the(node3), { ...to, source: "10.244.1.12" })).toBe("delivered");
    });

    test("lets a Service reply to a client that sends from the port of VXLAN", async () => {
      using _server = await serveUdp(the(node2).path, "server", 53, "192.0.2.2");
      using client = await openUdpClient(the(stranger).path, "0.0.0.0", 5_000, VXLAN_PORT);
      expect(await client.ask("192.0.2.1", 30053)).toBe("server 192.0.2.1");
    });
  },
);

function sh(host: TestNetns, script: string): string {
  return runIn(host, ["sh", "-ec", script]);
}

function the<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error("absent");
  return value;
}
