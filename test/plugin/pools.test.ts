/** Which pools a pod's addresses come from, and the name of its node: from the config, and from the pools themselves. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { failureOf, type Json, openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { STORES } from "./stores.ts";

const POOLS = [
  poolChange("blue", "10.61.0.0/24"),
  poolChange("red", "10.62.0.0/24"),
  poolChange("rack-a", "10.63.0.0/24", { nodeSelector: 'rack == "a"' }),
  poolChange("blue6", "fd61::/112"),
  poolChange("red6", "fd62::/112"),
  nodeChange("node-1"),
  nodeChange("node-a", { rack: "a" }),
];

for (const { kind, test } of STORES) {
  describe(`pools on ${kind}`, () => {
    let site: PluginSite;
    beforeAll(async () => {
      if (hostProblem() === undefined) site = await openPluginSite(kind, POOLS);
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    const withIpam = (ipam: Json, more: Json = {}) => ({
      config: site.config({ ipam: { type: identity.ipamType, ...ipam }, ...more }),
    });
    /** The beginnings of a pod's addresses; the pod is deleted afterwards. */
    const networksOf = async (ipam: Json, more: Json = {}) => {
      const pod = await site.makePod();
      const { ips } = await site.add(pod, withIpam(ipam, more));
      await site.quietly("DEL", pod, withIpam(ipam, more));
      return ips.map(({ address }) => /^(10\.\d+|fd\d+)/.exec(address)?.[0]);
    };

    test("are those in the config, by name or by CIDR, for each family", async () => {
      expect(await networksOf({ ipv4_pools: ["red"] })).toEqual(["10.62"]);
      expect(await networksOf({ ipv4_pools: ["10.61.0.0/24"] })).toEqual(["10.61"]);
      const both = { assign_ipv6: "true", ipv4_pools: ["blue"], ipv6_pools: ["red6"] };
      expect(await networksOf(both)).toEqual(["10.61", "fd62"]);
      expect(await networksOf({ ...both, assign_ipv6: "false" })).toEqual(["10.61"]);
      expect(await networksOf({ ...both, assign_ipv4: "false" })).toEqual(["fd62"]);
    });

    test("must exist, with this exact CIDR, and be of the right family", async () => {
      for (const pool of ["green", "10.61.0.0/25", "blue6"]) {
        const failure = failureOf(await site.call("ADD", await site.makePod(), withIpam({ ipv4_pools: [pool] })));
        expect([pool, failure.code]).toEqual([pool, 101]);
      }
      expect(await site.left()).toEqual([]);
    });

    test("are by default those that select the node", async () => {
      await site.store.put([
        poolChange("blue", "10.61.0.0/24", { disabled: true }),
        poolChange("red", "10.62.0.0/24", { disabled: true }),
      ]);
      expect(await networksOf({}, { nodename: "node-a" })).toEqual(["10.63"]);
      expect(failureOf(await site.call("ADD", await site.makePod(), withIpam({}))).code).toBe(102);
      await site.store.put(POOLS.slice(0, 2));
      expect(await site.left()).toEqual([]);
    });

    test("may change: running containers keep their addresses", async () => {
      const pod: Pod = await site.makePod();
      const first = await site.add(pod, withIpam({ ipv4_pools: ["blue"] }));
      await site.store.put([poolChange("blue", "10.61.0.0/24", { disabled: true })]);

      expect(await site.add(pod, withIpam({}))).toEqual(first);
      await site.quietly("CHECK", pod, withIpam({}, { prevResult: first }));
      await site.store.put(POOLS.slice(0, 1));
      await site.quietly("DEL", pod, withIpam({}));
      expect(await site.left()).toEqual([]);
    });
  });

  describe(`node name on ${kind}`, () => {
    test("is the one in the config, else in the agent's file, else the host name", async () => {
      await using site = await openPluginSite(kind);
      const nodeOf = async (more: Json) => {
        const pod = await site.makePod();
        await site.add(pod, { config: site.config(more) });
        const endpoint = [...(await site.store.list())].find(([key]) => key.includes("/workloadendpoints/"));
        await site.quietly("DEL", pod, { config: site.config(more) });
        return JSON.parse(endpoint?.[1] ?? "{}").spec.node;
      };
      const hostName = (await site.host.must(["cat", "/proc/sys/kernel/hostname"])).trim().toLowerCase();

      expect(await nodeOf({ nodename: "given" })).toBe("given");
      expect(await nodeOf({ nodename: undefined })).toBe(hostName);
      site.host.writeFile(`${identity.stateDirectory}/nodename`, "of-file\n");
      expect(await nodeOf({ nodename: undefined })).toBe("of-file");
      expect(await nodeOf({ nodename: "given" })).toBe("given");
      expect(await site.left()).toEqual([]);
    });
  });
}
