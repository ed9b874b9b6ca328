/**
 * Four hosts in two subnets behind a router, and one place outside the cluster:
 *
 *   node-1  10.1.1.1 ─┐                                ┌─ node-3  10.1.2.3
 *                     ├─ west ──── router ──── east ───┤
 *   node-2  10.1.1.2 ─┘     10.1.x.254 │ 10.1.0.1      └─ node-4  10.1.2.4
 *                                   outside
 *                                 198.51.100.2
 *
 * and the same with IPv6 (fd01:1::1 …). `west` and `east` are bridges of the router, on which every packet that a node
 * sends is counted. The router knows no pod, and sends nothing back into the subnet that it came from.
 */
import { type Host, openHost } from "../support/host.ts";
import { installRules, readSeen, type Seen } from "./seen-packets.ts";

export type NodeName = "node-1" | "node-2" | "node-3" | "node-4";
export type Subnet = "west" | "east";

export interface NetworkNode {
  readonly name: NodeName;
  readonly subnet: Subnet;
  readonly host: Host;
  /** IPv4, IPv6. */
  readonly addresses: readonly [string, string];
}

export interface RoutedNetwork extends AsyncDisposable {
  readonly router: Host;
  readonly nodes: readonly NetworkNode[];
  /** A namespace of the router, which is reachable from the nodes and has the router as its default gateway. */
  readonly outside: { readonly netns: string; readonly addresses: readonly [string, string] };
  node(name: NodeName): NetworkNode;
  /** What crossed the cables of the nodes while the work was done. */
  seenDuring(work: () => Promise<unknown>): Promise<Seen>;
  /** Loses every packet of the node silently, like a switch that fails. */
  cut(name: NodeName): Promise<void>;
  mend(name: NodeName): Promise<void>;
}

/** An address of the router that all nodes reach, for servers. */
export const ROUTER_ADDRESS = "10.1.0.1";
const OUTSIDE = ["198.51.100.2", "2001:db8:1::2"] as const;
const NAMES: readonly NodeName[] = ["node-1", "node-2", "node-3", "node-4"];
const SUBNETS: Readonly<Record<Subnet, number>> = { west: 1, east: 2 };

/** The addresses of the router in a subnet. */
export function gatewaysOf(subnet: Subnet): readonly [string, string] {
  return [`10.1.${SUBNETS[subnet]}.254`, `fd01:${SUBNETS[subnet]}::fe`];
}

export async function openRoutedNetwork(): Promise<RoutedNetwork> {
  await using undo = new AsyncDisposableStack();
  const [router, ...hosts] = await Promise.all(["router", ...NAMES].map(async () => undo.use(await openHost())));
  if (router === undefined) throw new Error("no router");
  await prepareRouter(router);
  const nodes = NAMES.map((name, index): NetworkNode => {
    const host = hosts[index];
    if (host === undefined) throw new Error(`no host of ${name}`);
    const subnet = index < 2 ? "west" : "east";
    const end = `${SUBNETS[subnet]}`;
    return { name, subnet, host, addresses: [`10.1.${end}.${index + 1}`, `fd01:${end}::${index + 1}`] };
  });
  for (const node of nodes) connect(router, node);
  await Promise.all(nodes.map((node) => addressNode(router, node)));
  const all = undo.move();
  return {
    router,
    nodes,
    outside: { netns: router.view("/run/netns/vt-outside"), addresses: OUTSIDE },
    node(name) {
      const found = nodes.find((each) => each.name === name);
      if (found === undefined) throw new Error(`no node ${name}`);
      return found;
    },
    async seenDuring(work) {
      const before = await readSeen(router);
      await work();
      const after = await readSeen(router);
      const difference = (kind: keyof Seen) => after[kind] - before[kind];
      return { vxlan: difference("vxlan"), fragments: difference("fragments"), tooBig: difference("tooBig") };
    },
    cut: async (name) => void (await router.must(["nft", `add element bridge seen cut { ${name} }`])),
    mend: async (name) => void (await router.must(["nft", `delete element bridge seen cut { ${name} }`])),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function prepareRouter(router: Host): Promise<void> {
  const bridges = (Object.keys(SUBNETS) as Subnet[]).map((subnet) => {
    const [ipv4, ipv6] = gatewaysOf(subnet);
    // The address is fixed: that of a bridge without one follows its ports.
    return `ip link add name ${subnet} address 02:00:00:00:01:0${SUBNETS[subnet]} type bridge
      ip address add ${ipv4}/24 dev ${subnet}
      ip address add ${ipv6}/64 dev ${subnet} nodad
      ip link set ${subnet} up`;
  });
  await router.must(["sh", "-ec", [...bridges, ROUTER_LINKS].join("\n")]);
  await installRules(router);
}

const ROUTER_LINKS = `
# Packets within a subnet are bridged, and no business of the rules for routed ones.
for file in /proc/sys/net/bridge/bridge-nf-call-ip*tables; do [ ! -e $file ] || echo 0 > $file; done
ip address add ${ROUTER_ADDRESS}/32 dev lo
ip netns add vt-outside
ip link add out0 type veth peer name eth0 netns vt-outside
ip address add 198.51.100.1/24 dev out0
ip address add 2001:db8:1::1/64 dev out0 nodad
ip link set out0 up
ip -n vt-outside link set lo up
ip -n vt-outside address add ${OUTSIDE[0]}/24 dev eth0
ip -n vt-outside address add ${OUTSIDE[1]}/64 dev eth0 nodad
ip -n vt-outside link set eth0 up
ip -n vt-outside route add default via 198.51.100.1
ip -n vt-outside -6 route add default via 2001:db8:1::1`;

/** The port of the router has the name of the node. */
function connect(router: Host, { name, host }: NetworkNode): void {
  const pid = /^\/proc\/(\d+)\//.exec(host.netns)?.[1] ?? "";
  // Not in the process namespace of the router: there the other one has no number.
  const cable = ["ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", pid];
  const { exitCode, stderr } = Bun.spawnSync(["nsenter", `--net=${router.netns}`, "--", ...cable]);
  if (exitCode !== 0) throw new Error(`${cable.join(" ")}: ${stderr}`);
}

async function addressNode(router: Host, { name, subnet, host, addresses }: NetworkNode): Promise<void> {
  const [gateway4, gateway6] = gatewaysOf(subnet);
  await router.must(["ip", "link", "set", name, "master", subnet, "up"]);
  const script = `ip address add ${addresses[0]}/24 dev eth0
    ip address add ${addresses[1]}/64 dev eth0 nodad
    ip link set eth0 up
    ip route add default via ${gateway4}
    ip -6 route add default via ${gateway6}`;
  await host.must(["sh", "-ec", script]);
}
