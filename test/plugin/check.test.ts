/** CHECK finds and names everything that is broken, and ignores what others added. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { blocksPrefix } from "../../src/model/keys.ts";
import { hostProblem } from "../support/host.ts";
import {
  type AddResult,
  failureOf,
  type Json,
  openPluginSite,
  type PluginSite,
  type Pod,
} from "../support/plugin-site.ts";
import { STORES } from "./stores.ts";

interface Broken {
  readonly title: string;
  /** What the error must contain. */
  readonly names: RegExp;
  /** Shell command in the pod's namespace or on the host; IF is the host's link, IP4 and IP6 are the addresses. */
  readonly inPod?: string;
  readonly onHost?: string;
  readonly prevResult?: (result: AddResult) => Json;
}

const BROKEN: readonly Broken[] = [
  { title: "a missing link", inPod: "ip link delete eth0", names: /interface "eth0" is missing/ },
  { title: "the container's link down", inPod: "ip link set eth0 down", names: /interface "eth0" is down/ },
  { title: "the host's link down", onHost: "ip link set IF down", names: /host interface "vend\w+" is down/ },
  { title: "another MTU", inPod: "ip link set eth0 mtu 1300", names: /MTU 1300 instead of 1500/ },
  { title: "another MAC", inPod: "ip link set eth0 address 02:00:00:00:00:01", names: /MAC 02:00:00:00:00:01/ },
  { title: "another MAC of the host", onHost: "ip link set IF address 02:00:00:00:00:02", names: /02:00:00:00:00:02/ },
  { title: "a link of another owner", onHost: "ip link set IF alias net/other/eth0", names: /belongs to "net\/other/ },
  { title: "a lost IPv4 address", inPod: "ip addr del IP4/32 dev eth0", names: /lacks address 10\./ },
  { title: "a lost IPv6 address", inPod: "ip addr del IP6/128 dev eth0", names: /lacks address fd50/ },
  { title: "a lost default route", inPod: "ip route del default", names: /lacks the route to 0\.0\.0\.0\/0/ },
  { title: "a lost IPv6 default route", inPod: "ip -6 route del default", names: /lacks the route to ::\/0/ },
  {
    title: "a lost route to the gateway",
    inPod: "ip route flush dev eth0 scope link",
    names: /lacks the route to 169\.254\.1\.1\/32/,
  },
  {
    title: "a default route to another gateway",
    inPod: "ip link set lo up; ip route replace default dev lo",
    names: /route to 0\.0\.0\.0\/0/,
  },
  { title: "a lost route on the host", onHost: "ip route del IP4", names: /host interface.*lacks the route to 10\./ },
  { title: "a lost IPv6 route on the host", onHost: "ip -6 route del IP6", names: /lacks the route to fd50/ },
  { title: "a lost neighbour", inPod: "ip neigh del 169.254.1.1 dev eth0", names: /lacks neighbour entry 169/ },
  { title: "a lost neighbour on the host", onHost: "ip neigh del IP4 dev IF", names: /lacks neighbour entry 10\./ },
  {
    title: "a wrong neighbour entry on the host",
    onHost: "ip neigh replace IP6 lladdr 02:00:00:00:00:04 dev IF nud permanent",
    names: /lacks neighbour entry fd50/,
  },
  {
    title: "a wrong neighbour entry",
    inPod: "ip neigh replace fe80::ecee:eeff:feee:eeee lladdr 02:00:00:00:00:03 dev eth0 nud permanent",
    names: /lacks neighbour entry fe80/,
  },
  {
    title: "no forwarding on the host's link",
    onHost: "echo 0 > /proc/sys/net/ipv4/conf/IF/forwarding",
    names: /ipv4\/conf\/vend\w+\/forwarding/,
  },
  {
    title: "a host that no longer forwards",
    onHost: "echo 0 > /proc/sys/net/ipv4/ip_forward",
    names: /net\/ipv4\/ip_forward/,
  },
  { title: "no proxy ARP", onHost: "echo 0 > /proc/sys/net/ipv4/conf/IF/proxy_arp", names: /proxy_arp/ },
  { title: "no proxy NDP", onHost: "echo 0 > /proc/sys/net/ipv6/conf/IF/proxy_ndp", names: /proxy_ndp/ },
  {
    title: "a result of another sandbox",
    prevResult: (result) => ({
      ...result,
      interfaces: result.interfaces.map((each) => (each.sandbox ? { ...each, sandbox: "/run/netns/vt-other" } : each)),
    }),
    names: /CNI_NETNS/,
  },
  {
    title: "a result without our interface",
    prevResult: (result) => ({ ...result, interfaces: [], ips: result.ips.map(({ address }) => ({ address })) }),
    names: /does not contain interface "eth0"/,
  },
  {
    title: "an address that was never assigned",
    prevResult: (result) => ({ ...result, ips: [...result.ips, { address: "10.50.9.9/32", interface: 1 }] }),
    names: /10\.50\.9\.9 is not reserved/,
  },
];

for (const { kind, test } of STORES) {
  describe(`CHECK on ${kind}`, () => {
    let site: PluginSite;
    let pod: Pod;
    let result: AddResult;
    const fill = (text: string) => {
      const [ip4 = "", ip6 = ""] = result.ips.map(({ address }) => address.split("/")[0]);
      return text
        .replaceAll("IF", result.interfaces[0]?.name ?? "")
        .replaceAll("IP4", ip4)
        .replaceAll("IP6", ip6);
    };
    const check = (prevResult: Json = { ...result }) =>
      site.call("CHECK", pod, { config: site.config({ prevResult }) });
    const wire = async () => {
      pod = await site.makePod();
      result = await site.add(pod);
      expect(await check()).toMatchObject({ code: 0, stdout: "" });
    };

    beforeAll(async () => {
      if (hostProblem() === undefined) site = await openPluginSite(kind);
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    for (const broken of kind === "embedded" ? BROKEN : BROKEN.slice(0, 1)) {
      test(`finds ${broken.title}`, async () => {
        await wire();
        if (broken.inPod) await site.inside(pod, ["sh", "-c", fill(broken.inPod)]);
        if (broken.onHost) await site.host.must(["sh", "-c", fill(broken.onHost)]);
        const failure = failureOf(await check(broken.prevResult?.(result)));

        expect(failure.code).toBe(109);
        expect(failure.msg).toMatch(broken.names);
        await site.quietly("DEL", pod);
        expect(await site.left()).toEqual([]);
      });
    }

    test("finds a record that is missing, or another container's", async () => {
      await wire();
      const entries = [...(await site.store.list())];
      const [endpoint = "", value = ""] = entries.find(([key]) => key.includes("/workloadendpoints/")) ?? [];
      await site.store.put([{ kind: "put", key: endpoint, value: value.replaceAll(pod.containerId, "another") }]);
      expect(failureOf(await check()).msg).toMatch(/endpoint .* belongs to "another"/);
      await site.store.remove(endpoint);
      expect(failureOf(await check()).msg).toMatch(/endpoint .* is missing/);

      for (const [key] of entries) if (key.startsWith(blocksPrefix(4))) await site.store.remove(key);
      expect(failureOf(await check()).msg).toMatch(/address 10\.50\S+ is not reserved/);
      await site.quietly("DEL", pod);
      expect(await site.left()).toEqual([]);
    });

    test("ignores what others added", async () => {
      await wire();
      const script = "ip route add 198.51.100.0/24 via 169.254.1.1 dev eth0; ip addr add 198.51.100.1/32 dev eth0";
      await site.inside(pod, ["sh", "-c", `${script}; echo 1 > /proc/sys/net/ipv4/ip_forward`]);
      const chained = { ...result, interfaces: [...result.interfaces, { name: "ifb0" }] };

      expect(await check(chained)).toMatchObject({ code: 0, stdout: "" });
      await site.quietly("DEL", pod);
    });

    test("requires a result, and a namespace", async () => {
      await wire();
      expect(failureOf(await site.call("CHECK", pod)).code).toBe(7);
      await site.host.must(["ip", "netns", "delete", pod.netnsName]);
      expect(failureOf(await check()).code).toBe(8);
      await site.quietly("DEL", pod);
      expect(await site.left()).toEqual([]);
    });
  });
}
