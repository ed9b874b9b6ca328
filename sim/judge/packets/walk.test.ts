import { describe, expect, test } from "bun:test";
import { address, prefix } from "../../../test/support/ip.ts";
import { type HandMadeHost, handMadeHosts } from "./hand-made-network.ts";
import { trackedRules, trackingRules } from "./kernel-rules.ts";
import type { EnterHost, Network } from "./network.ts";
import { replyTo } from "./probes.ts";
import { chosenSource, walk } from "./walk.ts";

const acceptAll: EnterHost = () => () => ({ verdict: "accept" });

function networkOf(enter: EnterHost = acceptAll): { network: Network; first: HandMadeHost; second: HandMadeHost } {
  const [first, second] = handMadeHosts();
  return { network: { machines: [first, second], enter }, first, second };
}

const tcp = (from: string, to: string) => ({
  ...{ source: address(from), destination: address(to), protocol: 6, sourcePort: 40_000, destinationPort: 80 },
});
const ACROSS = tcp("10.0.1.5", "10.0.2.5");

function fromPod({ network, first }: ReturnType<typeof networkOf>, packet = ACROSS) {
  return walk(network, { machine: first, namespace: first.container, packet });
}

describe("walk()", () => {
  test("follows a packet from pod to pod through the tunnel, and says its way", () => {
    const cluster = networkOf();
    const journey = fromPod(cluster);

    expect(journey.end).toBe("delivered");
    expect(journey.namespace).toBe(cluster.second.container);
    expect(journey.path).toEqual([
      "container on node-1: 0.0.0.0/0 via 169.254.1.1 dev eth0",
      "node-1: 10.0.2.0/24 via 10.0.2.0 dev vxlan.vend",
      "tunnel 192.0.2.1 → 192.0.2.2",
      "node-2: 10.0.2.5/32 dev vend2",
    ]);
  });

  test("follows a packet of a host to its own pod and to that of another, with the source that its routes choose", () => {
    const { network, first, second } = networkOf();
    for (const [target, source] of [
      ["10.0.1.5", "192.0.2.1"],
      ["10.0.2.5", "10.0.1.0"],
    ] as const) {
      expect(chosenSource(first.root, address(target))).toEqual(address(source));
      const { end, namespace } = walk(network, { machine: first, namespace: first.root, packet: tcp(source, target) });
      expect(end).toBe("delivered");
      expect(namespace).toBe(target === "10.0.1.5" ? first.container : second.container);
    }
  });

  test("asks all hooks on the way, also about the tunnelled packet", () => {
    const asked: string[] = [];
    const cluster = networkOf(({ name }) => ({ hook, iif, oif, packet }) => {
      asked.push([name, hook, iif?.name ?? "-", oif?.name ?? "-", packet.protocol].join(" "));
      return { verdict: "accept" };
    });
    fromPod(cluster);

    expect(asked).toEqual([
      "node-1 prerouting vend1 - 6",
      "node-1 forward vend1 vxlan.vend 6",
      "node-1 postrouting vend1 vxlan.vend 6",
      "node-1 output - eth0 17",
      "node-1 postrouting - eth0 17",
      "node-2 prerouting eth0 - 17",
      "node-2 input eth0 - 17",
      "node-2 prerouting vxlan.vend - 6",
      "node-2 forward vxlan.vend vend2 6",
      "node-2 postrouting vxlan.vend vend2 6",
    ]);
  });

  test("ends where a rule drops it", () => {
    const cluster = networkOf(
      ({ name }) =>
        ({ hook }) =>
          name === "node-2" && hook === "forward" ? { verdict: "drop", by: "no" } : { verdict: "accept" },
    );
    expect(fromPod(cluster)).toMatchObject({ end: "dropped" });
    expect(fromPod(cluster).path.at(-1)).toBe("node-2 drops it at forward (no)");
  });

  test("every host on the way tracks the connection of a real packet, and none that of one that is only tried", () => {
    const stateOn = ({ root }: HandMadeHost, packet = ACROSS) => root.nftables.connections.stateOf(packet);
    const tried = networkOf(trackedRules);
    expect(fromPod(tried).end).toBe("delivered");
    expect([tried.first, tried.second].map(({ root }) => root.nftables.connections.list().length)).toEqual([0, 0]);

    const { network, first, second } = networkOf(trackingRules);
    walk(network, { machine: first, namespace: first.container, packet: ACROSS });
    expect([first, second].map((host) => stateOn(host))).toEqual(["new", "new"]);
    walk(network, { machine: second, namespace: second.container, packet: { ...ACROSS, ...replyTo(ACROSS) } });
    expect([first, second].map((host) => stateOn(host))).toEqual(["established", "established"]);
  });

  const DAMAGES: readonly (readonly [string, (cluster: ReturnType<typeof networkOf>) => void, string])[] = [
    [
      "no route",
      ({ first }) => first.root.routes.splice(0, 9, ...first.root.routes.filter(({ gateway }) => !gateway)),
      "node-1: no route",
    ],
    [
      "a blackhole",
      ({ first }) => first.root.addRoute("10.0.2.5/32", { kind: "blackhole" }),
      "node-1: the route is of kind blackhole",
    ],
    [
      "no forwarding",
      ({ first }) => first.root.sysctls.set("net/ipv4/conf/vend1/forwarding", "0"),
      'node-1: it does not forward what "vend1" receives',
    ],
    ["no neighbour", ({ first }) => first.root.neighbours.splice(0), 'node-1: "vxlan.vend" has no neighbour 10.0.2.0'],
    [
      "no forwarding entry",
      ({ first }) => first.root.forwarding.splice(0),
      'node-1: "vxlan.vend" has no forwarding entry for 66:00:00:00:00:02',
    ],
    [
      "another MAC at the receiver",
      ({ second }) =>
        second.root.addLink({
          ...(second.root.links.get(4) as never as { index: 4; name: "v" }),
          mac: new Uint8Array(6),
        }),
      "node-2 has no device for the tunnelled packet 192.0.2.1 → 192.0.2.2",
    ],
    [
      "a link that is down",
      ({ second }) =>
        void second.container.addLink({
          ...(second.container.links.get(2) as never as { index: 2; name: "e" }),
          isUp: false,
        }),
      '"vend2" or its other end "eth0" is down',
    ],
    [
      "the address of another pod",
      ({ second }) => second.container.routes.splice(0),
      "the container on node-2 does not have 10.0.2.5",
    ],
    [
      "a wrong neighbour of the pod",
      ({ second }) =>
        second.root.neighbours.splice(0, 1, { ...second.root.neighbours[0], mac: new Uint8Array(6) } as never),
      'the neighbour 10.0.2.5 on "vend2" has the address of another interface',
    ],
    [
      "nobody who answers for the gateway",
      ({ first }) => first.container.neighbours.splice(0),
      'nobody answers for 169.254.1.1 on "eth0"',
    ],
    [
      "a circle",
      ({ first, second }) => {
        for (const [host, next] of [
          [first, 2],
          [second, 1],
        ] as const)
          host.root.addRoute("10.0.2.5/32", { linkIndex: 2, gateway: address(`192.0.2.${next}`), priority: -1 });
      },
      "it goes in a circle",
    ],
  ];

  test.each(DAMAGES)("finds %s", (_, damage, reason) => {
    const cluster = networkOf();
    damage(cluster);

    expect(fromPod(cluster)).toMatchObject({ end: "lost" });
    expect(fromPod(cluster).path.at(-1)).toBe(reason);
  });

  test("the reverse path filter drops the address of another", () => {
    const cluster = networkOf();
    cluster.first.container.addAddress(2, "10.0.1.6");

    expect(fromPod(cluster, tcp("10.0.1.6", "10.0.2.5")).path.at(-1)).toBe(
      'node-1: the reverse path filter of "vend1" drops it',
    );
  });

  test("a rule with a source leads to another table", () => {
    const cluster = networkOf();
    cluster.first.root.rules.push({ family: 4, priority: 100, source: prefix("10.0.1.0/24"), table: 7 });
    cluster.first.root.addRoute("0.0.0.0/0", { table: 7, kind: "blackhole" });

    expect(fromPod(cluster).path.at(-1)).toBe("node-1: the route is of kind blackhole");
  });
});
