/**
 * Another program flushes all rules of the host while the node agent runs: everything that the product had in the kernel
 * is back within seconds, as it was. One pod has each of the things that a table is for:
 *
 *   outside 198.51.100.2 ─── 198.51.100.1 host ─── pod: masqueraded, a floating IP, a host port, a further source
 *   node-2, by VXLAN                           └── plain: nothing but its own addresses, and a policy
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { globalNetworkPolicy } from "../../src/model/global-network-policy.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { NODE } from "../../src/model/kinds.ts";
import { annotationKey } from "../../src/plugin/annotations.ts";
import { type Agent, launchAgent } from "../agent/agent.ts";
import { globalPolicy } from "../support/global-policy.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import {
  KUBE_SITE_STORES,
  type KubePod,
  type KubeSite,
  type KubeSiteStore,
  openKubeSite,
} from "../support/kube-site.ts";
import { askTcp, hearUdp, openUdpClient, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";

const HOST = "198.51.100.1";
const OUTSIDE = "198.51.100.2";
const FLOATING = "203.0.113.80";
const SOURCE = "198.18.7.9";
const HOST_PORT = 8080;
/** Policy comes back within 1.5 seconds; the rest must not take longer by an order. */
const SOON = 6_000;

const NETWORK = `
ip netns add vt-outside
ip link add outside type veth peer name eth0 netns vt-outside
ip link set outside up
ip address add ${HOST}/24 dev outside
ip route add default via ${OUTSIDE}
ip -n vt-outside link set lo up
ip -n vt-outside link set eth0 up
ip -n vt-outside address add ${OUTSIDE}/24 dev eth0
ip -n vt-outside route add default via ${HOST}
`;

const node = (name: string, ipv4Address: string) =>
  ({
    kind: "put",
    key: NODE.key({ name }),
    value: NODE.codec.write(NODE.codec.make({ name }, { bgp: { ipv4Address } })),
  }) as const;
const SEED = [
  poolChange("blue", "10.61.0.0/24", { natOutgoing: true, vxlanMode: "Always" }),
  poolChange("blue6", "fd61::/112"),
  nodeChange("node-1"),
  node("node-2", `${OUTSIDE}/24`),
  {
    kind: "put",
    key: resourceKey("globalnetworkpolicies", { name: "open" }),
    value: globalNetworkPolicy.write(
      globalPolicy("open", {
        selector: "all()",
        types: ["Ingress", "Egress"],
        ingress: [{ action: "Allow" }],
        egress: [{ action: "Allow" }],
      }),
    ),
  },
] as const;
const FEATURES = { allowed_source_prefixes: true, floating_ips: true };
/** On the orchestrator's API the nodes are the cluster's own: there is no other one, and no tunnel. */
const tableNames = (kind: KubeSiteStore) => {
  const { natTable, floatingTable, guardTable, policyTable, tunnelTable, hostPortTable } = identity;
  const inet = [natTable, floatingTable, guardTable, policyTable, ...(kind === "etcd" ? [tunnelTable] : [])];
  return [...inet.map((name) => `inet ${name}`), `ip ${hostPortTable}`, `ip6 ${hostPortTable}`];
};
/** As Debian's nftables.service reads it at "systemctl reload nftables". */
const NFTABLES_CONF = `#!/usr/sbin/nft -f

flush ruleset

table inet filter {
	chain input {
		type filter hook input priority filter;
	}
	chain forward {
		type filter hook forward priority filter;
	}
}
`;

const STORES = proofSize({ everyDay: KUBE_SITE_STORES.filter(({ kind }) => kind === "etcd"), soak: KUBE_SITE_STORES });

