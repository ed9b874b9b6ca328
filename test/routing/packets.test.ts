/**
 * Packets between the pods of four nodes in two subnets, in each way in which a pool may carry them. Both families,
 * TCP and ICMP, every pair of pods, and every node to every pod.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { dirname } from "node:path";
import { identity } from "../../src/identity.ts";
import { openDocsPage } from "../support/docs-page.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { areRoutedByBird } from "./bird-routes.ts";
import { expectLargePackets } from "./large-packets.ts";
import { MODES, type Mode, routePodsByHand, setMode } from "./modes.ts";
import { type Pair, pairsOf, unreachable, untilReachable } from "./reachability.ts";
import { resource } from "./resource.ts";
import { openRoutedSite, type RoutedPod, type RoutedSite } from "./routed-site.ts";
import { startRouterEtcd } from "./router-datastore.ts";
import { endpointOf, giveFloatingAddresses, publishPort, sourcesSeenOutside } from "./ways-in.ts";

const needs = [hostProblem(), hasEtcd ? undefined : "needs etcd", program("nft"), program("bird")];
const test = testNeeding(...needs);
const PODS = ["node-1/a", "node-1/b", "node-2/a", "node-3/a", "node-4/a"] as const;
const HOST_PORT = 8080;
const FLOATING = ["203.0.113.7", "2001:db8:80::7"] as const;

interface TestedMode {
  readonly title: string;
  readonly mode: Mode;
  /** Which packets between nodes are in a tunnel. */
  readonly tunnelled: "all" | "across subnets" | "none";
  /** Somebody adds routes to the pods to the router, which forwards from one subnet to another only. */
  readonly isRouterTold?: boolean;
  /** The routes to the pods of other nodes are BIRD's. */
  readonly isByBird?: boolean;
  /** Also natOutgoing, policy and ports of nodes. */
  readonly isThorough: boolean;
}

const TESTED: readonly TestedMode[] = [
  { title: "VXLAN", mode: MODES.vxlanAlways, tunnelled: "all", isThorough: true },
  {
    title: "VXLAN across subnets",
    ...{ mode: MODES.vxlanCrossSubnet, tunnelled: "across subnets" },
    isThorough: proofSize({ everyDay: false, soak: true }),
  },
  {
    title: "a mesh of BGP",
    ...{ mode: MODES.bgpMesh, tunnelled: "none", isRouterTold: true, isByBird: true },
    isThorough: true,
  },
  {
    title: "static routes and a router that knows the pods",
    ...{ mode: MODES.none, tunnelled: "none", isRouterTold: true },
    isThorough: proofSize({ everyDay: false, soak: true }),
  },
];

/** Floating addresses are announced if they lie in a pool without a tunnel; no pod gets an address of it. */
const FLOATING_POOLS = [
  resource("IPPool", "floating", { cidr: "203.0.113.0/24", disabled: true }),
  resource("IPPool", "floating6", { cidr: "2001:db8:80::/112", disabled: true }),
];
const ALLOWED = {
  action: "Allow",
  source: { selector: "role == 'client'" },
  destination: { selector: "role == 'server'" },
} as const;
const POLICIES = [
  resource("GlobalNetworkPolicy", "deny", { order: 200, types: ["Ingress", "Egress"] }),
  resource("GlobalNetworkPolicy", "allow", {
    ...{ order: 100, types: ["Ingress", "Egress"], ingress: [ALLOWED], egress: [ALLOWED] },
  }),
];

