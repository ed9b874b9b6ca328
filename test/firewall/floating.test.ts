/** Floating IPs on packets: from outside, from a pod of another node, from the node, from a neighbour and from the pod itself. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { resourceKey, resourcesPrefix } from "../../src/model/keys.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { launchAgent } from "../agent/agent.ts";
import { hostProblem } from "../support/host.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { askTcp, askUdp, serveTcp, serveUdp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";

const HOST = { v4: "198.51.100.1", v6: "fd00:2::1" };
const OUTSIDE = { v4: "198.51.100.2", v6: "fd00:2::2" };
/** The address of a pod of another node, which the outside routes here. */
const REMOTE = { v4: "10.70.0.9", v6: "fd70::9" };
const FLOATING = { v4: "203.0.113.80", v6: "2001:db8:80::80" };

const NETWORK = `
ip netns add vt-outside
ip link add outside type veth peer name eth0 netns vt-outside
ip link set outside up
ip address add ${HOST.v4}/24 dev outside
ip address add ${HOST.v6}/64 dev outside nodad
ip route add default via ${OUTSIDE.v4}
ip -6 route add default via ${OUTSIDE.v6}
ip -n vt-outside link set lo up
ip -n vt-outside link set eth0 up
ip -n vt-outside address add ${OUTSIDE.v4}/24 dev eth0
ip -n vt-outside address add ${OUTSIDE.v6}/64 dev eth0 nodad
ip -n vt-outside route add default via ${HOST.v4}
ip -n vt-outside -6 route add default via ${HOST.v6}
ip netns add vt-remote
ip -n vt-outside link add remote type veth peer name eth0 netns vt-remote
ip -n vt-outside link set remote up
ip -n vt-outside address add 10.70.0.1/24 dev remote
ip -n vt-outside address add fd70::1/64 dev remote nodad
ip netns exec vt-outside sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'
ip -n vt-remote link set eth0 up
ip -n vt-remote address add ${REMOTE.v4}/24 dev eth0
ip -n vt-remote address add ${REMOTE.v6}/64 dev eth0 nodad
ip -n vt-remote route add default via 10.70.0.1
ip -n vt-remote -6 route add default via fd70::1
`;

/** All pods are masqueraded, so that the order of the two translations counts. */
const POOLS = [
  poolChange("blue", "10.61.0.0/24", { natOutgoing: true }),
  poolChange("blue6", "fd61::/112", { natOutgoing: true }),
  nodeChange("node-1"),
];
const POLICY = resourceKey("networkpolicies", { namespace: "default", name: "limited" });
const needs = [hostProblem(), program("nft")];
const testPackets = testNeeding(...needs);

