/** Host ports and the host's own loopback: whose it is, and that it is never opened to others. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, askUdp, hearUdp, openUdpClient, serveTcp, serveUdp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { sendFrame } from "../support/raw-frame.ts";
import { CLIENT4, HOST4, mainPluginProblem, openPortHost, type Pod, type PortHost } from "./port-host.ts";
import { port, portmapOn } from "./portmap-calls.ts";

const needs = [hostProblem(), program("nft"), program("tc"), mainPluginProblem()];
const testLoopback = testNeeding(...needs);

/** 802.1Q and 802.1ad. */
const TAGS = [0x8100, 0x88a8];

describe("the host's loopback", () => {
  let world: PortHost;
  beforeAll(async () => {
    if (needs.every((need) => need === undefined)) world = await openPortHost();
  });
  afterAll(() => world?.[Symbol.asyncDispose]());
  const routeLocalnet = async (link: string) =>
    (await world.host.must(["cat", `/proc/sys/net/ipv4/conf/${link}/route_localnet`])).trim();

  testLoopback(
    "stays with a process that listens on the port when the pod comes; all else goes to the pod",
    async () => {
      const network = world.network({ main: "own" });
      const ports = [port(2379), port(5353, undefined, "udp"), port(2380, "127.0.0.5")];
      const pod = await world.makePod("listener", ports);
      using _pod = serveTcp(pod.netns, "pod", 80);
      using _udp = await serveUdp(pod.netns, "pod", 80);
      {
        using _datastore = serveTcp(world.netns, "host", 2379, "127.0.0.1");
        using _names = await serveUdp(world.netns, "host", 5353, "0.0.0.0");
        using _single = serveTcp(world.netns, "host", 2380, "127.0.0.5");
        using _six = serveTcp(world.netns, "host6", 2379, "::1");
        await network.add(pod.attachment);
        expect(await askTcp(world.netns, "127.0.0.1", 2379)).toStartWith("host ");
        expect(await askTcp(world.netns, "::1", 2379)).toStartWith("host6 ");
        expect(await askUdp(world.netns, "127.0.0.1", 5353)).toStartWith("host ");
        expect(await askTcp(world.netns, "127.0.0.5", 2380)).toStartWith("host ");
        expect(await askTcp(world.client, HOST4, 2379)).toBe(`pod ${CLIENT4}`);
        expect(await askUdp(world.client, HOST4, 5353)).toBe(`pod ${CLIENT4}`);
        expect(await askTcp(world.netns, HOST4, 2379)).toStartWith("pod ");
        await network.check(pod.attachment);
      }
      // The process is gone: a second ADD serves the pod there, too.
      await network.add(pod.attachment);
      expect(await askTcp(world.netns, "127.0.0.1", 2379)).toStartWith("pod ");
      await network.del(pod.attachment);
      expect(await world.kept()).toEqual([]);
    },
  );

  testLoopback("stays with a process that listens on its IPv6 address only", async () => {
    const network = world.network({ main: "own" });
    const pod = await world.makePod("six", [port(2381), port(2382, "127.0.0.1")]);
    using _pod = serveTcp(pod.netns, "pod", 80);
    using _any = serveTcp(world.netns, "host", 2381, "::1");
    using _single = serveTcp(world.netns, "host", 2382, "::1");
    await network.add(pod.attachment);
    expect(await askTcp(world.netns, "127.0.0.1", 2381)).not.toStartWith("pod");
    expect(await askTcp(world.netns, "127.0.0.1", 2382)).not.toStartWith("pod");
    expect(await askTcp(world.client, HOST4, 2381)).toBe(`pod ${CLIENT4}`);
    await network.check(pod.attachment);
    await network.del(pod.attachment);
  });

  testLoopback("may be a source only on links of pods, and on a bridge until its last port goes", async () => {
    const network = world.network({ main: "bridge" });
    const [one, two] = [await world.makePod("one", [port(81)]), await world.makePod("two", [port(82)])];
    await network.add(one.attachment);
    await network.add(two.attachment);
    expect(await routeLocalnet("ports0")).toBe("1");
    await network.del(one.attachment);
    expect(await routeLocalnet("ports0")).toBe("1");
    expect(await filtersOf("ports0")).toContain("mirred");
    await network.del(two.attachment);
    expect(await routeLocalnet("ports0")).toBe("0");
    expect(await filtersOf("ports0")).toBe("");
    expect(await world.kept()).toEqual([]);
  });

  testLoopback("is left as the administrator set it", async () => {
    const network = world.network({ main: "bridge" });
    const pod = await world.makePod("kept", [port(83)]);
    await world.host.must(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/ports0/route_localnet"]);
    await network.add(pod.attachment);
    await network.del(pod.attachment);
    expect(await routeLocalnet("ports0")).toBe("1");
    await world.host.must(["sh", "-c", "echo 0 > /proc/sys/net/ipv4/conf/ports0/route_localnet"]);
  });

  testLoopback("is never a source on an uplink", async () => {
    await world.host.must(["ip", "netns", "add", "vt-far"]);
    const call = { id: "far", addresses: ["198.51.100.77/32"], ports: [port(84)], config: { snat: true } };
    await portmapOn(world).must("ADD", call);
    expect(await routeLocalnet("outside")).toBe("0");
    await portmapOn(world).must("CHECK", call);
    await portmapOn(world).must("DEL", call);
    expect(await world.kept()).toEqual([]);
  });

  testLoopback("is no source of packets from pods", async () => {
    const network = world.network({ main: "ptp" });
    const pod = await world.makePod("spoofer", [port(85)]);
    const { interfaces } = await network.add(pod.attachment);
    await world.host.must(["tc", "qdisc", "delete", "dev", interfaces?.[0]?.name ?? "", "ingress"]);
    const inPod = ["nsenter", `--net=${pod.attachment.netns}`];
    const settings = "for each in /proc/sys/net/ipv4/conf/*/route_localnet; do echo 1 > $each; done";
    await world.host.must([...inPod, "sh", "-ec", `ip address add 127.0.0.9/32 dev lo; ${settings}`]);
    // The kernel's own checks off, as some network setups have them: only the guard is left.
    const lenient = "cd /proc/sys/net/ipv4/conf; for each in */accept_local; do echo 1 > $each; done; ";
    await world.host.must(["sh", "-c", `${lenient} for each in */rp_filter; do echo 0 > $each; done`]);
    using listener = await hearUdp(world.netns, 7000);
    const send = async () => {
      using client = await openUdpClient(pod.netns, "127.0.0.9");
      await client.ask(HOST4, 7000);
      return listener.senders;
    };
    expect(await send()).toEqual([]);
    // Without the guard it arrives: the test tries a real path.
    await world.host.must(["nft", `flush chain ip ${identity.hostPortTable} guard`]);
    expect(await send()).toEqual(["127.0.0.9"]);
    await network.del(pod.attachment);
  });

  /** Lets packets of the pod to 127.0.0.1 leave for the host. */
  const openLoopbackIn = async ({ attachment }: Pod) => {
    const inPod = ["nsenter", `--net=${attachment.netns}`];
    const settings = "for each in /proc/sys/net/ipv4/conf/*/route_localnet; do echo 1 > $each; done";
    const routes = await world.host.must([...inPod, "ip", "-4", "route", "show", "default"]);
    const [gateway] = routes.match(/(?<=via )\S+/) ?? [];
    await world.host.must([...inPod, "sh", "-ec", `ip address del 127.0.0.1/8 dev lo; ${settings}`]);
    await world.host.must([...inPod, "ip", "route", "add", "127.0.0.1/32", "via", gateway ?? ""]);
  };
  /** Without the numbers of their actions, which the kernel uses again after a while. */
  const filtersOf = async (link: string) =>
    (await world.host.must(["tc", "filter", "show", "dev", link, "ingress"])).replaceAll(/index \d+/g, "index").trim();
  const filterBridged = (value: "0" | "1") =>
    world.host.must(["sh", "-c", `echo ${value} > /proc/sys/net/bridge/bridge-nf-call-iptables`]);

  testLoopback(
    "is not opened to a bridge whose packets are filtered before the bridge's own filters see them",
    async () => {
      const network = world.network({ main: "bridge" });
      const pod = await world.makePod("bridged", [port(87)]);
      await filterBridged("1");
      const { ips } = await network.add(pod.attachment);
      const addresses = ips.map(({ address }) => address);
      const again = { id: "bridged", addresses, ports: [port(87)], config: { snat: true } };
      expect((await portmapOn(world).must("ADD", again)).stderr).toContain("not served on 127.0.0.1");
      using _pod = serveTcp(pod.netns, "pod", 80);

      expect(await routeLocalnet("ports0")).toBe("0");
      expect(await askTcp(world.client, HOST4, 87)).toStartWith("pod ");
      expect(await askTcp(world.netns, "127.0.0.1", 87)).not.toStartWith("pod ");
      await network.check(pod.attachment);
      await network.del(pod.attachment);
      await filterBridged("0");
      expect(await world.kept()).toEqual([]);
    },
  );

  testLoopback("is not opened by a restore either, if packets of the bridge are filtered so by now", async () => {
    const network = world.network({ main: "bridge" });
    const pod = await world.makePod("bridged-later", [port(88)]);
    await network.add(pod.attachment);
    expect(await routeLocalnet("ports0")).toBe("1");
    await filterBridged("1");
    await world.host.must(["sh", "-c", "echo 0 > /proc/sys/net/ipv4/conf/ports0/route_localnet; nft flush ruleset"]);
    const { stdout, stderr } = await world.restore();

    expect(stdout).toContain(identity.hostPortTable);
    expect(stderr).toContain("not served on 127.0.0.1");
    expect(await routeLocalnet("ports0")).toBe("0");
    await network.del(pod.attachment);
    await filterBridged("0");
    expect(await world.kept()).toEqual([]);
  });

  for (const main of ["own", "ptp", "bridge"] as const) {
    testLoopback(`stays closed to a pod behind ${main} after somebody flushed the whole ruleset`, async () => {
      const network = world.network({ main });
      const pod = await world.makePod(`flush-${main}`, [port(86)]);
      const { ips, interfaces } = await network.add(pod.attachment);
      const { host } = world;
      await openLoopbackIn(pod);
      using _secret = serveTcp(world.netns, "secret", 7777, "127.0.0.1");
      using _pod = serveTcp(pod.netns, "pod", 80);
      expect(await askTcp(world.netns, "127.0.0.1", 86)).toStartWith("pod ");

      await host.must(["nft", "flush ruleset"]);
      expect(await askTcp(pod.netns, "127.0.0.1", 7777)).toBe("silence");
      const own = ips[0]?.address.split("/")[0] ?? "";
      expect(await askTcp(world.netns, own, 80)).toStartWith("pod ");

      // Without the link's filters it is reachable: the test tries a real path.
      const link = interfaces?.[0]?.name ?? "";
      await host.must(["tc", "qdisc", "delete", "dev", link, "ingress"]);
      expect(await askTcp(pod.netns, "127.0.0.1", 7777)).toStartWith("secret");
      await network.del(pod.attachment);
    });
  }

  const TAGGED = [[], ...TAGS.map((tag) => [tag]), ...TAGS.flatMap((outer) => TAGS.map((inner) => [outer, inner]))];

  for (const main of ["own", "ptp", "bridge"] as const) {
    testNeeding(
      hostProblem(),
      program("nft"),
      program("tc"),
      mainPluginProblem(main),
    )(`stays closed to tagged frames of a pod behind ${main} after somebody flushed the whole ruleset`, async () => {
      const network = world.network({ main });
      const pod = await world.makePod(`tags-${main}`, [port(89)]);
      const { ips, interfaces } = await network.add(pod.attachment);
      const [link = "", source = ""] = [interfaces?.[0]?.name, ips[0]?.address.split("/")[0]];
      const [{ address: mac }] = JSON.parse(await world.host.must(["ip", "-j", "link", "show", link]));
      const inPod = ["nsenter", `--net=${pod.attachment.netns}`];
      const [{ ifindex }] = JSON.parse(await world.host.must([...inPod, "ip", "-j", "link", "show", "eth0"]));
      expect(await routeLocalnet(link)).toBe("1");
      await world.host.must(["nft", "flush ruleset"]);
      /** How many frames of all forms reach a service on the host's loopback. */
      const arriving = async () => {
        using secret = await hearUdp(world.netns, 7779, "127.0.0.1");
        using last = await hearUdp(world.netns, 7780, HOST4);
        for (const tags of TAGGED)
          sendFrame(pod.netns, ifindex, { mac, tags, source, target: "127.0.0.1", port: 7779 });
        sendFrame(pod.netns, ifindex, { mac, tags: [], source, target: HOST4, port: 7780 });
        await pollUntil(() => last.senders.length > 0, "the last frame to arrive");
        return secret.senders.length;
      };

      expect(await arriving()).toBe(0);
      // Without the link's filters they arrive: the test tries a real path.
      await world.host.must(["tc", "qdisc", "delete", "dev", link, "ingress"]);
      expect(await arriving()).toBe(TAGGED.length);
      await network.del(pod.attachment);
    });
  }

  for (const main of ["own", "bridge"] as const) {
    testLoopback(`is guarded again by the next ADD if somebody removed the filters of the link (${main})`, async () => {
      const network = world.network({ main });
      const pod = await world.makePod(`again-${main}`, [port(90)]);
      // Upstream's bridge refuses a second ADD.
      const next = main === "own" ? pod : await world.makePod("next", [port(91)]);
      const { interfaces } = await network.add(pod.attachment);
      const link = interfaces?.[0]?.name ?? "";
      const before = await filtersOf(link);
      await world.host.must(["tc", "qdisc", "delete", "dev", link, "ingress"]);

      await expect(network.check(pod.attachment)).rejects.toThrow("lacks filters");
      await network.add(next.attachment);
      expect(await filtersOf(link)).toBe(before);
      await network.check(pod.attachment);
      for (const { attachment } of new Set([pod, next])) await network.del(attachment);
      expect(await world.kept()).toEqual([]);
    });
  }

  for (const order of ["before", "after"] as const) {
    testLoopback(`stays closed to a pod whose rates are limited ${order} its ports are mapped`, async () => {
      const network = world.network({ main: "own", bandwidth: order });
      const limits = {
        ingressRate: 80_000_000,
        ingressBurst: 8_000_000,
        egressRate: 80_000_000,
        egressBurst: 8_000_000,
      };
      const pod = await world.makePod(`rates-${order}`, [port(88)]);
      const capabilities = { ...pod.attachment.capabilities, bandwidth: limits };
      const attachment = { ...pod.attachment, capabilities };
      const { ips, interfaces } = await network.add(attachment);
      await network.add(attachment);
      const link = interfaces?.[0]?.name ?? "";
      // Packets to and from 127.0.0.0/8 are turned away before the rest is redirected to its token bucket.
      const targets = [...(await filtersOf(link)).matchAll(/Redirect to device ([\w-]+)/g)].map(([, target]) => target);
      expect(targets).toEqual([link, link, link, link, expect.not.stringMatching(link)]);
      await openLoopbackIn(pod);
      using _secret = serveTcp(world.netns, "secret", 7778, "127.0.0.1");
      using _pod = serveTcp(pod.netns, "pod", 80);
      expect(await askTcp(world.netns, "127.0.0.1", 88)).toStartWith("pod ");
      expect(await askTcp(world.client, HOST4, 88)).toBe(`pod ${CLIENT4}`);
      await network.check(attachment);

      await world.host.must(["nft", "flush ruleset"]);
      expect(await askTcp(pod.netns, "127.0.0.1", 7778)).toBe("silence");
      expect(await askTcp(world.netns, ips[0]?.address.split("/")[0] ?? "", 80)).toStartWith("pod ");
      await network.add(attachment);
      expect(await askTcp(world.netns, "127.0.0.1", 88)).toStartWith("pod ");
      await network.del(attachment);
      expect(await world.kept()).toEqual([]);
    });
  }
});
