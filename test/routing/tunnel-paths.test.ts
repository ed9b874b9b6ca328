/** What the agents find out about the tunnels between them: a broken card, a small MTU, and a port that the network eats. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync } from "node:fs";
import type { Check } from "../../src/admin/connectivity/checks.ts";
import { lastRound, probeKey } from "../../src/admin/connectivity/probe.ts";
import { remedyFor } from "../../src/admin/connectivity/remedy.ts";
import { identity } from "../../src/identity.ts";
import { readChecksumOffload } from "../../src/linux/checksum-offload.ts";
import { PROBE_PORT } from "../../src/model/probe-port.ts";
import { POD_MTU_FILE } from "../../src/routing/pod-mtu.ts";
import type { PathResult } from "../../src/routing/tunnel-paths.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { unreachable } from "./reachability.ts";
import { resource } from "./resource.ts";
import type { NodeName } from "./routed-network.ts";
import { openRoutedSite, type RoutedPod, type RoutedSite } from "./routed-site.ts";
import { startRouterEtcd } from "./router-datastore.ts";

const needs = [hostProblem(), hasEtcd ? undefined : "needs etcd", program("nft")];
const test = testNeeding(...needs);
const AGENTS: readonly NodeName[] = ["node-1", "node-3", "node-4"];
/** IPv4, IPv6. */
const DEVICES = [identity.vxlanDevice, identity.vxlanDeviceIpv6] as const;
const ONLY_TCP_LOST = ["tcp4", "tcp6"];
/** An agent that is too busy to answer is asked again after 60 to 75 seconds. */
const PATIENCE = 150_000;
const CARD = `${import.meta.dir}/broken-card.process.ts`;
const PROBE = `${import.meta.dir}/probe-path.process.ts`;

