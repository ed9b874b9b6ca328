/** The node agent enforces policies on real packets, and its rules outlive it. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { type Agent, launchAgent } from "../agent/agent.ts";
import { fetchFromHost } from "../support/connectivity.ts";
import { hasEtcd } from "../support/etcd.ts";
import { startEtcdOnHost } from "../support/etcd-on-host.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";

const ETCD = { kind: "etcd", problem: hasEtcd ? undefined : "needs etcd" } as const;
/** On the embedded store `make test` shows enforcement by the tables of packets. */
const STORES = proofSize({ everyDay: [ETCD], soak: [{ kind: "embedded", problem: undefined } as const, ETCD] });
const PORT = 8080;
const KEY = resourceKey("networkpolicies", { namespace: "default", name: "isolate" });

function policyAllowing(...sources: readonly string[]) {
  const ingress = sources.length === 0 ? [] : [{ action: "Allow" as const, source: { nets: [...sources] } }];
  const policy = networkPolicy.make(
    { name: "isolate", namespace: "default" },
    { tier: "default", types: ["Ingress"], ingress },
  );
  return { kind: "put", key: KEY, value: networkPolicy.write(policy) } as const;
}

for (const { kind, problem } of STORES) {
  describe(`policy on ${kind}`, () => {
    const needs = [hostProblem(), program("nft"), problem];
    const test = testNeeding(...needs);
    let site: PluginSite;
    let agent: Agent;
    let client: Awaited<ReturnType<typeof attach>>;
    let server: Awaited<ReturnType<typeof attach>>;
    let listener: Disposable;
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      site = await openPluginSite(kind);
      const { name, cniVersion, ...plugin } = site.config();
      site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
      [client, server] = [await attach(), await attach()];
      listener = serveTcp(server.netns, "server", PORT);
    });
    afterAll(async () => {
      listener?.[Symbol.dispose]();
      await site?.[Symbol.asyncDispose]();
    });

    const attach = async () => {
      const pod: Pod = await site.makePod();
      const { ips } = await site.add(pod);
      const addresses = ips.map(({ address }) => address.split("/")[0] ?? "");
      return { pod, netns: site.host.view(pod.netns), addresses };
    };
    const connections = () =>
      Promise.all(server.addresses.map(async (address) => (await askTcp(client.netns, address, PORT)).split(" ")[0]));
    const untilConnections = (...wanted: readonly string[]) =>
      pollUntil(async () => Bun.deepEquals(await connections(), wanted), `connections: ${wanted.join(", ")}`);
    const table = async () => (await site.host.run(["nft", `list table inet ${identity.policyTable}`])).stdout;

    test("no policy: the agent writes no table, and all traffic passes", async () => {
      agent = launchAgent(site.host);
      await pollUntil(() => agent.log().includes("serves the plugins' calls"), "the agent to serve");
      await pollUntil(() => agent.log().includes("Network policy: there is none"), "the agent to read the datastore");
      expect([await connections(), await table()]).toEqual([["server", "server"], ""]);
    });

    test("a policy closes and opens connections between two pods", async () => {
      await site.store.put([policyAllowing()]);
      await untilConnections("silence", "silence");
      await site.store.put([policyAllowing(`${client.addresses[0]}/32`)]);
      await untilConnections("server", "silence");
      await site.store.put([
        policyAllowing(...client.addresses.map((each) => `${each}/${each.includes(":") ? 128 : 32}`)),
      ]);
      await untilConnections("server", "server");
      await site.store.remove(KEY);
      await pollUntil(async () => (await table()) === "", "the table to be removed with the last policy");
      expect(await connections()).toEqual(["server", "server"]);
      expect(agent.log().match(/Network policy: (enforced|there is none)/g)).toEqual([
        "Network policy: there is none",
        "Network policy: enforced",
        "Network policy: there is none",
      ]);
    });

    test("a policy beyond the limits closes its pods, and node status names it until it is smaller", async () => {
      const selecting = (count: number) => {
        const selectors = Array.from({ length: count }, (_, index) => ({ selector: `a${index} == 'a'` }));
        const ingress = [{ selector: "all()" }, ...selectors].map((source) => ({ action: "Allow" as const, source }));
        const spec = { tier: "default", types: ["Ingress" as const], ingress };
        const policy = networkPolicy.make({ name: "isolate", namespace: "default" }, spec);
        return { kind: "put", key: KEY, value: networkPolicy.write(policy) } as const;
      };
      const status = async () => (await site.host.run([builtProgram(identity.adminTool), "node", "status"])).stdout;
      await site.store.put([selecting(1_000)]);
      await untilConnections("silence", "silence");
      expect(await status()).toContain(
        'Problem: "default/isolate" denies more than it says: it has more than 1000 different',
      );
      await site.store.put([selecting(999)]);
      await untilConnections("server", "server");
      expect(await status()).not.toContain("Problem:");
      await site.store.remove(KEY);
      await pollUntil(async () => (await table()) === "", "the table to be removed with the last policy");
    });

    test("the agent answers probes, and serves metrics if its configuration says so", async () => {
      const key = resourceKey("nodeagentconfigurations", { name: "default" });
      const spec = { prometheusMetricsEnabled: true, prometheusMetricsHost: "127.0.0.1" };
      const value = nodeAgentConfiguration.write(nodeAgentConfiguration.make({ name: "default" }, spec));
      await site.store.put([{ kind: "put", key, value }]);
      expect(await fetchFromHost(site.host, "127.0.0.1", 9099, "/liveness")).toBe("live\n");
      expect(await fetchFromHost(site.host, "127.0.0.1", 9099, "/readiness")).toBe("ready\n");
      expect(await fetchFromHost(site.host, "127.0.0.1", 9091, "/metrics")).toContain("vendor_node_endpoints 2\n");
      await site.store.remove(key);
    });

    test("the rules of a killed agent stay, and the next one replaces them", async () => {
      await site.store.put([policyAllowing(`${client.addresses[0]}/32`)]);
      await untilConnections("server", "silence");
      await agent.signal("KILL");
      await agent.ended;
      expect(await connections()).toEqual(["server", "silence"]);

      await site.store.put([policyAllowing(`${client.addresses[1]}/128`)]);
      expect(await connections()).toEqual(["server", "silence"]);
      agent = launchAgent(site.host);
      await untilConnections("silence", "server");
      await agent.signal("TERM");
      expect([await agent.ended, await connections()]).toEqual([0, ["silence", "server"]]);
    });

    test("what another program changes in the table, or with all others, is reverted", async () => {
      await site.store.put([policyAllowing(`${client.addresses[0]}/32`)]);
      await site.host.must(["nft", "add table inet other; add chain inet other kept"]);
      agent = launchAgent(site.host);
      await untilConnections("server", "silence");
      const before = await table();
      for (const edit of [
        `flush chain inet ${identity.policyTable} to_workload`,
        `add chain inet ${identity.policyTable} foreign`,
        `delete table inet ${identity.policyTable}`,
      ]) {
        await site.host.must(["nft", edit]);
        await pollUntil(async () => contentOf(await table()) === contentOf(before), `reverted: ${edit}`);
        expect(await connections()).toEqual(["server", "silence"]);
      }
      expect(agent.log()).toContain('it was changed by "nft" (process');
      expect(await site.host.must(["nft", "list table inet other"])).toContain("chain kept");

      const repaired = () => [...agent.log().matchAll(/again: /g)].length;
      const repairedBefore = repaired();
      await site.host.must(["nft", "flush ruleset"]);
      await pollUntil(async () => contentOf(await table()) === contentOf(before), "reverted: flush");
      await pollUntil(() => repaired() > repairedBefore, "the agent to say so");
      const repairs = repaired();
      await site.store.put([policyAllowing(`${client.addresses[1]}/128`)]);
      await untilConnections("silence", "server");
      await site.store.put([policyAllowing(`${client.addresses[0]}/32`)]);
      await untilConnections("server", "silence");
      // Its own changes are not foreign.
      expect(repaired()).toBe(repairs);
      await agent.signal("TERM");
      await agent.ended;
    });

    if (kind === "etcd") {
      test("without a datastore an agent starts, and leaves the rules as they are", async () => {
        await site.host.must(["sh", "-c", "kill -KILL $(busybox pidof etcd)"]);
        agent = launchAgent(site.host);
        await pollUntil(() => agent.log().includes("[WARNING]"), "the agent to report the datastore");
        expect(await connections()).toEqual(["server", "silence"]);
        await agent.signal("KILL");
        expect([await agent.ended, await connections()]).toEqual([137, ["server", "silence"]]);

        agent = launchAgent(site.host);
        await startEtcdOnHost(site.host);
        await site.store.put([policyAllowing(`${client.addresses[1]}/128`)]);
        await untilConnections("silence", "server");
      });
    }
  });
}

/** The lines of a listing without counters. The order of chains tells which of them were there first. */
function contentOf(listing: string): string {
  return listing
    .replaceAll(/counter packets \d+ bytes \d+/g, "counter")
    .split("\n")
    .sort()
    .join("\n");
}