describe("a floating IP", () => {
  let site: PluginSite;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openPluginSite("embedded", POOLS);
    await site.host.must(["sh", "-ec", NETWORK]);
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const attach = async () => {
    const pod = await site.makePod();
    const { ips } = await site.add(pod);
    const [own4 = "", own6 = ""] = ips.map(({ address }) => address.split("/")[0] ?? "");
    return { pod, netns: site.host.view(pod.netns), own4, own6 };
  };
  type Attached = Awaited<ReturnType<typeof attach>>;
  const recordOf = async ({ pod }: Attached) => {
    const all = [...(await site.store.list())].filter(([key]) => key.startsWith(resourcesPrefix("workloadendpoints")));
    const [key = "", value = ""] = all.find(([, text]) => text.includes(pod.containerId)) ?? [];
    return { key, value };
  };
  const claim = async (attached: Attached, floating: { readonly v4: string; readonly v6: string }) => {
    const { key, value } = await recordOf(attached);
    const record = JSON.parse(value);
    record.spec.ipNATs = [
      { internalIP: attached.own4, externalIP: floating.v4 },
      { internalIP: attached.own6, externalIP: floating.v6 },
    ];
    await site.store.put([{ kind: "put", key, value: JSON.stringify(record) }]);
    return key;
  };
  const restore = async () => {
    const store = ["--datastore-type", "embedded", "--datastore-path", String(site.config()["datastore_path"])];
    return site.host.run([builtProgram(identity.adminTool), "node", "restore", "--name", "node-1", ...store]);
  };
  const table = async () => (await site.host.run(["nft", `list table inet ${identity.floatingTable}`])).stdout;
  const remove = async (...all: readonly Attached[]) => {
    for (const { pod } of all) await site.quietly("DEL", pod);
  };

  testPackets("leads to its pod from everywhere, in both families; other traffic of the pod is unchanged", async () => {
    const [pod, neighbour] = [await attach(), await attach()];
    await claim(pod, FLOATING);
    expect((await restore()).stdout).toContain(identity.floatingTable);
    const [outside, remote] = ["vt-outside", "vt-remote"].map((name) => site.host.view(`/run/netns/${name}`));
    using _tcp = serveTcp(pod.netns, "pod", 80);
    using _udp = await serveUdp(pod.netns, "pod", 53);
    using _server = serveTcp(outside ?? "", "outside", 80);

    for (const { v4, v6, from } of [
      { ...OUTSIDE, from: outside },
      { ...REMOTE, from: remote },
      { ...HOST, from: site.host.netns },
      { v4: neighbour.own4, v6: neighbour.own6, from: neighbour.netns },
      // The pod sees itself as its floating IP: from its own address it could not answer.
      { ...FLOATING, from: pod.netns },
    ]) {
      expect(await askTcp(from ?? "", FLOATING.v4, 80)).toBe(`pod ${v4}`);
      expect(await askTcp(from ?? "", FLOATING.v6, 80)).toBe(`pod ${v6}`);
      expect(await askUdp(from ?? "", FLOATING.v4, 53)).toBe(`pod ${v4}`);
    }
    expect(await askTcp(pod.netns, OUTSIDE.v4, 80)).toBe(`outside ${HOST.v4}`);
    expect(await askTcp(neighbour.netns, pod.own4, 80)).toBe(`pod ${neighbour.own4}`);
    await remove(pod, neighbour);
  });

  testPackets("changes elements only, survives pools and pods, and goes with its pod", async () => {
    const [first, second] = [await attach(), await attach()];
    await claim(first, FLOATING);
    await restore();
    const handles = async () => (await table()).match(/chain .*/g);
    const before = await handles();
    expect((await restore()).stdout).toContain("up to date");
    // The plugin's ADD replaces the table for outgoing NAT: another one.
    await site.store.put([poolChange("red", "10.62.0.0/24", { natOutgoing: true })]);
    const third = await attach();
    using _tcp = serveTcp(first.netns, "first", 80);
    const outside = site.host.view("/run/netns/vt-outside");
    expect(await askTcp(outside, FLOATING.v4, 80)).toBe(`first ${OUTSIDE.v4}`);

    const more = { v4: "203.0.113.81", v6: "2001:db8:80::81" };
    await claim(second, more);
    await restore();
    expect([await handles(), await table()]).toEqual([before, expect.stringContaining(more.v6)]);
    await remove(second, third);
    await restore();
    expect(await table()).not.toContain("203.0.113.81");
    expect(await askTcp(outside, FLOATING.v6, 80)).toBe(`first ${OUTSIDE.v6}`);
    await remove(first);
    await restore();
    expect(await table()).toBe("");
  });

  testPackets("that two pods claim leads to the one with the lowest key, and is reported", async () => {
    const pods = [await attach(), await attach()];
    const keys: string[] = [];
    for (const pod of pods) keys.push(await claim(pod, FLOATING));
    const [winner = "", loser = ""] = keys.toSorted();
    const { stderr } = await restore();
    expect(stderr).toContain(`of endpoint "${loser}" has no effect: it leads to endpoint "${winner}"`);
    const expected = pods[keys.indexOf(winner)];
    expect(await table()).toContain(`${FLOATING.v4} : ${expected?.own4}`);

    await remove(...pods.filter((pod) => pod === expected));
    await restore();
    expect(await table()).toContain(`${FLOATING.v4} : ${pods.find((pod) => pod !== expected)?.own4}`);
    await remove(...pods.filter((pod) => pod !== expected));
    await restore();
  });

  testPackets("is repaired after another program flushed or changed the table", async () => {
    const pod = await attach();
    await claim(pod, FLOATING);
    await restore();
    const intact = await table();
    for (const damage of [
      "flush ruleset",
      `flush table inet ${identity.floatingTable}`,
      `delete element inet ${identity.floatingTable} external4 { ${FLOATING.v4} }`,
      `add element inet ${identity.floatingTable} external4 { 203.0.113.99 : 10.61.0.9 }`,
    ]) {
      await site.host.must(["nft", damage]);
      expect(await table()).not.toBe(intact);
      await restore();
      expect(await table()).toBe(intact);
    }
    await remove(pod);
    await restore();
  });

  testPackets(
    "is followed by the node agent, until its pod is removed; policy sees the pod's own address",
    async () => {
      const [pod, neighbour] = [await attach(), await attach()];
      const { name, cniVersion, ...plugin } = site.config();
      site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
      using _tcp = serveTcp(pod.netns, "pod", 80);
      const agent = launchAgent(site.host);
      const answers = async () => [
        await askTcp(neighbour.netns, FLOATING.v4, 80),
        await askTcp(neighbour.netns, FLOATING.v6, 80),
      ];
      const untilAnswers = (what: string, ...wanted: readonly string[]) =>
        pollUntil(async () => Bun.deepEquals(await answers(), wanted), what);
      await claim(pod, FLOATING);
      await untilAnswers("floating IPs to lead to the pod", `pod ${neighbour.own4}`, `pod ${neighbour.own6}`);

      const limited = (...nets: readonly string[]) => {
        const egress = [{ action: "Allow" as const, destination: { nets: [...nets] } }];
        const policy = networkPolicy.make(
          { name: "limited", namespace: "default" },
          { tier: "default", types: ["Egress"], egress },
        );
        return { kind: "put", key: POLICY, value: networkPolicy.write(policy) } as const;
      };
      await site.store.put([limited(`${FLOATING.v4}/32`, `${FLOATING.v6}/128`)]);
      await untilAnswers("a policy about floating IPs to close", "silence", "silence");
      await site.store.put([limited(`${pod.own4}/32`, `${pod.own6}/128`)]);
      await untilAnswers("a policy about pods to open", `pod ${neighbour.own4}`, `pod ${neighbour.own6}`);
      await site.store.remove(POLICY);

      await remove(pod);
      await pollUntil(async () => (await table()) === "", "the table to go with the last floating IP");
      await remove(neighbour);
      await agent.signal("TERM");
      expect(await agent.ended).toBe(0);
    },
  );
});