describe("the agents probe the tunnels between them, and", () => {
  let site: RoutedSite;
  let [from, to]: [RoutedPod | undefined, RoutedPod | undefined] = [undefined, undefined];
  let card: { kill(): void; readonly exited: Promise<number> } | undefined;
  const undo = new AsyncDisposableStack();
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = undo.use(await openRoutedSite({ startDatastore: startRouterEtcd, agents: [] }));
    await breakCard("node-1");
    await settings({ vxlanChecksumOffload: "On" });
    // All ports of the nodes are closed, except those for emergencies: probes pass all the same, at each stage.
    await site.apply(...AGENTS.map((node) => resource("HostEndpoint", node, { node, interfaceName: "*" })));
    const refused = { action: "Deny", protocol: "TCP", destination: { ports: [PROBE_PORT] } };
    for (const stage of ["doNotTrack", "preDNAT"]) {
      const spec = { [stage]: true, applyOnForward: true, types: ["Ingress"], ingress: [refused] };
      await site.apply(resource("GlobalNetworkPolicy", stage.toLowerCase(), spec));
    }
    for (const name of AGENTS) await trackConnections(name);
    for (const name of AGENTS) site.startAgent(name);
    await pollUntil(() => AGENTS.every(knowsMtuOfPods), "the MTU of pods");
    from = await site.addPod("node-1/a");
    to = await site.addPod("node-3/a");
  }, 60_000);
  afterAll(() => undo.disposeAsync());

  /**
   * Between the node and its switch. Frames that are to be cut into segments do not pass such a card. The router does not
   * respond to ARP at the ends of the card: IPv4 packets would go past it.
   */
  const breakCard = async (name: NodeName) => {
    const { router, nodes } = site.network;
    const subnet = site.network.node(name).subnet;
    for (const { host } of nodes) await host.must(["ip", "link", "set", "eth0", "gso_max_segs", "1"]);
    await router.must([
      ...["sh", "-ec"],
      `ip link add card type veth peer name wire
       ip link set ${name} nomaster promisc on
       ip link set wire master ${subnet} up
       ip link set card promisc on up
       for end in ${name} card; do echo 8 > /proc/sys/net/ipv4/conf/$end/arp_ignore; done`,
    ]);
    for (const { host } of nodes) await host.must(["ip", "neighbour", "flush", "dev", "eth0"]);
    await startCard(name, 1);
  };
  /** Instead of the former one. It damages one in so many of the packets that need it. */
  const startCard = async (name: NodeName, every: number) => {
    card?.kill();
    await card?.exited;
    const command = ["nsenter", `--net=${site.network.router.netns}`, process.execPath, CARD, name, "card"];
    const started = Bun.spawn([...command, String(every)], { stdout: "pipe", stderr: "inherit" });
    card = started;
    undo.defer(() => started.kill());
    await started.stdout.getReader().read();
  };
  /**
   * As on a host with Services: otherwise the kernel begins with the table of policies, and a reply of the datastore to what
   * the agent asked before looks like a new connection to a closed port.
   */
  const trackConnections = (name: NodeName) =>
    site.network
      .node(name)
      .host.must([
        "nft",
        "add table inet tracked; add chain inet tracked input { type filter hook input priority 0; }; add rule inet tracked input ct state new counter",
      ]);
  const knowsMtuOfPods = (name: NodeName) => existsSync(site.network.node(name).host.view(POD_MTU_FILE));
  /** At the addresses of both tunnels. One that does not is asked again after a minute. */
  const answersProbes = async (name: NodeName) => {
    const { stdout } = await site.network.node(name).host.run(["cat", "/proc/net/tcp", "/proc/net/tcp6"]);
    const port = PROBE_PORT.toString(16).toUpperCase();
    return stdout.match(new RegExp(`:${port} 0+:0000 0A `, "g"))?.length === DEVICES.length;
  };
  const offload = (name: NodeName) =>
    insideNetns(site.network.node(name).host.netns, () => DEVICES.map(readChecksumOffload));
  const isOffloadOff = (name: NodeName) => offload(name).every((isOn) => !isOn);
  const status = async (name: NodeName) => {
    const { stdout } = await site.network.node(name).host.run([builtProgram(identity.adminTool), "node", "status"]);
    return stdout;
  };
  /** From one pod to the other. */
  const lost = async () => {
    if (from === undefined || to === undefined) return ["no pods"];
    return (await unreachable([{ from, to }])).map((row) => /(?:tcp|icmp)[46]/.exec(row)?.[0]);
  };
  const isReached = async () => (await lost()).length === 0;
  /** What `connectivity test` says about the two pods by IPv4, and by IPv6. */
  const remedies = async () => {
    if (from === undefined || to === undefined) return [];
    const tool = (netns: string) => ["nsenter", `--net=${netns}`, builtProgram(identity.adminTool), "connectivity"];
    const probes = to.addresses.map((host) => ({ kind: "echo", host, port: 8080 }) as const);
    const serving = Bun.spawn([...tool(to.netns), "serve", "8080"], { stderr: "pipe" });
    await serving.stderr.getReader().read();
    const trying = Bun.spawn([...tool(from.netns), "probe", JSON.stringify(probes)], {
      ...{ stdout: "pipe", stderr: "ignore" },
    });
    const { value = new Uint8Array() } = await trying.stdout.getReader().read();
    for (const each of [serving, trying]) each.kill();
    const { results = {} } = lastRound(new TextDecoder().decode(value)) ?? {};
    return probes.map((probe) => {
      const place = { title: "pod to pod", from: "node-1", to: "node-3", family: undefined, client: "" } as const;
      const check: Check = { ...place, phase: "connections", probe, expected: "open", keepsSource: false };
      return remedyFor(check, results[probeKey(probe)]);
    });
  };
  const settings = (spec: object) => site.apply(resource("NodeAgentConfiguration", "default", spec));
  /** The agents look again when the setting changes. */
  const lookAgain = async (spec: object = {}) => {
    await settings({ ...spec, vxlanChecksumOffload: "On" });
    await settings(spec);
  };

  test("turn offload off on the node whose card damages TCP, and say why", async () => {
    await pollUntil(async () => Bun.deepEquals(await lost(), ONLY_TCP_LOST), "only TCP is lost");
    const causes = await remedies();
    expect(causes.map((each) => each.includes("set vxlanChecksumOffload to Off"))).toEqual([true, true]);
    for (const name of AGENTS) await pollUntil(() => answersProbes(name), `${name} to answer probes`);
    await settings({});
    await pollUntil(() => isOffloadOff("node-1"), "node-1 without checksum offload", PATIENCE);
    await pollUntil(isReached, "TCP between the pods");
    expect([offload("node-3"), offload("node-4")].flat()).toEqual([true, true, true, true]);
    for (const device of DEVICES) {
      const reason = `Checksum offload of ${device} is off: small and large packets without a checksum of the card passed to nodes "node-3", "node-4", and TCP did not`;
      await pollUntil(async () => (await status("node-1")).includes(reason), reason, 20_000);
    }
  }, 300_000);

  test("pass host endpoints whose policies of every stage deny TCP at the port", async () => {
    const { netns } = site.network.node("node-3").host;
    for (const device of DEVICES) {
      const listed = await site.network.node("node-4").host.must(["ip", "-j", "address", "show", "dev", device]);
      const address = /"local":"([^"]+)","prefixlen":(?:32|128),"scope":"global"/.exec(listed)?.[1] ?? listed;
      const probing = Bun.spawn(["nsenter", `--net=${netns}`, process.execPath, PROBE, "probe", address, "1400"], {
        ...{ stdout: "pipe", stderr: "inherit" },
      });
      const result: PathResult = JSON.parse(await new Response(probing.stdout).text());
      expect([device, result.large, result.tcp]).toEqual([device, "passed", "passed"]);
    }
  }, 60_000);

  if (!proofSize({ everyDay: false, soak: true })) return;

  test("do what the setting says, and start again after it", async () => {
    await settings({ vxlanChecksumOffload: "Off" });
    await pollUntil(() => isOffloadOff("node-3"), "node-3 without checksum offload");
    await settings({ vxlanChecksumOffload: "On" });
    await pollUntil(() => AGENTS.every((name) => offload(name).every(Boolean)), "offload everywhere");
    expect(await lost()).toEqual(ONLY_TCP_LOST);
    await settings({});
    await pollUntil(() => isOffloadOff("node-1"), "node-1 without checksum offload", PATIENCE);
    await pollUntil(isReached, "TCP between the pods");
  }, 300_000);

  test("turn it off if TCP passes and loses a fifth of its packets, and say how much", async () => {
    await settings({ vxlanChecksumOffload: "On" });
    await pollUntil(() => AGENTS.every((name) => offload(name).every(Boolean)), "offload everywhere");
    await startCard("node-1", 5);
    for (const each of ONLY_TCP_LOST) await pollUntil(async () => !(await lost()).includes(each), `${each} at times`);
    await settings({});
    await pollUntil(() => isOffloadOff("node-1"), "node-1 without checksum offload", PATIENCE);
    expect([offload("node-3"), offload("node-4")].flat()).toEqual([true, true, true, true]);
    for (const device of DEVICES) {
      const reason = new RegExp(
        `Checksum offload of ${device.replaceAll(".", "\\.")} is off: .* TCP lost .*\\d+ % of its packets to node "node-\\d", of datagrams \\d %`,
      );
      await pollUntil(async () => reason.test(await status("node-1")), String(reason), 20_000);
    }
    await pollUntil(isReached, "TCP between the pods");
  }, 300_000);

  test("name the MTU that works", async () => {
    const { router } = site.network;
    await router.must([
      "nft",
      "add table bridge narrow; add chain bridge narrow forward { type filter hook forward priority 0; }; add rule bridge narrow forward ip length > 1440 drop",
    ]);
    await router.must([
      "nft",
      "add table ip narrow; add chain ip narrow forward { type filter hook forward priority 0; }; add rule ip narrow forward ip length > 1440 drop",
    ]);
    await lookAgain();
    await pollUntil(async () => (await status("node-3")).includes("bytes are lost"), "the MTU", 120_000);
    expect(await status("node-3")).toContain(
      `Packets of more than 1390 bytes are lost in ${identity.vxlanDevice} to node "node-1", whose MTU is 1450`,
    );
    const [cause] = await remedies();
    expect(cause).toContain('set "mtu": 1390 in the network config');
    const setMtu = (mtu: number) =>
      Promise.all(
        AGENTS.map((name) => site.network.node(name).host.must(["ip", "link", "set", "eth0", "mtu", String(mtu)])),
      );
    await setMtu(1440);
    await pollUntil(
      async () => !(await status("node-3")).includes("bytes are lost"),
      "the MTU of the interface",
      60_000,
    );
    await router.must(["nft", "delete table bridge narrow; delete table ip narrow"]);
    await setMtu(1500);
  }, 240_000);

  test("name the port if nothing passes; with another one, everything does", async () => {
    const { router } = site.network;
    await router.must([
      "nft",
      "add table inet eater; add chain inet eater forward { type filter hook forward priority 0; }; add rule inet eater forward udp dport 4789 drop",
    ]);
    await router.must([
      "nft",
      "add table bridge eater; add chain bridge eater forward { type filter hook forward priority 0; }; add rule bridge eater forward udp dport 4789 drop",
    ]);
    // They drop the echo requests that tell whether a node is there.
    for (const name of AGENTS) await site.admin(`delete hostendpoint ${name}`);
    await lookAgain();
    await pollUntil(async () => (await status("node-3")).includes("Nothing passes"), "the port", 60_000);
    expect(await status("node-3")).toContain(
      "drops UDP port 4789, as vSphere does with 4789; open it, or set another vxlanPort",
    );
    const causes = await remedies();
    expect(causes.map((each) => each.includes("set another vxlanPort"))).toEqual([true, true]);
    await settings({ vxlanPort: 8472, vxlanVNI: 77 });
    await pollUntil(isReached, "TCP between the pods by another port", 60_000);
    await pollUntil(async () => !/Nothing passes|No answer/.test(await status("node-3")), "no problem", 60_000);
  }, 150_000);
});
