/** A pod cannot send from an address that is not its own, in either family. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { askTcpWithin, hearUdp, openUdpClient, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";

const needs = [hostProblem(), program("nft")];
const testPackets = testNeeding(...needs);

describe("a pod", () => {
  let site: PluginSite;
  beforeAll(async () => {
    if (needs.every((need) => need === undefined)) site = await openPluginSite("embedded");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const attach = async () => {
    const pod = await site.makePod();
    const { ips, interfaces } = await site.add(pod);
    const [own4 = "", own6 = ""] = ips.map(({ address }) => address.split("/")[0] ?? "");
    await site.inside(pod, ["ip", "link", "set", "lo", "up"]);
    return { pod, netns: site.host.view(pod.netns), own4, own6, link: interfaces[0]?.name ?? "" };
  };

  testPackets("reaches others from its own addresses, and from no other's", async () => {
    const [sender, receiver, victim] = [await attach(), await attach(), await attach()];
    using listener = await hearUdp(receiver.netns, 53);
    const sendFrom = async (source: string) => {
      using client = await openUdpClient(sender.netns, source);
      await client.ask(source.includes(":") ? receiver.own6 : receiver.own4, 53);
    };
    // Another pod's, the host's, one of the outside, one that nobody has.
    const foreign4 = [victim.own4, "192.0.2.1", "198.51.100.9", "10.50.200.200"];
    const foreign6 = [victim.own6, "2001:db8::1", "fd99::9", "fd50::99:99"];
    for (const address of foreign4)
      await site.inside(sender.pod, ["ip", "address", "add", `${address}/32`, "dev", "lo"]);
    for (const address of foreign6) {
      await site.inside(sender.pod, ["ip", "address", "add", `${address}/128`, "dev", "lo", "nodad"]);
    }
    await Promise.all([sender.own4, sender.own6, ...foreign4, ...foreign6].map(sendFrom));
    expect([...listener.senders].sort()).toEqual([sender.own4, sender.own6]);

    // IPv4 is guarded twice: by the link itself, too.
    await site.host.must(["nft", `delete table inet ${identity.guardTable}`]);
    await sendFrom(victim.own4);
    expect(listener.senders).toHaveLength(2);

    // Without the guards it arrives: the test tries a real path.
    await site.host.must(["sh", "-c", `echo 0 > /proc/sys/net/ipv4/conf/${sender.link}/rp_filter`]);
    await Promise.all([victim.own4, victim.own6].map(sendFrom));
    expect(listener.senders.slice(2).sort()).toEqual([victim.own4, victim.own6]);

    // The next ADD of anybody guards again.
    await attach();
    await sendFrom(victim.own6);
    expect(listener.senders).toHaveLength(4);
  });

  testPackets("with two interfaces answers by the one that was asked, in both families", async () => {
    const first = await site.makePod();
    const second = { ...first, ifname: "eth1" };
    await site.add(first);
    const { ips } = await site.add(second);
    const other = await attach();
    using _server = serveTcp(site.host.view(first.netns), "second", 53);
    for (const { address } of ips) {
      const target = address.split("/")[0] ?? "";
      expect(await askTcpWithin(5_000, other.netns, target, 53)).toStartWith("second ");
    }
    await site.add(second);
  });
});
