/** The node agent keeps the record of its node: addresses and MTU of the host, and addresses of its tunnels. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { handleKey, resourceKey } from "../../src/model/keys.ts";
import { node } from "../../src/model/node.ts";
import { vxlanMac } from "../../src/routing/vxlan-mac.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { poolChange } from "../support/ipam.ts";
import { testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type Agent, startAgent } from "./agent.ts";

const needs = [hostProblem(), hasEtcd ? undefined : "needs etcd"];
const test = testNeeding(...needs);
const NODE_KEY = resourceKey("nodes", { name: "node-1" });
const HANDLE = "vxlan-tunnel-addr-node-1";
/** Usually it takes 0.2 seconds; a busy machine needs longer. */
const SOON = 30_000;
const UPLINK = `
ip link add eth0 type veth peer name eth0-peer
ip link set eth0-peer up
ip link set eth0 up
ip addr add 198.51.100.5/24 dev eth0
ip route add default via 198.51.100.1
ip link add eth1 type veth peer name eth1-peer
ip link set eth1-peer up
ip link set eth1 up mtu 1300
ip addr add 192.168.7.5/25 dev eth1
`;

describe("the record of a node, on etcd,", () => {
  let site: PluginSite;
  let agent: Agent;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openPluginSite("etcd");
    await run(UPLINK);
    const { name, cniVersion, ...plugin } = site.config();
    site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    agent = await startAgent(site.host);
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const run = (script: string) => site.host.must(["sh", "-ec", script]);
  const recordIn = async () => {
    const value = (await site.store.list()).get(NODE_KEY) ?? "";
    return { value, spec: node.read(value, NODE_KEY).spec };
  };
  const until = (what: string, holds: (spec: Awaited<ReturnType<typeof recordIn>>["spec"]) => boolean) =>
    pollUntil(async () => holds((await recordIn()).spec), what, SOON);
  const untilAddress = (address: string) => until(`the address ${address}`, ({ bgp }) => bgp?.ipv4Address === address);
  const untilMtu = (mtu: number) =>
    pollUntil(
      async () => (await run(`cat ${identity.stateDirectory}/mtu || true`)).trim() === String(mtu),
      `an MTU of ${mtu}`,
      SOON,
    );
  const restart = async () => {
    await agent.signal("KILL");
    await agent.ended;
    agent = await startAgent(site.host);
  };
  const configure = (spec: object) => {
    const resource = { apiVersion: API_VERSION, kind: "NodeAgentConfiguration", metadata: { name: "default" }, spec };
    const key = resourceKey("nodeagentconfigurations", { name: "default" });
    return site.store.put([{ kind: "put", key, value: JSON.stringify(resource) }]);
  };
  const isHeld = async () => (await site.store.list()).has(handleKey(HANDLE));
  const admin = (...args: readonly string[]) =>
    site.host.run([
      builtProgram(identity.adminTool),
      ...args,
      "--datastore-type",
      "etcdv3",
      "--etcd-endpoints",
      ENDPOINT,
    ]);
  const ENDPOINT = "http://127.0.0.1:2379";

  test("follows the addresses and the MTU of the host", async () => {
    await untilAddress("198.51.100.5/24");
    await untilMtu(1500);
    await run("ip addr add 198.51.100.6/25 dev eth0; ip addr del 198.51.100.5/24 dev eth0");
    await untilAddress("198.51.100.6/25");
    await run("ip link set eth0 mtu 1400");
    await untilMtu(1400);
    await configure({ ipv4AddressDetection: "interface=eth1" });
    await untilAddress("192.168.7.5/25");
    await untilMtu(1300);
    await configure({});
    await untilAddress("198.51.100.6/25");
    await untilMtu(1400);
  });

  test("has the address of a tunnel as long as a pool needs it, the same one after the agent was killed", async () => {
    await site.store.put([poolChange("blue", "10.50.0.0/16", { vxlanMode: "Always" })]);
    await until("a tunnel address", ({ ipv4VXLANTunnelAddr }) => ipv4VXLANTunnelAddr?.startsWith("10.50.") === true);
    await untilMtu(1350);
    const { value, spec } = await recordIn();
    expect(spec.vxlanTunnelMACAddr).toBe(vxlanMac("node-1", 4));
    await restart();
    await pollUntil(async () => (await recordIn()).value === value, "the same record", SOON);

    // As if it had been killed between taking and recording.
    const { ipv4VXLANTunnelAddr, vxlanTunnelMACAddr: _, ...others } = spec;
    await agent.signal("KILL");
    await agent.ended;
    await site.store.put([
      { kind: "put", key: NODE_KEY, value: JSON.stringify({ ...JSON.parse(value), spec: others }) },
    ]);
    agent = await startAgent(site.host);
    await until("its former address", (now) => now.ipv4VXLANTunnelAddr === ipv4VXLANTunnelAddr);
    expect(await isHeld()).toBe(true);

    const collected = await admin("ipam", "gc", "--name", "node-1", "--any-namespace");
    expect([collected.code, await isHeld()]).toEqual([0, true]);
    const checked = await admin("ipam", "check", "--no-grace");
    expect([checked.code, checked.stdout]).toEqual([0, expect.stringContaining("no problems")]);
    const shown = await admin("ipam", "show", "--ip", String(ipv4VXLANTunnelAddr));
    expect(shown.stdout).toContain("VXLAN tunnel of node node-1");

    await site.store.put([poolChange("blue", "10.50.0.0/16")]);
    await until("no tunnel address", (now) => now.ipv4VXLANTunnelAddr === undefined);
    await pollUntil(async () => !(await isHeld()), "its address to be released", SOON);
    await untilMtu(1400);
    expect(agent.log()).not.toContain("[ERROR]");
  });

  test("is written again when the node is registered again", async () => {
    await site.store.put([poolChange("blue", "10.50.0.0/16", { vxlanMode: "CrossSubnet" })]);
    await until("a tunnel address", ({ ipv4VXLANTunnelAddr }) => ipv4VXLANTunnelAddr !== undefined);
    await site.store.remove(NODE_KEY);
    expect((await admin("node", "register", "--name", "node-1")).code).toBe(0);
    await until("a tunnel address", ({ ipv4VXLANTunnelAddr }) => ipv4VXLANTunnelAddr !== undefined);
    await untilAddress("198.51.100.6/25");
  });
});
