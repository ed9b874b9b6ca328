/**
 * Host ports on hosts with rules of other programs: the orchestrator's Service rules,
 * a firewall, upstream's portmap. Their tables stay unchanged byte for byte.
 */
import { afterAll, afterEach, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { upstreamPlugins } from "../support/network-under-test.ts";
import { CLIENT4, HOST4, mainPluginProblem, openPortHost, type PortHost } from "./port-host.ts";
import { port, portmapOn } from "./portmap-calls.ts";

const SERVICE = "10.96.0.1";

/** As kube-proxy writes them: a Service address, a node port, masquerading by mark, FORWARD for marked packets. */
const iptablesServices = (pod: string) => `
*nat
:KUBE-SERVICES - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SEP - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A OUTPUT -j KUBE-SERVICES
-A POSTROUTING -j KUBE-POSTROUTING
-A KUBE-SERVICES -d ${SERVICE}/32 -p tcp -m tcp --dport 80 -j KUBE-SEP
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-NODEPORTS -p tcp -m tcp --dport 30080 -j KUBE-SEP
-A KUBE-SEP -s ${pod}/32 -j KUBE-MARK-MASQ
-A KUBE-SEP -p tcp -j DNAT --to-destination ${pod}:80
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MASQUERADE
COMMIT
`;

const nftServices = (pod: string) => `
table ip kube-proxy {
  map service-ips { type ipv4_addr . inet_proto . inet_service : verdict; }
  map service-nodeports { type inet_proto . inet_service : verdict; }
  chain endpoint { meta l4proto tcp dnat to ${pod}:80; }
  chain services {
    ip daddr . meta l4proto . th dport vmap @service-ips
    fib daddr type local meta l4proto . th dport vmap @service-nodeports
  }
  chain nat-prerouting { type nat hook prerouting priority dstnat; jump services; }
  chain nat-output { type nat hook output priority -100; jump services; }
}
add element ip kube-proxy service-ips { ${SERVICE} . tcp . 80 : goto endpoint }
add element ip kube-proxy service-nodeports { tcp . 30080 : goto endpoint }
`;

const upstreamPortmap = await upstreamPlugins();
const needs = [
  hostProblem(),
  program("nft"),
  program("iptables-nft-restore"),
  program("iptables-legacy-restore"),
  mainPluginProblem(),
];
const testWithForeignRules = testNeeding(...needs);

describe("host ports together with", () => {
  let world: PortHost;
  beforeAll(async () => {
    if (needs.every((need) => need === undefined)) world = await openPortHost();
  });
  afterEach(async () => {
    if (world === undefined) return;
    await world.host.must(["nft", "flush", "ruleset"]);
    for (const table of ["nat", "filter"]) {
      const clear = `iptables-legacy -t ${table} -F; iptables-legacy -t ${table} -X`;
      await world.host.must(["sh", "-c", `${clear}; iptables-legacy -P FORWARD ACCEPT`]);
    }
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  let count = 0;
  const makePod = (...ports: readonly ReturnType<typeof port>[]) => {
    count += 1;
    return world.makePod(`pod${count}`, ports);
  };
  const foreignRules = async () => {
    const { host } = world;
    const tables = (await host.must(["nft", "list", "tables"])).split("\n").filter((line) => line !== "");
    const foreign = tables.filter((line) => !line.endsWith(` ${identity.hostPortTable}`));
    const listings = await Promise.all(foreign.map((table) => host.must(["nft", "-s", "list", ...table.split(" ")])));
    return [...listings, await host.must(["iptables-legacy-save"])].join("\n").replaceAll(/\[\d+:\d+\]|# .*\n/g, "");
  };

  const services: readonly (readonly [string, (pod: string) => Promise<string>])[] = [
    [
      "kube-proxy by iptables-nft",
      (pod) => world.host.must(["iptables-nft-restore"], { stdin: iptablesServices(pod) }),
    ],
    [
      "kube-proxy by iptables-legacy",
      (pod) => world.host.must(["iptables-legacy-restore"], { stdin: iptablesServices(pod) }),
    ],
    ["kube-proxy by nftables", (pod) => world.host.must(["nft", "-f", "-"], { stdin: nftServices(pod) })],
  ];
  for (const [name, install] of services) {
    for (const first of ["they", "we"] as const) {
      testWithForeignRules(
        `${name}, if ${first} came first: both work, Services take precedence, their rules stay`,
        async () => {
          const network = world.network({ families: [4] });
          const service = await makePod(port(8000));
          const web = await makePod(port(80), port(30_080));
          const { ips } = await network.add(service.attachment);
          const address = ips[0]?.address.split("/")[0] ?? "";
          if (first === "they") await install(address);
          await network.add(web.attachment);
          if (first === "we") await install(address);
          const before = await foreignRules();
          using _service = serveTcp(service.netns, "service", 80);
          using _web = serveTcp(web.netns, "web", 80);
          await world.host.must(["ip", "-n", "vt-client", "route", "replace", `${SERVICE}/32`, "via", HOST4]);

          expect(await askTcp(world.client, SERVICE, 80)).toBe(`service ${CLIENT4}`);
          expect(await askTcp(world.netns, SERVICE, 80)).toStartWith("service ");
          expect(await askTcp(world.client, HOST4, 30_080)).toBe(`service ${CLIENT4}`);
          expect(await askTcp(world.client, HOST4, 80)).toBe(`web ${CLIENT4}`);
          expect(await askTcp(world.netns, "127.0.0.1", 80)).toStartWith("web ");
          expect(await askTcp(world.client, HOST4, 8000)).toBe(`service ${CLIENT4}`);
          await network.check(web.attachment);

          for (const pod of [service, web]) await network.del(pod.attachment);
          expect(await foreignRules()).toBe(before);
          expect(await world.kept()).toEqual([]);
        },
      );
    }
  }

  const firewalls: readonly (readonly [string, string, string])[] = [
    [
      "iptables' FORWARD policy drop",
      "iptables-nft -P FORWARD DROP",
      "iptables-nft -A FORWARD -m conntrack --ctstate DNAT,ESTABLISHED -j ACCEPT",
    ],
    [
      "an nftables firewall that drops all forwarded traffic",
      "nft 'table inet fw { chain forward { type filter hook forward priority 0; policy drop; ct state established accept; }; }'",
      "nft 'add rule inet fw forward ct status dnat accept'",
    ],
  ];
  for (const [name, close, open] of firewalls) {
    testWithForeignRules(`${name}: nothing passes until the firewall accepts DNATed packets`, async () => {
      const network = world.network({ families: [4] });
      const web = await makePod(port(80));
      await world.host.must(["sh", "-c", close]);
      await network.add(web.attachment);
      const before = await foreignRules();
      using _web = serveTcp(web.netns, "web", 80);
      expect(await askTcp(world.client, HOST4, 80)).toBe("silence");
      expect(await askTcp(world.netns, "127.0.0.1", 80)).toStartWith("web ");
      expect(await foreignRules()).toBe(before);

      await world.host.must(["sh", "-c", open]);
      expect(await askTcp(world.client, HOST4, 80)).toBe(`web ${CLIENT4}`);
      await network.del(web.attachment);
    });
  }

  for (const backend of ["iptables", "nftables"]) {
    testWithForeignRules(`upstream's portmap (${backend}): each serves and removes its own ports`, async () => {
      const upstream = portmapOn(world, "path" in upstreamPortmap ? upstreamPortmap.path : "");
      const network = world.network({ families: [4] });
      const [ours, theirs] = [await makePod(port(80)), await makePod()];
      await network.add(ours.attachment);
      const { ips } = await network.add(theirs.attachment);
      const call = {
        id: "theirs",
        netns: theirs.attachment.netns,
        addresses: ips.map(({ address }) => address),
        ports: [port(81)],
        config: { backend },
      };
      await upstream.must("ADD", call);
      const before = await foreignRules();
      using _ours = serveTcp(ours.netns, "ours", 80);
      using _theirs = serveTcp(theirs.netns, "theirs", 80);
      expect(await askTcp(world.client, HOST4, 80)).toBe(`ours ${CLIENT4}`);
      expect(await askTcp(world.client, HOST4, 81)).toBe(`theirs ${CLIENT4}`);

      await network.del(ours.attachment);
      expect(await foreignRules()).toBe(before);
      expect(await askTcp(world.client, HOST4, 81)).toBe(`theirs ${CLIENT4}`);
      await network.add(ours.attachment);
      await upstream.must("DEL", call);
      expect(await askTcp(world.client, HOST4, 80)).toBe(`ours ${CLIENT4}`);
      expect(await askTcp(world.client, HOST4, 81)).toBe("refused");
      for (const pod of [ours, theirs]) await network.del(pod.attachment);
      expect(await world.kept()).toEqual([]);
    });
  }
});
