/**
 * Host endpoints on packets: real interfaces, the real agent, the real kernel. Each row has its outcome from a
 * hand-written list, from the judge, and from a packet; all three must agree. `policy explain`, which does not know the
 * interfaces, must agree too, or say that it depends on them.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type Address, parseAddress } from "../../src/ip/address.ts";
import { hostEndpoint } from "../../src/model/host-endpoint.ts";
import { nodeAgentSettings } from "../../src/model/node-agent-configuration.ts";
import { explain } from "../../src/policy/judge/explain.ts";
import { judgeAtHost, type Passage } from "../../src/policy/judge/host-judge.ts";
import { judge } from "../../src/policy/judge/judge.ts";
import type { Packet } from "../../src/policy/judge/packet.ts";
import { readPolicy } from "../../src/policy/read-resources.ts";
import { startAgent } from "../agent/agent.ts";
import { hostProblem } from "../support/host.ts";
import { hearUdp, openUdpClient } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { HOST_NODE, type HostSite, openHostSite } from "./host-site.ts";
import { HOST_SCENARIOS } from "./host-table.ts";
import { firstPacket, readRows } from "./packet-rows.ts";
import type { End } from "./policy-site.ts";
import { type Outcome, outcomeOf, type Probe, serve } from "./probes.ts";

const PORTS = [22, 53, 68, 80, 81, 82, 2379];
const CLIENT_PORT = 40_000;
const INTERFACES = { out0: ["198.51.100.1", "2001:db8:1::1"], side0: ["203.0.113.1", "2001:db8:2::1"] } as const;

const needs = [hostProblem(), program("nft"), program("ping")];
const test = testNeeding(...needs);

describe.each(["Disabled", "Enabled"] as const)("host endpoints on packets, flows %s", (flows) => {
  let site: HostSite;
  let servers: readonly Disposable[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openHostSite(flows);
    const ends = ["host", "outside", "side", "x/a"].map(site.end);
    servers = (await Promise.all(ends.map((end) => serve(end, PORTS)))).flat();
  });
  afterAll(async () => {
    for (const server of servers ?? []) server[Symbol.dispose]();
    await site?.[Symbol.asyncDispose]();
  });

  for (const { title, rows: text, ...resources } of HOST_SCENARIOS) {
    test(title, async () => {
      await site.apply(resources);
      const rows = readRows(text, site.end);
      const judged = await judgeOf();
      const seen = await Promise.all(
        rows.map(async ({ probe, expected, text: row }) => {
          const packet = await outcomeOf(probe, expected, site.policies.site.host);
          return { row, packet, judge: judged(probe) };
        }),
      );
      expect(seen).toEqual(rows.map(({ text: row, expected }) => ({ row, packet: expected, judge: expected })));
    });
  }

  test("an address that appears or disappears later takes effect within a second, in both families", async () => {
    const expectedIPs = ["198.51.100.77", "2001:db8:1::77"];
    await site.apply({ hostEndpoints: [hostEndpoint.make({ name: "later" }, { node: HOST_NODE, expectedIPs })] });
    const [outside, host] = [site.end("outside"), site.end("host")];
    const isOpen = async (family: 4 | 6) =>
      (await outcomeOf(
        { from: outside, to: host, protocol: "tcp", port: 80, family },
        "deny",
        site.policies.site.host,
      )) === "allow";
    const becomes = (isExpected: boolean, family: 4 | 6) =>
      pollUntil(async () => (await isOpen(family)) === isExpected, "the address to matter", 1_000);

    expect(await isOpen(4)).toBe(true);
    for (const [address, family] of [
      ["198.51.100.77/24", 4],
      ["2001:db8:1::77/64", 6],
    ] as const) {
      await site.ip(`address add ${address} dev out0${family === 6 ? " nodad" : ""}`);
      await becomes(false, family);
      await site.ip(`address delete ${address} dev out0`);
      await becomes(true, family);
    }
    expect(site.policies.agent.log()).not.toContain("Writing the whole policy table again");
  });

  test("the rules of an agent that ends stay, and the next one takes them over: nothing else passes meanwhile", async () => {
    const expectedIPs = ["198.51.100.1", "2001:db8:1::1"];
    await site.apply({ hostEndpoints: [hostEndpoint.make({ name: "out" }, { node: HOST_NODE, expectedIPs })] });
    const [outside, host] = [site.end("outside"), site.end("host")];
    using listener = await hearUdp(host.netns, CLIENT_PORT);
    using client = await openUdpClient(outside.netns, "0.0.0.0", 1);
    let isOver = false;
    let sent = 0;
    const sending = (async () => {
      for (; !isOver; sent++) await client.ask(host.addresses[0], CLIENT_PORT);
    })();

    await site.policies.agent.signal("TERM");
    expect(await site.policies.agent.ended).toBe(0);
    const second = await startAgent(site.policies.site.host);
    await site.policies.untilApplied();
    await second.signal("KILL");
    await second.ended;
    await startAgent(site.policies.site.host);
    await site.policies.untilApplied();
    isOver = true;
    await sending;

    expect(sent).toBeGreaterThan(100);
    expect(listener.senders).toEqual([]);
  });

  /** What the judge says about the connection, with the resources in the datastore. */
  async function judgeOf(): Promise<(probe: Probe) => Outcome> {
    const { resources, configurations } = await readPolicy(site.policies.store);
    const interfaces = Object.entries(INTERFACES).map(([name, addresses]) => ({
      name,
      addresses: addresses.map(addressOf),
    }));
    const facts = { node: HOST_NODE, interfaces, settings: nodeAgentSettings(configurations, HOST_NODE) };
    const pod = resources.endpoints.find(({ spec }) => spec.pod === "a");
    const { interfaceName: podInterface = "" } = pod?.spec ?? {};
    const interfaceTo = ({ name }: End) => ({ outside: "out0", side: "side0", host: "lo" })[name] ?? podInterface;
    const passageOf = (from: End, to: End): Passage => {
      if (to.name === "host") return { kind: "to host", from: interfaceTo(from) };
      if (from.name === "host") return { kind: "from host", to: interfaceTo(to) };
      return { kind: "forwarded", from: interfaceTo(from), to: interfaceTo(to) };
    };
    const isAllowed = (packet: Packet, from: End, to: End): boolean => {
      const atHost = judgeAtHost(packet, passageOf(from, to), facts, resources);
      const sides = [
        atHost.verdict,
        ...(pod !== undefined && from.name === "x/a" ? [judge(packet, pod, "egress", resources).verdict] : []),
        ...(pod !== undefined && to.name === "x/a" && from.name !== "host"
          ? [judge(packet, pod, "ingress", resources).verdict]
          : []),
      ];
      const isStateless = atHost.by?.stage === "doNotTrack" && packet.sourcePort === CLIENT_PORT;
      const isPassing = sides.every((each) => each === "allow");
      expect([isPassing ? "allow" : "deny", "depends"]).toContain(explained(packet, from, to));
      return isPassing && (!isStateless || isAllowed(replyTo(packet), to, from));
    };
    const endOf = ({ name }: End) => (name === "x/a" ? { workload: pod } : name === "host" ? { node: HOST_NODE } : {});
    const explained = (packet: Packet, from: End, to: End) => {
      const settingsOf = () => facts.settings;
      const { verdict } = explain({ packet, source: endOf(from), destination: endOf(to), settingsOf }, resources);
      // It does not know the host between two ends outside, and takes the interface that has the host's address: out0.
      const isOther = from.name === "side" || to.name === "side";
      return isOther && !("workload" in endOf(from) || "workload" in endOf(to)) ? "depends" : verdict;
    };
    return (probe) => (isAllowed(packetOf(probe), probe.from, probe.to) ? "allow" : "deny");
  }

  /** To a published port: the packet with the pod's address, as policies after destination NAT see it. */
  function packetOf(probe: Probe): Packet {
    const packet = { ...firstPacket(probe), ...(probe.protocol === "icmp" ? {} : { sourcePort: CLIENT_PORT }) };
    if (probe.to !== site.end("published")) return packet;
    const [ipv4, ipv6] = site.pod.addresses;
    const destination = addressOf(probe.family === 4 ? ipv4 : ipv6);
    return { ...packet, destination, destinationPort: 80, beforeNat: packet };
  }
});

function replyTo({ source, destination, protocol, sourcePort = 0, destinationPort = 0 }: Packet): Packet {
  return {
    ...{ source: destination, destination: source, protocol },
    ...{ sourcePort: destinationPort, destinationPort: sourcePort },
  };
}

function addressOf(text: string): Address {
  const address = parseAddress(text);
  if (address === undefined) throw new Error(`not an address: ${text}`);
  return address;
}
