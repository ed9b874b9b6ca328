/** denyAction Reject with real packets: who is told what, at once, by whom; and who is never told anything. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { applyTunnelGuard } from "../../src/firewall/apply-tunnel.ts";
import { identity } from "../../src/identity.ts";
import { closeNetlinkSocket, openNetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { VXLAN_PORT } from "../../src/linux/nftables/tunnel-match.ts";
import { openTcpProber } from "../../src/linux/tcp-probe.ts";
import { globalNetworkPolicy } from "../../src/model/global-network-policy.ts";
import { hostEndpoint } from "../../src/model/host-endpoint.ts";
import { nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { askFlows, untilCollecting } from "../flows/flow-site.ts";
import { hostProblem } from "../support/host.ts";
import { address } from "../support/ip.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { type CapturedPacket, capturePackets } from "../support/packet-capture.ts";
import { pollUntil } from "../support/poll.ts";
import { sendFrame } from "../support/raw-frame.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { HOST_NODE, type HostResources, type HostSite, openHostSite } from "./host-site.ts";
import type { PodEnd } from "./policy-site.ts";
import { serve } from "./probes.ts";
import { LONG_ENOUGH, type Protocol, REFUSED, SHORT, type Told, whatIsTold } from "./refusals.ts";

const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);
const FAMILIES = [4, 6] as const;
const PROTOCOLS = ["tcp", "udp", "icmp", "sctp"] as const;
const [OPEN, CLOSED] = [80, 81];
const reject = (denyAction: "Drop" | "Reject") =>
  nodeAgentConfiguration.make({ name: `node.${HOST_NODE}` }, { denyAction });
const policy = (name: string, spec: object) =>
  globalNetworkPolicy.make(
    { name },
    { tier: "default", doNotTrack: false, preDNAT: false, applyOnForward: false, ...spec },
  );
const ofPod = (spec: object) => policy("pod", { selector: "role == 'a'", ...spec });
const ofHost = (spec: object) => policy("host", { selector: "has(host)", ...spec });
const OUT0 = hostEndpoint.make({ name: "out0", labels: { host: "out0" } }, { node: HOST_NODE, interfaceName: "out0" });
const BROADCAST = "ff:ff:ff:ff:ff:ff";
const isError = ({ icmp, family }: CapturedPacket) => icmp?.type === (family === 4 ? 3 : 1);
const isReset = ({ protocol, tcpFlags }: CapturedPacket) => protocol === 6 && (tcpFlags & 4) !== 0;
const toOpenPort = { action: "Allow" as const, protocol: "TCP", destination: { ports: [OPEN] } };

describe.each(["Disabled", "Enabled"] as const)("denyAction, flows %s", (flows) => {
  let site: HostSite;
  let other: PodEnd;
  let servers: readonly Disposable[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openHostSite(flows);
    other = await site.policies.addPod("x/b", { role: "b" });
    await site.policies.labelPod("x/a", { role: "a" });
    const { host } = site.policies.site;
    // Otherwise the kernel sends an ICMP error to each address once a second.
    await host.must(["sysctl", "-w", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0"]);
    const ends = ["host", "outside", "side", "x/a"].map(site.end);
    servers = (await Promise.all([...ends, other].map((end) => serve(end, [OPEN, CLOSED])))).flat();
  });
  afterAll(async () => {
    for (const server of servers ?? []) server[Symbol.dispose]();
    await site?.[Symbol.asyncDispose]();
  });

  const endOf = (name: string) => (name === "x/b" ? other : site.end(name));
  const apply = (denyAction: "Drop" | "Reject", resources: HostResources) =>
    site.apply({ ...resources, configurations: [reject(denyAction)] });
  interface Way {
    readonly from: string;
    readonly to: string;
    readonly protocols?: readonly Protocol[];
    readonly port?: number;
  }
  const rowsOf = <Result>({ protocols = PROTOCOLS }: Way, row: (family: 4 | 6, protocol: Protocol) => Result) =>
    FAMILIES.flatMap((family) => protocols.map((protocol) => row(family, protocol)));
  const rowOf = ({ from, to }: Way, family: 4 | 6, protocol: Protocol, told: Told) =>
    `IPv${family} ${protocol} ${from} -> ${to}: ${told}`;
  /** Of each protocol and family. */
  const ask = (way: Way, milliseconds: number): Promise<readonly string[]> => {
    const { from, to, port = CLOSED } = way;
    return Promise.all(
      rowsOf(way, async (family, protocol) => {
        const address = endOf(to).addresses[family === 4 ? 0 : 1];
        const told = await whatIsTold({ from: endOf(from), address, protocol, port }, milliseconds);
        return rowOf(way, family, protocol, told);
      }),
    );
  };
  const expectTold = async (way: Way, told: (family: 4 | 6, protocol: Protocol) => Told) => {
    const expected = rowsOf(way, (family, protocol) => rowOf(way, family, protocol, told(family, protocol)));
    expect(await ask(way, expected.some((row) => row.endsWith("silence")) ? SHORT : LONG_ENOUGH)).toEqual(expected);
  };
  const expectRefusal = (way: Way) => expectTold(way, (family, protocol) => REFUSED[family][protocol]);
  const expectAnswer = (way: Way) => expectTold(way, () => "answer");
  const expectSilence = (way: Way) => expectTold(way, () => "silence");

  interface LinkOfEnd {
    readonly ifindex: number;
    /** Of the host's end. */
    readonly peerMac: string;
  }
  const linkOf = async (netns: string): Promise<LinkOfEnd> => {
    const [{ ifindex, link_index: peer }] = JSON.parse(await site.ip(`-n ${netns} -j link show eth0`));
    const links: readonly { ifindex: number; address: string }[] = JSON.parse(await site.ip("-j link"));
    return { ifindex, peerMac: links.find((link) => link.ifindex === peer)?.address ?? "" };
  };

  const UDP_OUT: Way = { from: "x/a", to: "outside", protocols: ["udp"] };
  const INGRESS = ofPod({ types: ["Ingress"], ingress: [toOpenPort] });
  const EGRESS = ofPod({ types: ["Egress"], egress: [{ action: "Deny" }] });

  test("Drop, the default, tells nothing", async () => {
    await apply("Drop", { policies: [INGRESS] });
    await expectSilence({ from: "x/b", to: "x/a" });
    await site.apply({ policies: [INGRESS] });
    await expectSilence({ from: "outside", to: "x/a" });
  });

  test("Reject tells a pod and the outside that a pod denies them, and allows the rest", async () => {
    await apply("Reject", { policies: [INGRESS] });
    for (const from of ["x/b", "outside"]) {
      await expectRefusal({ from, to: "x/a" });
      await expectAnswer({ from, to: "x/a", protocols: ["tcp"], port: OPEN });
    }
  });

  test("Reject tells a pod what its own egress policy denies: to others and to the host", async () => {
    await apply("Reject", { policies: [EGRESS] });
    for (const to of ["x/b", "outside", "host"]) await expectRefusal({ from: "x/a", to });
  });

  test("Reject tells at a host endpoint, in both directions, and for what is forwarded", async () => {
    await apply("Reject", { hostEndpoints: [OUT0] });
    await expectRefusal({ from: "outside", to: "host" });
    // Besides the error, the kernel refuses the call that sends a datagram.
    await expectRefusal({ from: "host", to: "outside", protocols: ["tcp"] });

    const forwarded = ofHost({ types: ["Ingress", "Egress"], applyOnForward: true, ingress: [], egress: [] });
    await apply("Reject", { hostEndpoints: [OUT0], policies: [forwarded] });
    for (const [from, to] of [
      ["outside", "side"],
      ["side", "outside"],
      ["outside", "x/a"],
      ["x/a", "outside"],
    ] as const)
      await expectRefusal({ from, to });
  });

  test("a host endpoint that closes the host does not keep the answers about a pod back", async () => {
    await apply("Reject", { hostEndpoints: [OUT0], policies: [INGRESS] });
    await expectRefusal({ from: "outside", to: "x/a" });
    await expectRefusal({ from: "host", to: "outside", protocols: ["tcp"] });
  });

  test("the answer comes from the address that was asked, also through a published port", async () => {
    await apply("Reject", { policies: [ofPod({ types: ["Ingress"], ingress: [] })] });
    await expectRefusal({ from: "outside", to: "published", protocols: ["tcp", "udp"], port: 8080 });
  });

  test("the ICMP error comes from an address of the host, and nobody is told of broadcasts and multicasts", async () => {
    await apply("Reject", { hostEndpoints: [OUT0], policies: [EGRESS] });
    using toPod = capturePackets(endOf("x/a").netns);
    await ask(UDP_OUT, LONG_ENOUGH);
    const own = JSON.parse(await site.ip("-j address")).flatMap((link: { addr_info: { local: string }[] }) =>
      link.addr_info.map(({ local }) => local),
    );
    const errors = () => toPod.packets().filter(isError);
    await pollUntil(() => errors().length >= 2, "the errors of both families");
    expect(errors().filter(({ source }) => !own.includes(source))).toEqual([]);

    using toOutside = capturePackets(endOf("outside").netns);
    const link = await linkOf("vt-outside");
    const group = { tags: [], source: "198.51.100.2", port: CLOSED };
    for (const target of ["198.51.100.255", "255.255.255.255", "224.0.0.1"])
      sendFrame(endOf("outside").netns, link.ifindex, { ...group, mac: BROADCAST, target });
    sendFrame(endOf("outside").netns, link.ifindex, { ...group, mac: link.peerMac, target: "198.51.100.1" });
    await pollUntil(() => toOutside.packets().some(isError), "the error about the last one");
    expect(toOutside.packets().filter(isError)).toHaveLength(1);
  });

  test("nobody is told of packets that a pod sends with the address of another", async () => {
    await apply("Reject", { policies: [policy("pod", { selector: "has(role)", types: ["Egress"], egress: [] })] });
    const [victim, mallory] = [endOf("x/a"), endOf("x/b")];
    using toVictim = capturePackets(victim.netns);
    using toMallory = capturePackets(mallory.netns);
    const link = await linkOf(other.pod.netnsName);
    const datagram = { mac: link.peerMac, tags: [], target: "198.51.100.2", port: CLOSED };
    for (let count = 0; count < 5; count++)
      sendFrame(mallory.netns, link.ifindex, { ...datagram, source: victim.addresses[0] });
    sendFrame(mallory.netns, link.ifindex, { ...datagram, source: mallory.addresses[0] });

    const prober = insideNetns(mallory.netns, () => openTcpProber(0));
    for (const family of [0, 1] as const) {
      const [own, of, to] = [mallory, victim, endOf("outside")].map(({ addresses }) => ({
        address: address(addresses[family]),
        port: CLOSED,
      }));
      if (own === undefined || of === undefined || to === undefined) continue;
      for (let count = 0; count < 5; count++) insideNetns(mallory.netns, () => prober.probe(of, to, "client"));
      insideNetns(mallory.netns, () => prober.probe(own, to, "client"));
    }
    prober.close();

    // The last one of each is its own: it is told.
    const told = ({ packets }: typeof toVictim) => packets().filter((each) => isError(each) || isReset(each));
    await pollUntil(() => told(toMallory).length >= 3, "the error and the resets about its own");
    expect(told(toMallory).map(isReset).toSorted()).toEqual([false, true, true]);
    expect(told(toVictim)).toEqual([]);
  });

  test("a stranger is not told what the guard of the tunnels drops", async () => {
    await apply("Reject", { hostEndpoints: [OUT0] });
    const toTunnel: Way = { from: "outside", to: "host", protocols: ["udp"], port: VXLAN_PORT };
    await expectRefusal(toTunnel);

    insideNetns(endOf("host").netns, () => {
      const socket = openNetlinkSocket("netfilter");
      applyTunnelGuard(socket, { tunnels: ["vxlan4", "vxlan6"], senders: [], isPartial: false });
      closeNetlinkSocket(socket);
    });
    await expectSilence(toTunnel);
    await site.policies.site.host.must(["nft", `delete table inet ${identity.tunnelTable}`]);
  });

  test("counters and traces name the rule, and say that the packet was rejected", async () => {
    const { host } = site.policies.site;
    const tool = (words: string) => host.must([builtProgram(identity.adminTool), ...words.split(" ")]);
    await apply("Drop", { policies: [EGRESS] });
    await ask(UDP_OUT, SHORT);
    const counted = async () =>
      JSON.parse(await tool("policy counters -o json")).rules.find(
        ({ policy: name }: { policy: string }) => name === "pod",
      );
    const before = await counted();
    expect(before).toMatchObject({ action: "Deny", packets: 2 });
    await apply("Reject", { policies: [EGRESS] });
    expect(await counted()).toEqual(before);
    await ask(UDP_OUT, LONG_ENOUGH);
    expect(await counted()).toMatchObject({ action: "Deny", packets: 4 });

    let isOver = false;
    const tracing = tool("policy trace --from x/a --to 198.51.100.2 --protocol udp --count 1 -o json").finally(() => {
      isOver = true;
    });
    while (!isOver) await Promise.race([tracing, ask(UDP_OUT, SHORT)]);
    const { outcome, decisions } = JSON.parse(await tracing);
    expect([outcome, decisions.at(-1).by]).toEqual([
      "rejected",
      'GlobalNetworkPolicy "pod", egress rule 1 (spec.egress[0])',
    ]);
  });

  if (flows === "Enabled")
    test("what is rejected is recorded as what is dropped: denied, with the rule", async () => {
      const { host } = site.policies.site;
      const recorded = async (denyAction: "Drop" | "Reject") => {
        await apply(denyAction, { policies: [EGRESS] });
        await untilCollecting(host);
        const since = Date.now();
        await ask(UDP_OUT, SHORT);
        const found = async () => (await askFlows(host, `since=${since}&verdict=denied`)).flows;
        await pollUntil(async () => (await found()).length >= 2, "the flows");
        return (await found()).map(({ source, destination, decisions }) => [
          source.name,
          destination.address,
          decisions,
        ]);
      };
      const [dropped, rejected] = [await recorded("Drop"), await recorded("Reject")];
      expect(rejected.toSorted()).toEqual(dropped.toSorted());
      expect(JSON.stringify(rejected)).toContain('"pod egress 0"');
    });

  test("preDNAT and doNotTrack policies drop silently", async () => {
    const early = { types: ["Ingress"], applyOnForward: true, ingress: [{ action: "Deny" }] };
    for (const kind of ["preDNAT", "doNotTrack"] as const) {
      await apply("Reject", { hostEndpoints: [OUT0], policies: [ofHost({ ...early, [kind]: true })] });
      await expectSilence({ from: "outside", to: "host" });
    }
  });
});
