/** Requests to etcd, counted by etcd itself, of calls that an agent served. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { fetchFromHost } from "../support/connectivity.ts";
import { countRequestsIn, hasEtcd, startEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { type IpamSite, judge, openEtcdSite } from "../support/ipam-site.ts";
import { testNeeding } from "../support/needs.ts";
import { openPluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { startAgent } from "./agent.ts";
import { callIpam, counted, type IpamCall, type SiteAgent, startSiteAgent } from "./site-agent.ts";

const NEEDS_ETCD = hasEtcd ? undefined : "needs the program etcd";
const test = testNeeding(NEEDS_ETCD);
const NAMES = ["a", "b", "c", "d", "e"];
const BOTH = { assign_ipv6: "true" };
const each = (count: number) => NAMES.map(() => count);

describe.each(["on", "off"] as const)(
  "requests to etcd with its gateway %s, of calls that the agent served",
  (gateway) => {
    let site: IpamSite;
    let agent: SiteAgent;
    beforeAll(async () => {
      if (!hasEtcd) return;
      const pools = [poolChange("four", "10.0.0.0/16"), poolChange("six", "fd00::/64")];
      site = await openEtcdSite(await startEtcd({ gateway }), nodeChange("node-1"), ...pools);
      agent = await startSiteAgent(site);
    });
    afterAll(async () => {
      await agent?.[Symbol.asyncDispose]();
      await site?.stop();
    });

    const requests = async (call: IpamCall) => {
      const { outcome, requests } = await counted(site, () => callIpam(site, call));
      expect(outcome).toMatchObject({ exitCode: 0 });
      return requests;
    };
    const requestsOfEach = async (command: IpamCall["command"], ipam = BOTH) => {
      const counts: number[] = [];
      for (const container of NAMES) counts.push(await requests({ command, container, ipam }));
      return counts;
    };

    test("are 3 for the first ADD of a node and 2 for the second, as without an agent", async () => {
      expect(await requests({ command: "ADD", container: "first", ipam: BOTH })).toBe(3);
      expect(await requests({ command: "ADD", container: "second", ipam: BOTH })).toBe(2);
    });

    test("are 1 for every ADD after them and for every DEL, of one family or of both", async () => {
      expect(await requestsOfEach("ADD")).toEqual(each(1));
      expect(await requestsOfEach("DEL")).toEqual(each(1));
      const four = { assign_ipv6: "false" };
      expect(await requestsOfEach("ADD", four)).toEqual(each(1));
      expect(await requestsOfEach("DEL", four)).toEqual(each(1));
    });

    test("are 1, a read, for what ends without a commit: ADD again, DEL again, CHECK", async () => {
      const container = "again";
      for (const command of ["ADD", "ADD", "CHECK", "DEL", "DEL"] as const) {
        expect(await requests({ command, container })).toBe(1);
      }
    });

    test("are 2 after another process changed a block, and 1 again after that", async () => {
      await callIpam(site, { command: "ADD", container: "foreign", by: "its own process" });
      expect(await requests({ command: "ADD", container: "x" })).toBe(2);
      expect(await requests({ command: "ADD", container: "y" })).toBe(1);

      await callIpam(site, { command: "DEL", container: "foreign", by: "its own process" });
      expect(await requests({ command: "DEL", container: "x" })).toBe(2);
      expect(await requests({ command: "DEL", container: "y" })).toBe(1);
    });

    test("are 2 for the DEL of a container that the agent does not know", async () => {
      await callIpam(site, { command: "ADD", container: "foreign", by: "its own process" });

      expect(await requests({ command: "DEL", container: "foreign" })).toBe(2);
    });

    test("leave records that agree", async () => {
      expect((await judge(site)).problems).toEqual([]);
      expect(agent.served()).toBeGreaterThan(30);
    });
  },
);

describe("requests of a whole attachment that the agent served", () => {
  testNeeding(hostProblem(), NEEDS_ETCD)(
    "are 1 for an ADD and 1 for a DEL, workload endpoint and both families included",
    async () => {
      await using attached = await openPluginSite("etcd");
      const agent = await startAgent(attached.host);
      const pods = await Promise.all(NAMES.map(() => attached.makePod()));
      const total = async () => countRequestsIn(await fetchFromHost(attached.host, "127.0.0.1", 2379, "/metrics"));
      const requestsOf = async (work: () => Promise<unknown>) => {
        const before = await total();
        await work();
        return (await total()) - before;
      };
      const counts: number[] = [];
      for (const pod of pods) counts.push(await requestsOf(() => attached.add(pod)));
      for (const pod of pods) counts.push(await requestsOf(() => attached.quietly("DEL", pod)));

      expect(counts).toEqual([3, 2, 1, 1, 1, 1, 1, 1, 1, 1]);
      await pollUntil(() => agent.served().length === counts.length, "the agent to have served every call");
      expect(await attached.left()).toEqual([]);
    },
  );
});
