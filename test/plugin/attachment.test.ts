/** ADD and DEL of the built plugin on a private host, on every datastore: the state of kernel and datastore. */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import { CNI_VERSIONS } from "../../src/cni/version.ts";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { type AddResult, failureOf, openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { NOTHING_UNUSUAL } from "../support/stderr.ts";
import { STORES } from "./stores.ts";

const GATEWAY = "169.254.1.1";
const GATEWAY6 = "fe80::ecee:eeff:feee:eeee";

for (const { kind, test } of STORES) {
  describe(`plugin on ${kind}`, () => {
    let site: PluginSite;
    beforeAll(async () => {
      if (hostProblem() === undefined) site = await openPluginSite(kind);
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    test("wires two pods that reach each other over IPv4 and IPv6, and leaves nothing", async () => {
      const [first, second] = [await site.makePod(), await site.makePod()];
      const results = [await site.add(first), await site.add(second)];

      for (const [pod, other] of [
        [first, results[1]],
        [second, results[0]],
      ] as const) {
        for (const address of addressesOf(other)) await site.inside(pod, ["ping", "-c1", "-W2", address]);
      }
      await site.quietly("DEL", first);
      await site.quietly("DEL", second);
      expect(await site.left()).toEqual([]);
    });

    test("returns in each version what the kernel has", async () => {
      for (const cniVersion of CNI_VERSIONS) {
        const pod = await site.makePod();
        const config = site.config({ cniVersion });
        const { code, stdout, stderr } = await site.call("ADD", pod, { config });
        expect([code, stderr]).toEqual([0, NOTHING_UNUSUAL]);
        await expectAnswer(JSON.parse(stdout), { cniVersion, pod, site });
        await site.quietly("DEL", pod, { config });
      }
      expect(await site.left()).toEqual([]);
    });

    test("sets addresses, routes, neighbours, MACs and sysctls of both sides", async () => {
      const pod = await site.makePod();
      const { ips, interfaces } = await site.add(pod);
      const [ipv4 = "", ipv6 = ""] = ips.map(({ address }) => address.split("/")[0]);
      const host = interfaces[0]?.name ?? "";
      const inside = (command: string) => site.inside(pod, command.split(" "));
      const outside = (command: string) => site.host.must(command.split(" "));

      expect(host).toBe(`${identity.interfacePrefix}${pod.containerId.slice(0, 11)}`);
      expect(await outside(`ip route show ${ipv4}`)).toBe(`${ipv4} dev ${host} proto 86 scope link \n`);
      expect(await outside(`ip -6 route show ${ipv6}`)).toStartWith(`${ipv6} dev ${host} `);
      expect((await inside("ip route")).split("\n").map((line) => line.trim())).toEqual([
        `default via ${GATEWAY} dev eth0`,
        `${GATEWAY} dev eth0 scope link`,
        "",
      ]);
      expect(await inside("ip -6 route show default")).toStartWith(`default via ${GATEWAY6} dev eth0 `);
      expect(await inside("ip neigh show nud permanent")).toBe(
        `${GATEWAY} dev eth0 lladdr ee:ee:ee:ee:ee:ee PERMANENT \n${GATEWAY6} dev eth0 lladdr ee:ee:ee:ee:ee:ee PERMANENT \n`,
      );
      expect(await outside(`ip -o link show ${host}`)).toContain(`alias net/${pod.containerId}/eth0`);
      for (const [name, value] of Object.entries(HOST_SYSCTLS)) {
        expect([name, await outside(`cat /proc/sys/net/${name.replace("IF", host)}`)]).toEqual([name, `${value}\n`]);
      }
      await site.quietly("DEL", pod);
    });

    test("returns the same result for a second ADD, and makes nothing twice", async () => {
      const pod = await site.makePod();
      const first = await site.add(pod);
      const entries = await site.store.list();
      const routes = await site.inside(pod, ["ip", "route"]);

      expect(await site.add(pod)).toEqual(first);
      expect(await site.store.list()).toEqual(new Map(entries));
      expect(await site.inside(pod, ["ip", "route"])).toBe(routes);
      await site.quietly("DEL", pod);
      await site.quietly("DEL", pod);
      expect(await site.left()).toEqual([]);
    });

    test("keeps the group that an administrator gave the link, when ADD is repeated", async () => {
      const pod = await site.makePod();
      const { interfaces } = await site.add(pod);
      const link = interfaces[0]?.name ?? "";
      await site.host.must(["ip", "link", "set", link, "group", "77"]);
      await site.add(pod);

      expect(await site.host.must(["ip", "-o", "link", "show", link])).toContain(" group 77 ");
      await site.quietly("DEL", pod);
    });

    test("records the endpoint by pod; a newer sandbox takes it over, and the old one's DEL keeps it", async () => {
      const args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0";
      const [old, next] = [await site.makePod({ args }), await site.makePod({ args })];
      await site.add(old);
      const result = await site.add(next);

      const endpoints = await endpointsOf(site);
      expect(endpoints.map(([key]) => key.split("/").slice(-2))).toEqual([["shop", "node--1-k8s-web--0-eth0"]]);
      expect(endpoints[0]?.[1]).toMatchObject({
        spec: {
          containerID: next.containerId,
          pod: "web-0",
          node: "node-1",
          endpoint: "eth0",
          ipNetworks: result.ips.map(({ address }) => address),
          interfaceName: result.interfaces[0]?.name,
          mac: result.interfaces[1]?.mac,
          profiles: ["net"],
        },
      });
      // The link of the old sandbox had the same name: it was replaced.
      expect(await site.inside(old, ["ip", "-o", "link"])).not.toContain("eth0");
      await site.quietly("DEL", old);
      expect(await endpointsOf(site)).toHaveLength(1);
      await site.host.must(["ping", "-c1", "-W2", addressesOf(result)[0] ?? ""]);
      await site.quietly("DEL", next);
      expect(await site.left()).toEqual([]);
    });

    test("routes a pod with two interfaces through the first, and removes each separately", async () => {
      const first = await site.makePod();
      const second = { ...first, ifname: "eth1" };
      await site.add(first);
      const result = await site.add(second);

      expect(new Set((await site.host.must(["ip", "-o", "link"])).match(/net\/\S+/g)).size).toBe(2);
      expect(await site.inside(first, ["ip", "route", "get", "192.0.2.1"])).toContain("dev eth0");
      await site.host.must(["ping", "-c1", "-W2", addressesOf(result)[0] ?? ""]);
      await site.quietly("CHECK", second, { config: site.config({ prevResult: result }) });
      await site.quietly("DEL", first);
      expect(await site.inside(first, ["ip", "route", "get", "192.0.2.1"])).toContain("dev eth1");
      await site.quietly("DEL", second);
      expect(await site.left()).toEqual([]);
    });

    test("assigns the address in CNI_ARGS, and refuses one that is in use", async () => {
      const [first, second] = [
        await site.makePod({ args: "IP=10.50.7.7" }),
        await site.makePod({ args: "IP=10.50.7.7" }),
      ];
      expect(addressesOf(await site.add(first))[0]).toBe("10.50.7.7");
      expect(failureOf(await site.call("ADD", second)).code).toBe(104);
      await site.quietly("DEL", first);
      await site.quietly("DEL", second);
      expect(await site.left()).toEqual([]);
    });

    test("refuses a container that already has the interface, and changes nothing", async () => {
      const pod = await site.makePod();
      await site.inside(pod, ["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "other"]);
      const before = await site.inside(pod, ["ip", "-d", "link"]);

      expect(failureOf(await site.call("ADD", pod)).code).toBe(106);
      expect(await site.inside(pod, ["ip", "-d", "link"])).toBe(before);
      await site.quietly("DEL", pod);
      expect(await site.inside(pod, ["ip", "-d", "link"])).toBe(before);
      expect(await site.left()).toEqual([]);
    });

    test("refuses a path that does not exist or is not a namespace, and assigns nothing", async () => {
      const pod = await site.makePod();
      for (const netns of ["/run/netns/vt-absent", "/etc/passwd", "/run"]) {
        expect(failureOf(await site.call("ADD", { ...pod, netns })).code).toBe(8);
      }
      expect(await site.left()).toEqual([]);
    });

    test("removes everything if the namespace is deleted, was not given, or is not a namespace", async () => {
      for (const netns of ["", "/etc/passwd", "same"]) {
        const pod = await site.makePod();
        await site.add(pod);
        if (netns === "same") await site.host.must(["ip", "netns", "delete", pod.netnsName]);
        for (const _ of ["first", "second"]) await site.quietly("DEL", netns === "same" ? pod : { ...pod, netns });
      }
      expect(await site.left()).toEqual([]);
    });

    test("succeeds with a DEL for an unknown container", async () => {
      const pod = await site.makePod();
      await site.quietly("DEL", { ...pod, containerId: "never-seen" });
      await site.quietly("DEL", { ...pod, containerId: "never-seen", netns: "" });
    });

    test("sets MTU, queues and forwarding as the config says", async () => {
      const pod = await site.makePod();
      const config = site.config({ mtu: 1400, num_queues: 3, container_settings: { allow_ip_forwarding: true } });
      const { interfaces } = await site.add(pod, { config });

      expect(interfaces.map(({ mtu }) => mtu)).toEqual([1400, 1400]);
      const inside = await site.inside(pod, ["ip", "-d", "link", "show", "eth0"]);
      const outside = await site.host.must(["ip", "-d", "link", "show", interfaces[0]?.name ?? ""]);
      for (const link of [inside, outside]) {
        expect(link).toContain(" mtu 1400 ");
        expect(link).toContain("numtxqueues 3 numrxqueues 3 ");
      }
      expect(await site.inside(pod, ["cat", ...FORWARDING])).toBe("1\n1\n");
      await site.quietly("DEL", pod);

      const other = await site.makePod();
      await site.inside(other, ["sh", "-c", `for f in ${FORWARDING.join(" ")}; do echo 1 > $f; done`]);
      await site.add(other);
      expect(await site.inside(other, ["cat", ...FORWARDING])).toBe("0\n0\n");
      const defaults = await site.inside(other, ["ip", "-d", "link", "show", "eth0"]);
      expect(defaults).toContain("numtxqueues 1 numrxqueues 1 ");
      await site.quietly("DEL", other);
    });

    test("with a policy type and no policy table is refused before anything is taken, with the code for a later attempt", async () => {
      const pod = await site.makePod();
      const config = site.config({ policy: { type: "k8s" } });
      expect(failureOf(await site.call("ADD", pod, { config }))).toMatchObject({
        code: 11,
        msg: expect.stringContaining(`${identity.nodeAgent} has not set its rules yet`),
      });
      expect(failureOf(await site.call("STATUS", pod, { config })).code).toBe(50);
      expect(await site.left()).toEqual([]);
    });

    test("with a policy type and no access to the orchestrator's API refuses a pod: its labels would be unknown", async () => {
      const config = site.config({ policy: { type: "k8s" } });
      await site.host.must(["nft", `add table inet ${identity.policyTable}`]);
      const pod = await site.makePod({ args: "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web" });
      expect(failureOf(await site.call("ADD", pod, { config }))).toMatchObject({
        code: 7,
        msg: expect.stringMatching(/pod "shop\/web".*set "kubernetes.kubeconfig"/),
      });
      expect(await site.left()).toEqual([]);
      await site.quietly("DEL", pod, { config });
      expect((await site.call("STATUS", pod, { config })).code).toBe(kind === "etcd" ? 1 : 0);

      // podman passes the name of a container as that of a pod without a namespace.
      for (const args of ["", "IgnoreUnknown=1;K8S_POD_NAME=web"]) {
        const container = await site.makePod({ args });
        await site.add(container, { config });
        await site.quietly("DEL", container, { config });
      }
      await site.host.must(["nft", `delete table inet ${identity.policyTable}`]);
      expect(await site.left()).toEqual([]);
    });

    test("of a pod from before the policy type was refused is checked and removed", async () => {
      const pod = await site.makePod({ args: "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web" });
      const prevResult = await site.add(pod);
      const config = site.config({ policy: { type: "k8s" } });
      await site.quietly("CHECK", pod, { config: { ...config, prevResult } });
      await site.quietly("DEL", pod, { config });
      expect(await site.left()).toEqual([]);
    });

    test("uses the MTU in the node agent's file if the config has none, and refuses an invalid one", async () => {
      const file = `${identity.stateDirectory}/mtu`;
      const pod = await site.makePod();
      site.host.writeFile(file, "1350\n");
      expect((await site.add(pod)).interfaces[1]?.mtu).toBe(1350);
      await site.quietly("DEL", pod);
      site.host.writeFile(file, "large");
      expect(failureOf(await site.call("ADD", pod)).code).toBe(7);
      await site.host.must(["rm", file]);
      expect(await site.left()).toEqual([]);
    });

    test("works in a namespace in which IPv6 was disabled", async () => {
      const pod = await site.makePod();
      await site.inside(pod, [
        "sh",
        "-c",
        "for f in all default lo; do echo 1 > /proc/sys/net/ipv6/conf/$f/disable_ipv6; done",
      ]);
      const [, ipv6 = ""] = addressesOf(await site.add(pod));

      await site.host.must(["ping", "-c1", "-W2", ipv6]);
      await site.quietly("DEL", pod);
      expect(await site.left()).toEqual([]);
    });

    test("works with IPv4 only and with IPv6 only", async () => {
      for (const [ipam, families] of [
        [{ assign_ipv6: "false" }, [4]],
        [{ assign_ipv4: "false", assign_ipv6: "true" }, [6]],
      ] as const) {
        const pod = await site.makePod();
        const config = site.config({ ipam: { type: identity.ipamType, ...ipam } });
        const addresses = addressesOf(await site.add(pod, { config }));

        expect(addresses.map((address) => (address.includes(":") ? 6 : 4))).toEqual([...families]);
        await site.host.must(["ping", "-c1", "-W2", addresses[0] ?? ""]);
        await site.quietly("DEL", pod, { config });
      }
      expect(await site.left()).toEqual([]);
    });

    test("makes a pod that answers the host's first packet", async () => {
      const pods: Pod[] = [];
      for (let count = 0; count < 10; count += 1) pods.push(await site.makePod());
      const config = JSON.stringify(site.config({ ipam: { type: identity.ipamType } }));
      // In one shell, so that the packet follows the result at once.
      const attach = pods.map(
        ({ containerId, netns }) =>
          `address=$(echo "$CONFIG" | CNI_CONTAINERID=${containerId} CNI_NETNS=${netns} ${builtProgram()} | grep -o '10[.]50[.0-9]*'); ` +
          `ping -q -c1 -W1 "$address" >/dev/null || echo lost`,
      );
      const environment = { CONFIG: config, CNI_COMMAND: "ADD", CNI_IFNAME: "eth0", CNI_PATH: "/usr/lib/cni" };

      expect(await site.host.must(["sh", "-c", attach.join("\n")], { environment })).toBe("");
      for (const pod of pods) await site.quietly("DEL", pod);
      expect(await site.left()).toEqual([]);
    });

    test("serves twenty ADDs at once, each with its own addresses", async () => {
      const pods: Pod[] = [];
      for (let count = 0; count < 20; count += 1) pods.push(await site.makePod());
      const results = await Promise.all(pods.map((pod) => site.add(pod)));

      expect(new Set(results.flatMap(addressesOf)).size).toBe(40);
      await Promise.all(pods.map((pod) => site.quietly("DEL", pod)));
      expect(await site.left()).toEqual([]);
    });
  });
}

const FORWARDING = ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"];

const HOST_SYSCTLS = {
  "ipv4/conf/IF/forwarding": 1,
  "ipv4/conf/IF/proxy_arp": 1,
  "ipv4/conf/IF/route_localnet": 0,
  "ipv4/conf/IF/rp_filter": 1,
  "ipv4/neigh/IF/proxy_delay": 0,
  "ipv6/conf/IF/accept_dad": 0,
  "ipv6/conf/IF/accept_ra": 0,
  "ipv6/conf/IF/disable_ipv6": 0,
  "ipv6/conf/IF/forwarding": 1,
  "ipv6/conf/IF/proxy_ndp": 1,
};

function addressesOf(result: AddResult | undefined): readonly string[] {
  return (result?.ips ?? []).map(({ address }) => address.split("/")[0] ?? "");
}

async function endpointsOf(site: PluginSite): Promise<readonly (readonly [string, unknown])[]> {
  const entries = [...(await site.store.list())].filter(([key]) => key.includes("/workloadendpoints/"));
  return entries.map(([key, value]) => [key, JSON.parse(value)] as const);
}

/** The format of each version, with the values of the kernel. */
async function expectAnswer(
  result: Record<string, unknown>,
  { cniVersion, pod, site }: { readonly cniVersion: string; readonly pod: Pod; readonly site: PluginSite },
): Promise<void> {
  const held = await site.inside(pod, ["ip", "-j", "addr", "show", "eth0"]);
  const [link] = JSON.parse(held) as [
    { address: string; mtu: number; addr_info: { local: string; scope: string; prefixlen: number }[] },
  ];
  const [ipv4, ipv6] = link.addr_info
    .filter(({ scope }) => scope === "global")
    .map(({ local, prefixlen }) => `${local}/${prefixlen}`);
  const [route4, route6] = [
    { dst: "0.0.0.0/0", gw: GATEWAY },
    { dst: "::/0", gw: GATEWAY6 },
  ];
  if (cniVersion < "0.3.0") {
    expect(result).toMatchObject({
      cniVersion,
      ip4: { ip: ipv4, routes: [route4] },
      ip6: { ip: ipv6, routes: [route6] },
    });
    expect(Object.keys(result)).not.toContain("ips");
    return;
  }
  const version = (text: "4" | "6") => (cniVersion < "1.0.0" ? { version: text } : {});
  const mtu = cniVersion === "1.1.0" ? { mtu: link.mtu } : {};
  expect(result).toMatchObject({ cniVersion, routes: [route4, route6] });
  expect(result["ips"]).toEqual([
    { address: ipv4, interface: 1, ...version("4") },
    { address: ipv6, interface: 1, ...version("6") },
  ]);
  expect(result["interfaces"]).toEqual([
    { name: `${identity.interfacePrefix}${pod.containerId.slice(0, 11)}`, mac: "ee:ee:ee:ee:ee:ee", ...mtu },
    { name: "eth0", mac: link.address, sandbox: pod.netns, ...mtu },
  ]);
}
