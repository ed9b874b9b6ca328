/** A host whose own firewall drops forwarded packets: ADD and `node check` name the chain and a remedy that works. */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { NOTHING_UNUSUAL } from "../support/stderr.ts";

const needs = [hostProblem(), program("nft"), program("iptables")];
const testPackets = testNeeding(...needs);

const FIREWALLS = [
  {
    name: "Docker's FORWARD policy",
    setUp: "iptables -P FORWARD DROP; iptables -N DOCKER-USER; iptables -A FORWARD -j DOCKER-USER",
    chain: 'chain "FORWARD" of table ip "filter"',
    remedy: /iptables -I FORWARD .* ACCEPT/,
  },
  {
    name: "an nftables.conf with a forward policy",
    setUp: "nft 'table inet filter { chain forward { type filter hook forward priority 0; policy drop; }; }'",
    chain: 'chain "forward" of table inet "filter"',
    remedy: /nft insert rule inet filter forward .* accept/,
  },
] as const;

describe.each(FIREWALLS)("a host with $name", ({ setUp, chain, remedy }) => {
  let site: PluginSite;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openPluginSite("embedded");
    await site.host.must(["sh", "-ec", setUp]);
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const attach = async () => {
    const pod = await site.makePod();
    const { code, stdout, stderr } = await site.call("ADD", pod);
    if (code !== 0) throw new Error(stdout + stderr);
    const address = /10\.50\.[\d.]+/.exec(stdout)?.[0] ?? "";
    return { netns: site.host.view(pod.netns), address, stderr };
  };
  const check = () => site.host.run([builtProgram(identity.adminTool), "node", "check"]);

  testPackets("is warned by ADD and by the check of the node, with a remedy that helps", async () => {
    const [client, server] = [await attach(), await attach()];
    using _server = serveTcp(server.netns, "pod", 80);
    expect(server.stderr).toContain(chain);
    const before = await check();
    expect([before.code, before.stdout]).toEqual([1, expect.stringContaining(chain)]);
    expect(await askTcp(client.netns, server.address, 80)).toBe("silence");

    const commands = remedy.exec(server.stderr)?.[0] ?? "";
    expect(before.stdout).toContain(commands);
    await site.host.must(["sh", "-ec", commands]);
    expect(await askTcp(client.netns, server.address, 80)).toBe(`pod ${client.address}`);
    expect((await attach()).stderr).toEqual(NOTHING_UNUSUAL);
    expect((await check()).code).toBe(0);
  });
});

describe("the check of the node", () => {
  testPackets("needs root, and says so", async () => {
    await using site = await openPluginSite("embedded");
    const command = [builtProgram(identity.adminTool), "node", "check"];
    const { code, stderr } = await site.host.run(["setpriv", "--reuid=65534", "--clear-groups", ...command]);

    expect([code, stderr]).toEqual([1, "error: Cannot check this host: permission denied (run it as root)\n"]);
  });
});

describe("a host with firewalld", () => {
  testPackets("is warned although the policy is accept: the last rule rejects", async () => {
    await using site = await openPluginSite("embedded");
    const chain =
      "{ type filter hook forward priority 10; policy accept; ct state established accept; jump ZONES; reject; }";
    await site.host.must(["nft", `table inet firewalld { chain ZONES { }; chain filter_FORWARD ${chain}; }`]);
    const warned = await site.call("ADD", await site.makePod());
    expect(warned.stderr).toContain('chain "filter_FORWARD" of table inet "firewalld"');
    expect(warned.stderr).toContain("firewall-cmd --permanent --zone=trusted");

    await site.host.must(["nft", `add rule inet firewalld ZONES iifname "${identity.interfacePrefix}*" accept`]);
    expect((await site.call("ADD", await site.makePod())).stderr).toEqual(NOTHING_UNUSUAL);
  });
});

describe.each(["REJECT", "DROP"])("a host whose FORWARD chain ends with -j %s for every packet", (target) => {
  testPackets("is reported by the check of the node, with a remedy that it accepts", async () => {
    await using site = await openPluginSite("embedded");
    const check = () => site.host.run([builtProgram(identity.adminTool), "node", "check"]);
    await site.host.must(["iptables", "-A", "FORWARD", "-j", target]);
    const { code, stdout } = await check();
    expect([code, stdout]).toEqual([1, expect.stringContaining('chain "FORWARD" of table ip "filter"')]);

    const [remedy = ""] = /iptables -I FORWARD .* ACCEPT/.exec(stdout) ?? [];
    await site.host.must(["sh", "-ec", remedy]);
    expect((await check()).code).toBe(0);
  });
});