for (const { kind, problem } of STORES) {
  describe(`the rules of a host with a node agent, on ${kind}`, () => {
    const needs = [problem, program("nft")];
    const test = testNeeding(...needs);
    const names = tableNames(kind);
    let kube: KubeSite;
    let agent: Agent;
    let pod: Attached;
    let plain: Attached;
    let whole: string[];
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      kube = await openKubeSite(kind, SEED);
      const { host } = kube.site;
      await host.must(["sh", "-ec", NETWORK]);
      const { adminKubeconfig: kubeconfig } = kube.server;
      const { name, cniVersion, ...plugin } = options(kind === "etcd" ? {} : { kubernetes: { kubeconfig } }).config;
      host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
      agent = launchAgent(host, { environment: { NODENAME: "node-1" } });
      await pollUntil(() => agent.log().includes("Network policy"), "the agent to follow the datastore");
      pod = await attach({
        [annotationKey("floatingIPs")]: JSON.stringify([FLOATING]),
        [annotationKey("allowedSourcePrefixes")]: JSON.stringify(["198.18.7.0/24"]),
      });
      plain = await attach({});
      await publish(pod);
      await pollUntil(async () => (await tables()).every((table) => table !== ""), "all tables");
      await pollUntil(async () => (await answers()).isWhole, "all ways to work");
      whole = await tables();
    }, 120_000);
    afterAll(() => kube?.[Symbol.asyncDispose]());

    const options = (more: Readonly<Record<string, unknown>> = {}) =>
      kube.options({ feature_control: FEATURES, ...more });
    const attach = async (annotations: Readonly<Record<string, string>>) => {
      const made = await kube.makePod({ annotations });
      const { ips } = await kube.site.add(made, options());
      const [own4 = "", own6 = ""] = ips.map(({ address }) => address.split("/")[0] ?? "");
      await kube.site.inside(made, ["ip", "link", "set", "lo", "up"]);
      return { pod: made, own4, own6, netns: kube.site.host.view(made.netns) };
    };
    type Attached = { readonly pod: KubePod; readonly own4: string; readonly own6: string; readonly netns: string };
    const publish = async ({ pod: made, own4, own6 }: Attached) => {
      const { containerId, netns, ifname } = made;
      const ips = [`${own4}/32`, `${own6}/128`].map((address) => ({ address, interface: 0 }));
      const config = {
        ...{ cniVersion: "1.1.0", name: "net", type: "portmap" },
        prevResult: { cniVersion: "1.1.0", interfaces: [{ name: ifname, sandbox: netns }], ips },
        runtimeConfig: { portMappings: [{ hostPort: HOST_PORT, containerPort: 80, protocol: "tcp" }] },
      };
      const variables = { CNI_COMMAND: "ADD", CNI_CONTAINERID: containerId, CNI_NETNS: netns, CNI_IFNAME: ifname };
      const environment = { ...variables, CNI_PATH: "/opt/cni/bin" };
      await kube.site.host.must([builtProgram("portmap")], { stdin: JSON.stringify(config), environment });
    };
    /** Without counters; chains, sets and elements in one order. */
    const tables = () =>
      Promise.all(
        names.map(async (table) => {
          const { stdout } = await kube.site.host.run(["nft", "-s", "-n", "list", "table", ...table.split(" ")]);
          const inOrder = stdout.replaceAll(/elements = \{([^}]*)\}/g, (_, elements: string) =>
            elements.split(/,\s*/).sort().join(","),
          );
          const parts = inOrder.replace(/^table .*\n/, "").replace(/\n\}\n$/, "");
          return parts.split("\n\n").sort().join("\n\n");
        }),
      );
    /** What comes out of each table, tried on packets. */
    const answers = async () => {
      const outside = kube.site.host.view("/run/netns/vt-outside");
      using _server = serveTcp(outside, "outside", 80);
      using _pod = serveTcp(pod.netns, "pod", 80);
      using heard = await hearUdp(plain.netns, 53);
      const send = async (from: Attached, source: string, target: string) => {
        const more = source.includes(":") ? "nodad" : "";
        await kube.site.inside(from.pod, ["sh", "-ec", `ip address replace ${source} dev lo ${more}`]);
        using client = await openUdpClient(from.netns, source);
        await client.ask(target, 53);
      };
      await Promise.all([send(pod, SOURCE, plain.own4), send(pod, "2001:db8:9::9", plain.own6)]);
      const found = {
        masqueraded: await askTcp(plain.netns, OUTSIDE, 80),
        floating: await askTcp(outside, FLOATING, 80),
        hostPort: await askTcp(outside, HOST, HOST_PORT),
        loopback: (await askTcp(kube.site.host.netns, "127.0.0.1", HOST_PORT)).split(" ")[0],
        sources: [...new Set(heard.senders)],
      };
      const wanted = {
        masqueraded: `outside ${HOST}`,
        floating: `pod ${OUTSIDE}`,
        hostPort: `pod ${OUTSIDE}`,
        loopback: "pod",
        // Not the other one, which is nobody's.
        sources: [SOURCE],
      };
      return { found, wanted, isWhole: Bun.deepEquals(found, wanted) };
    };
    /** Everything is the same again, and stays. */
    const expectWhole = async (what: string) => {
      await pollUntil(async () => Bun.deepEquals(await tables(), whole), what, SOON).catch(async (failure) => {
        expect(await tables()).toEqual(whole);
        throw failure;
      });
      const { found, wanted } = await answers();
      expect(found).toEqual(wanted);
    };

    test('is whole after "nft flush ruleset", each table in the same pass', async () => {
      const written = () => [...agent.log().matchAll(/Wrote the nftables tables of this host again: (.*)/g)].length;
      const before = written();
      await kube.site.host.must(["nft", "flush ruleset"]);
      await expectWhole("the tables after a flush");

      const { natTable, floatingTable, guardTable, hostPortTable } = identity;
      const [last = ""] =
        agent
          .log()
          .match(/Wrote the nftables tables of this host again: .*/g)
          ?.slice(-1) ?? [];
      for (const table of [natTable, floatingTable, guardTable, hostPortTable]) expect(last).toContain(table);
      // Its own work is not one more reason to compare.
      expect(written()).toBe(before + 1);
    });

    test("is whole after a reload of nftables.service, whose own table stays", async () => {
      kube.site.host.writeFile("/etc/nftables.conf", NFTABLES_CONF);
      for (let times = 0; times < 2; times++) {
        await kube.site.host.must(["nft", "-f", "/etc/nftables.conf"]);
        await expectWhole("the tables after a reload");
      }
      expect(await kube.site.host.must(["nft", "list table inet filter"])).toContain("chain forward");
    });

    testNeeding(
      ...needs,
      program("firewalld"),
      program("firewall-cmd"),
      program("dbus-daemon"),
    )(
      "is untouched by firewalld: its start, its reload, and its end",
      async () => {
        const { host } = kube.site;
        await host.must(["sh", "-ec", "mkdir -p /run/dbus; rm -f /run/dbus/*"]);
        host.start(["dbus-daemon", "--system", "--nofork", "--nopidfile"], "dbus.log");
        await pollUntil(() => existsSync(host.view("/run/dbus/system_bus_socket")), "the system bus");
        const before = await host.must(["nft", "-s", "-n", `list table ip ${identity.hostPortTable}`]);
        host.start(["firewalld", "--nofork"], "firewalld.log");
        const isRunning = async () => (await host.run(["firewall-cmd", "--state"])).code === 0;
        await pollUntil(isRunning, "firewalld", 30_000);
        // As on any host with it: what is forwarded for pods has to be trusted.
        await host.must(["firewall-cmd", "--set-default-zone=trusted"]);
        const repaired = () => [...agent.log().matchAll(/again: /g)].length;
        const repairs = repaired();
        for (const command of ["--reload", "--complete-reload"]) {
          await host.must(["firewall-cmd", command]);
          expect(await host.must(["nft", "-s", "-n", `list table ip ${identity.hostPortTable}`])).toBe(before);
          await expectWhole(`the tables after firewall-cmd ${command}`);
        }
        await host.must(["sh", "-ec", "kill $(cat /run/firewalld.pid)"]);
        await pollUntil(async () => !(await isRunning()), "the end of firewalld", 30_000);
        await expectWhole("the tables after the end of firewalld");
        expect(repaired()).toBe(repairs);
      },
      120_000,
    );

    test('is whole after a flush while no agent runs: "vendorctl node restore", but for policy and tunnels', async () => {
      await agent.signal("TERM");
      await agent.ended;
      await kube.site.host.must(["nft", "flush ruleset"]);
      const restore = [builtProgram(identity.adminTool), "node", "restore", "--name", "node-1"];
      const { stdout } = await kube.site.host.run(restore, { environment: kube.adminEnvironment });
      const { natTable, floatingTable, guardTable, hostPortTable } = identity;
      for (const table of [natTable, floatingTable, guardTable, hostPortTable]) expect(stdout).toContain(table);
      const { found, wanted } = await answers();
      expect(found).toEqual(wanted);
      const ofAgent = [identity.policyTable, identity.tunnelTable];
      const withoutAgents = (all: readonly string[]) =>
        all.filter((_, index) => !ofAgent.some((name) => names[index]?.endsWith(name)));
      expect(withoutAgents(await tables())).toEqual(withoutAgents(whole));
    });
  });
}