describe("pods of different nodes reach each other", () => {
  let site: RoutedSite;
  let pods: readonly RoutedPod[];
  let pairs: readonly Pair[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openRoutedSite({ startDatastore: startRouterEtcd });
    pods = await Promise.all(PODS.map((name) => site.addPod(name)));
    pairs = pairsOf(pods, site.nodes);
    for (const name of ["node-1/a", "node-4/a"] as const) await label(pod(name), "role=client");
    await label(pod("node-3/a"), "role=server");
    await publishPort(pod("node-3/a"), HOST_PORT);
  }, 60_000);
  afterAll(() => site?.[Symbol.asyncDispose]());

  const pod = (name: (typeof PODS)[number]): RoutedPod => {
    const found = pods.find((each) => each.name === name);
    if (found === undefined) throw new Error(`no pod ${name}`);
    return found;
  };
  const label = async (each: RoutedPod, text: string) =>
    site.admin(`label workloadendpoint ${await endpointOf(site, each)} -n routed ${text}`);
  const subnetOf = ({ host }: Pair["from"]) => site.network.nodes.find((node) => node.host === host)?.subnet;
  const isAcross = ({ from, to }: Pair) => subnetOf(from) !== subnetOf(to);
  const isBeside = (pair: Pair) => !isAcross(pair) && pair.from.host !== pair.to.host;
  /** Whether packets between these pairs, all of which arrive, are in a tunnel. */
  const isTunnelled = async (chosen: readonly Pair[]) => {
    const { vxlan } = await site.network.seenDuring(async () => expect(await unreachable(chosen)).toEqual([]));
    return vxlan > 0;
  };
  const wayOfPackets = async () => ({
    beside: await isTunnelled(pairs.filter(isBeside)),
    across: await isTunnelled(pairs.filter(isAcross)),
    bird: await areRoutedByBird(pairs),
  });
  /** From every pod, the pod itself too. */
  const untilAnswered = (name: string, address: string, port: number) =>
    pollUntil(async () => {
      const replies = await Promise.all(pods.map(({ netns }) => askTcp(netns, address, port)));
      return replies.every((reply) => reply.startsWith(`${name} `));
    }, `every pod to reach ${name} at ${address}, port ${port}`);
  /** A tunnel of IPv6 takes 70 bytes of a packet. */
  const mtuIn = ({ vxlan }: Mode) => (vxlan === "Never" ? 1500 : 1430);
  /** Of new pods: each agent follows the pools by itself. */
  const untilMtuIsSet = (mode: Mode) =>
    pollUntil(
      async () => {
        const files = await Promise.all(site.nodes.map(({ host }) => host.must(["cat", "/var/lib/vendor/mtu"])));
        return files.every((text) => Number(text) === mtuIn(mode));
      },
      `an MTU of ${mtuIn(mode)} for new pods`,
    );
  const mtuOf = async ({ host, inner }: RoutedPod) => {
    const links = await host.must(["nsenter", `--net=${inner}`, "ip", "-j", "link", "show", "eth0"]);
    return JSON.parse(links)[0].mtu as number;
  };

  for (const { title, mode, tunnelled, isRouterTold = false, isByBird = false, isThorough } of TESTED) {
    describe(`by ${title}`, () => {
      let routes: AsyncDisposable | undefined;
      beforeAll(async () => {
        if (needs.some((need) => need !== undefined)) return;
        if (isRouterTold) routes = await routePodsByHand(site, pods);
        await setMode(site, mode);
        const expected = { beside: tunnelled === "all", across: tunnelled !== "none", bird: isByBird };
        const isSet = async () => Bun.deepEquals(await wayOfPackets(), expected);
        await pollUntil(isSet, `the way of packets: ${JSON.stringify(expected)}`);
      }, 60_000);
      afterAll(() => routes?.[Symbol.asyncDispose]());

      test("every pair", async () => {
        expect(await unreachable(pairs)).toEqual([]);
      });

      test("with datagrams of 64 KB and a long transfer, none of whose packets is too large", async () => {
        await untilMtuIsSet(mode);
        const [from, to] = [await site.addPod("node-1/large"), await site.addPod("node-3/large")];
        if (isRouterTold) await routePodsByHand(site, [from, to]);
        await untilReachable([{ from, to }]);
        await expectLargePackets(site.network, { from, to });
        for (const each of [from, to]) await site.removePod(each);
      });

      if (mode === MODES.vxlanCrossSubnet) {
        test("which the commands of the page about routes show", async () => {
          const { addresses, node } = pod("node-3/a");
          const { spec } = JSON.parse(await site.admin(`get node ${node.name} -o json`));
          const output = await openDocsPage("routing.md").type("If a ping fails", {
            host: pod("node-1/a").host,
            environment: { ...site.datastore.environment, PATH: `${dirname(builtProgram())}:${process.env["PATH"]}` },
            replacing: { "10.50.157.64": addresses[0], "10.50.157.65": spec.ipv4VXLANTunnelAddr },
          });
          for (const expected of [
            `(node ${node.name})`,
            `${addresses[0]} via ${spec.ipv4VXLANTunnelAddr} dev ${identity.vxlanDevice}`,
            `${spec.ipv4VXLANTunnelAddr} lladdr ${spec.vxlanTunnelMACAddr} PERMANENT`,
            `${spec.vxlanTunnelMACAddr} dst ${node.addresses[0]} self permanent`,
            "counter packets 0 bytes 0 drop",
            `1410 bytes from ${addresses[0]}`,
            "message too long, mtu=1450",
            "BIRD is not running: not needed, no pool without a tunnel",
          ]) {
            expect(output).toContain(expected);
          }
        });
      }

      if (!isThorough) return;

      test("through a port of a node", async () => {
        const target = pod("node-3/a");
        for (const address of target.node.addresses) await untilAnswered(target.name, address, HOST_PORT);
      });

      test("and places outside, with their own address or with that of their node", async () => {
        for (const natOutgoing of [true, false]) {
          await setMode(site, { ...mode, natOutgoing });
          for (const from of [pod("node-1/b"), pod("node-4/a")]) {
            const expected = natOutgoing ? from.node.addresses : from.addresses;
            await pollUntil(
              async () => Bun.deepEquals(await sourcesSeenOutside(site, from), [...expected]),
              `${from.name} to be seen as ${expected.join(", ")}`,
            );
          }
          expect(await unreachable(pairs)).toEqual([]);
        }
      });

      test("as far as policy allows it", async () => {
        const isAllowed = ({ from, to }: Pair) =>
          ["node-1/a", "node-4/a"].includes(from.name) && to.name === "node-3/a";
        const [allowed, denied] = [pairsOf(pods).filter(isAllowed), pairsOf(pods).filter((pair) => !isAllowed(pair))];
        await site.apply(...POLICIES);
        await pollUntil(async () => (await unreachable(denied)).length === denied.length * 4, "the policy to deny");
        expect(await unreachable(allowed)).toEqual([]);
        await site.admin("delete globalnetworkpolicy deny allow");
        await untilReachable(pairs);
      });
    });
  }

  test("through floating addresses that BGP announces", async () => {
    const target = pod("node-3/a");
    await site.apply(...FLOATING_POOLS);
    await giveFloatingAddresses(site, target, FLOATING);
    await using _routes = await routePodsByHand(site, [...pods, { ...target, addresses: FLOATING }]);
    await setMode(site, MODES.bgpMesh);
    for (const address of FLOATING) await untilAnswered(target.name, address, 80);
  });

  test("only within a subnet, if there are static routes and the router knows no pod", async () => {
    await setMode(site, MODES.none);
    await untilReachable(pairs.filter((pair) => !isAcross(pair)));
    const across = pairs.filter(isAcross);
    await pollUntil(async () => (await unreachable(across)).length === across.length * 4, "no way across subnets");
  });

  test("with the MTU of the host, less the header of the tunnel of their pool", async () => {
    const sizes: number[] = [];
    for (const mode of [MODES.vxlanAlways, MODES.none]) {
      await setMode(site, mode);
      await untilMtuIsSet(mode);
      const made = await site.addPod("node-2/mtu");
      sizes.push(await mtuOf(made));
      await site.removePod(made);
    }
    expect(sizes).toEqual([1430, 1500]);
  });
});
