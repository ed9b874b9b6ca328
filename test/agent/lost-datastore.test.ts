/**
 * A datastore that has lost its records (deleted, another file, an etcd that was restored empty) does not cut off the
 * containers that run: their routes and outgoing NAT stay, and rules of policy are not taken away from them.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { ROOT_PREFIX, resourceKey } from "../../src/model/keys.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { poolChange } from "../support/ipam.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { failureOf, openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type Agent, startAgent } from "./agent.ts";

const { policyTable, natTable } = identity;
const STORES = [
  { kind: "embedded", problem: undefined },
  { kind: "etcd", problem: hasEtcd ? undefined : "needs etcd" },
] as const;
const PORT = 80;
const NO_POLICY = "all packets of workloads pass";
const RULES_STAY = "rules of before stay";

const CLOSED = networkPolicy.make(
  { name: "closed", namespace: "default" },
  { tier: "default", types: ["Ingress"], ingress: [] },
);
const POLICY = {
  kind: "put",
  key: resourceKey("networkpolicies", { namespace: "default", name: "closed" }),
  value: networkPolicy.write(CLOSED),
} as const;

for (const { kind, problem } of STORES) {
  describe(`containers that run while the records of ${kind} are lost`, () => {
    const needs = [hostProblem(), problem, program("nft")];
    const test = testNeeding(...needs);
    let site: PluginSite;
    let agent: Agent;
    let web: Attached;
    let client: Attached;
    let records: ReadonlyMap<string, string>;
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      site = await openPluginSite(kind);
      await site.store.put([poolChange("blue", "10.50.0.0/16", { natOutgoing: true })]);
      const { name, cniVersion, ...plugin } = site.config();
      site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
      [web, client] = [await attach(), await attach()];
      agent = await startAgent(site.host);
      await pollUntil(() => agent.log().includes(NO_POLICY), "the agent to know the policies");
      records = await site.store.list();
      const { stdout } = await site.host.run([builtProgram(identity.adminTool), "node", "check"]);
      expect(stdout).not.toContain("does not know");
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    const attach = async () => {
      const pod = await site.makePod();
      const { ips, interfaces } = await site.add(pod);
      const [ipv4 = "", ipv6 = ""] = ips.map(({ address }) => address.split("/")[0]);
      return { pod, ipv4, ipv6, link: interfaces[0]?.name ?? "", netns: site.host.view(pod.netns) };
    };
    type Attached = Awaited<ReturnType<typeof attach>>;
    const stop = async () => {
      await agent.signal("TERM");
      await agent.ended;
    };
    const lose = async () => {
      for (const key of (await site.store.list()).keys()) await site.store.remove(key);
      expect((await site.store.list()).size).toBe(0);
    };
    const put = (entries: Iterable<readonly [string, string]>) =>
      site.store.put(Array.from(entries, ([key, value]) => ({ kind: "put", key, value }) as const));
    const table = async (name: string) => (await site.host.run(["nft", `list table inet ${name}`])).stdout;
    const ask = () => askTcp(client.netns, web.ipv4, PORT);
    /** A container that the new records know, and a route of it that is stale: when it is gone, all routes were compared. */
    const untilCompared = async () => {
      await put([...records].filter(([key]) => /clusterinformations|\/nodes\//.test(key)));
      await site.store.put([poolChange("green", "10.51.0.0/16"), poolChange("green6", "fd51::/64")]);
      const { link, pod } = await attach();
      for (const address of ["10.51.77.3", "10.51.77.4"]) {
        await site.host.must(["ip", "route", "add", address, "dev", link, "proto", "86"]);
        const isGone = async () => (await site.host.must(["ip", "route", "show", address])) === "";
        await pollUntil(isGone, `no route to ${address}`);
      }
      await site.quietly("DEL", pod);
    };

    test("go on when the agent starts without records: routes and outgoing NAT stay", async () => {
      using _server = serveTcp(web.netns, "web", PORT);
      expect(await ask()).toStartWith("web ");
      expect(await table(natTable)).toContain("10.50.0.0/16");
      await stop();
      await lose();
      agent = await startAgent(site.host);
      await pollUntil(() => agent.log().includes(RULES_STAY), "the agent to know that there is no policy");
      expect(await table(natTable)).toContain("10.50.0.0/16");
      expect(await table(policyTable)).toBe("");

      for (const command of ["node check", "status"]) {
        const { code, stdout } = await site.host.run([builtProgram(identity.adminTool), ...command.split(" ")]);
        expect([code, stdout]).toEqual([
          1,
          expect.stringContaining("2 containers run here that the datastore does not know"),
        ]);
      }

      await untilCompared();
      expect(await ask()).toStartWith("web ");
      expect(agent.log()).not.toContain("10.50.");
    });

    test("keep their addresses: a new container does not get one of them", async () => {
      await site.store.put([poolChange("blue", "10.50.0.0/16"), poolChange("blue6", "fd50::/64")]);
      const request = site.config({ runtimeConfig: { ips: [web.ipv4] } });
      const { msg } = failureOf(await site.call("ADD", await site.makePod(), { config: request }));
      expect(msg).toContain(web.ipv4);
      expect(await site.host.must(["ip", "route", "show", web.ipv4])).toContain(web.link);
    });

    test("stay closed by rules of before, until the records are back", async () => {
      using _server = serveTcp(web.netns, "web", PORT);
      await lose();
      await put(records);
      await site.store.put([POLICY]);
      await pollUntil(async () => (await ask()) === "silence", "the policy to close");
      await stop();
      await lose();
      agent = await startAgent(site.host);
      await pollUntil(() => agent.log().includes(RULES_STAY), "the agent to know that there is no policy");
      await untilCompared();
      expect(await ask()).toBe("silence");
      expect(await table(policyTable)).toContain(web.link);

      await put(records);
      await pollUntil(() => agent.log().includes(NO_POLICY), "the agent to know the containers again");
      await pollUntil(
        async () => (await ask()).startsWith("web "),
        "an answer, since the records of before have no policy",
      );
    });

    if (kind !== "etcd") return;

    test("stay closed if etcd loses all records while the agent runs", async () => {
      using _server = serveTcp(web.netns, "web", PORT);
      await site.store.put([POLICY]);
      await pollUntil(async () => (await ask()) === "silence", "the policy to close");
      const endpoint = String(site.config()["etcd_endpoints"]);
      const start = agent.log().length;
      await site.host.must(["etcdctl", `--endpoints=${endpoint}`, "del", "--prefix", ROOT_PREFIX]);
      const isKnown = () => agent.log().slice(start).includes(RULES_STAY);
      await pollUntil(isKnown, "the agent to know that there is no policy");
      await untilCompared();
      expect(await ask()).toBe("silence");
      expect(await table(policyTable)).toContain(web.link);
      expect(await site.host.must(["ip", "route", "show", web.ipv4])).toContain(web.link);
    });
  });
}
