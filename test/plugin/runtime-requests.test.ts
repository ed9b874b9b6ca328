/** What a runtime asks for (addresses and a MAC) is what the container gets, or the ADD fails and says why. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { BIN, startAgent } from "../agent/agent.ts";
import { hostProblem } from "../support/host.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { type AddResult, failureOf, type Json, openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { STORES } from "./stores.ts";

const POOLS = [
  poolChange("blue", "10.50.0.0/16"),
  poolChange("red", "10.60.0.0/16"),
  poolChange("blue6", "fd50::/64"),
  nodeChange("node-1"),
];
const MAC = "02:00:00:00:50:07";
const RANGES = { type: "host-local", ranges: [[{ subnet: "10.77.0.0/24" }], [{ subnet: "fd77::/112" }]] };

const VARIANTS = STORES.flatMap(({ kind, test }) => [
  { title: kind, kind, test, hasAgent: false },
  { title: `${kind}, with the agent`, kind, test, hasAgent: true },
]);

for (const { title, kind, test, hasAgent } of VARIANTS) {
  describe(`requests of the runtime on ${title}`, () => {
    let site: PluginSite;
    beforeAll(async () => {
      if (hostProblem() !== undefined) return;
      site = await openPluginSite(kind, POOLS);
      if (hasAgent) await startAgent(site.host);
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    const withConfig = (more: Json, ipam: Json = {}) => ({
      environment: { CNI_PATH: BIN },
      config: site.config({ ipam: { type: identity.ipamType, assign_ipv6: "true", ...ipam }, ...more }),
    });
    const addressesOf = ({ ips }: AddResult) => ips.map(({ address }) => address);

    test("are the addresses that the container gets, the other family as the config says", async () => {
      const cases: readonly (readonly [args: string, config: Json, ipam: Json, wanted: readonly RegExp[]])[] = [
        ["IP=10.50.7.7", {}, {}, [/^10\.50\.7\.7\/32$/, /^fd50::/]],
        ["IP=fd50::7", {}, {}, [/^10\./, /^fd50::7\/128$/]],
        ["IP=10.50.7.7", {}, { assign_ipv6: "false" }, [/^10\.50\.7\.7\/32$/]],
        ["", { runtimeConfig: { ips: ["10.50.7.7/16", "fd50::7"] } }, {}, [/^10\.50\.7\.7\/32$/, /^fd50::7\/128$/]],
        [
          "",
          { args: { cni: { ips: ["fd50::7"] } } },
          { assign_ipv4: "false", assign_ipv6: "false" },
          [/^fd50::7\/128$/],
        ],
        [
          "IP=10.50.7.7",
          { runtimeConfig: { ips: ["10.50.7.7"] } },
          { ipv4_pools: ["blue"] },
          [/^10\.50\.7\.7/, /^fd50/],
        ],
      ];
      for (const [args, config, ipam, wanted] of cases) {
        const pod = await site.makePod({ args });
        const result = await site.add(pod, withConfig(config, ipam));

        expect(addressesOf(result)).toEqual(wanted.map((each) => expect.stringMatching(each)));
        // The same request again, and CHECK and DEL without it.
        expect(await site.add(pod, withConfig(config, ipam))).toEqual(result);
        await site.quietly("CHECK", { ...pod, args: "" }, withConfig({ prevResult: result }, ipam));
        await site.quietly("DEL", { ...pod, args: "" }, withConfig({}, ipam));
        expect(await site.left()).toEqual([]);
      }
    });

    test("that cannot be met are refused by name, and take nothing", async () => {
      const cases: readonly (readonly [args: string, config: Json, ipam: Json, code: number, named: string])[] = [
        ["IP=10.60.0.7", {}, { ipv4_pools: ["blue"] }, 105, '"ipam.ipv4_pools"'],
        ["IP=192.0.2.9", {}, {}, 105, '"192.0.2.9"'],
        ["IP=10.50.7.7", { runtimeConfig: { ips: ["10.50.7.8"] } }, {}, 2, '"10.50.7.7" (IP of CNI_ARGS)'],
        ["", { runtimeConfig: { ips: ["10.50.7.7", "10.50.7.8"] } }, {}, 2, '"10.50.7.8" (runtimeConfig.ips[1])'],
        ["", { runtimeConfig: "ips" }, {}, 7, '"runtimeConfig" is "ips"'],
        ["", { runtimeConfig: { ips: "10.50.7.7" } }, {}, 7, '"runtimeConfig.ips" is "10.50.7.7"'],
        [
          "",
          { args: { cni: { ips: ["10.50.7.7"] } }, runtimeConfig: { ips: ["10.50.7.8"] } },
          {},
          2,
          "args.cni.ips[0]",
        ],
        ["IP=10.50.7.7;IP=10.50.7.8", {}, {}, 4, '"10.50.7.8"'],
        ["IP=10.50.7.7,fd50::7", {}, {}, 4, '"10.50.7.7,fd50::7"'],
        ["", { runtimeConfig: { ips: ["fd50::7"] } }, { ipv6_pools: ["fd51::/64"] }, 101, '"fd51::/64"'],
        ["IP=10.77.0.9", {}, RANGES, 2, '"10.77.0.9" (IP of CNI_ARGS)'],
        ["IP=fd77::9", {}, RANGES, 2, '"fd77::9" (IP of CNI_ARGS)'],
        ["", { args: { cni: { ips: ["10.77.0.9", "fd77::9"] } } }, RANGES, 2, '"10.77.0.9" (args.cni.ips[0])'],
        ["", { runtimeConfig: { ips: ["10.77.0.9/24"] } }, RANGES, 2, '"10.77.0.9" (runtimeConfig.ips[0])'],
        ["", { runtimeConfig: { aliases: { net: ["web"] } } }, {}, 2, '"runtimeConfig.aliases"'],
        ["", { RuntimeConfig: { mac: "02:00" } }, {}, 7, '"runtimeConfig.mac" "02:00"'],
        ["", { runtimeConfig: { ips: ["ten"] } }, {}, 7, '"runtimeConfig.ips[0]" is "ten"'],
        ["MAC=02:00", {}, {}, 4, 'MAC of CNI_ARGS "02:00"'],
        ["", { runtimeConfig: { mac: "03:00:00:00:00:01" } }, {}, 7, '"runtimeConfig.mac"'],
        [`MAC=${MAC}`, { runtimeConfig: { mac: "02:00:00:00:00:01" } }, {}, 7, "02:00:00:00:00:01"],
        ["", { runtimeConfig: { portMappings: [{ hostPort: 80 }] } }, {}, 2, '"runtimeConfig.portMappings"'],
      ];
      for (const [args, config, ipam, code, named] of cases) {
        const pod = await site.makePod({ args });
        const failure = failureOf(await site.call("ADD", pod, withConfig(config, ipam)));

        expect([named, failure.code, failure.msg]).toEqual([named, code, expect.stringContaining(named)]);
        await site.quietly("DEL", pod, withConfig(config, ipam));
      }
      expect(await site.left()).toEqual([]);
    });

    test("for addresses of host-local are refused and take nothing; CHECK and DEL of a container that has one ignore them", async () => {
      const before = await site.left();
      const asking = { args: { cni: { ips: ["10.77.0.2"] } }, runtimeConfig: { ips: ["fd77::2"] } };
      const refused = await site.makePod({ args: "IP=10.77.0.9" });
      expect(failureOf(await site.call("ADD", refused, withConfig(asking, RANGES))).code).toBe(2);
      expect(await site.left()).toEqual(before);

      const pod = await site.makePod();
      const result = await site.add(pod, withConfig({}, RANGES));
      const withRequest = { ...pod, args: "IP=10.77.0.2" };
      await site.quietly("CHECK", withRequest, withConfig({ ...asking, prevResult: result }, RANGES));
      await site.quietly("DEL", withRequest, withConfig(asking, RANGES));
      expect(await site.left()).toEqual(before);
    });

    test("in args.cni that nobody uses are reported: they may be meant for another plugin", async () => {
      const pod = await site.makePod();
      const { code, stderr } = await site.call("ADD", pod, withConfig({ args: { cni: { colour: "red" } } }));

      expect([code, stderr]).toEqual([0, expect.stringMatching(/\[WARNING\].*"args.cni.colour" "red" has no effect/)]);
      await site.quietly("DEL", pod, withConfig({}));
    });

    test("for a MAC are met by the link and the endpoint; CHECK compares it, DEL needs no request", async () => {
      const cases: readonly (readonly [args: string, config: Json])[] = [
        [`IgnoreUnknown=1;MAC=${MAC}`, {}],
        ["", { runtimeConfig: { mac: MAC } }],
        ["", { args: { cni: { mac: MAC } } }],
      ];
      for (const [args, config] of cases) {
        const pod = await site.makePod({ args });
        const result = await site.add(pod, withConfig(config));
        const prevResult = { prevResult: result };

        expect(result.interfaces[1]?.mac).toBe(MAC);
        expect(await site.inside(pod, ["ip", "link", "show", "eth0"])).toContain(`link/ether ${MAC} `);
        const endpoint = [...(await site.store.list())].find(([key]) => key.includes("/workloadendpoints/"));
        expect(JSON.parse(endpoint?.[1] ?? "{}").spec.mac).toBe(MAC);
        await site.inside(pod, ["ping", "-c1", "-W2", "192.0.2.1"]);

        expect(await site.add(pod, withConfig(config))).toEqual(result);
        await site.quietly("CHECK", pod, withConfig({ ...config, ...prevResult }));
        await site.quietly("CHECK", { ...pod, args: "" }, withConfig(prevResult));
        const other = { runtimeConfig: { mac: "02:00:00:00:00:01" } };
        const differing = await site.call("CHECK", { ...pod, args: "" }, withConfig({ ...other, ...prevResult }));
        expect(failureOf(differing)).toMatchObject({ code: 109, msg: expect.stringContaining("02:00:00:00:00:01") });
        await site.inside(pod, ["ip", "link", "set", "eth0", "address", "02:00:00:00:00:02"]);
        expect(failureOf(await site.call("CHECK", pod, withConfig({ ...config, ...prevResult }))).msg).toContain(
          `has MAC 02:00:00:00:00:02 instead of ${MAC}`,
        );
        await site.quietly("DEL", { ...pod, args: "" }, withConfig({}));
        expect(await site.left()).toEqual([]);
      }
    });

    test("that differ from those of the first ADD are refused until DEL", async () => {
      const pod = await site.makePod();
      const result = await site.add(pod, withConfig({ runtimeConfig: { ips: ["10.50.7.7"], mac: MAC } }));
      const mac = await site.call("ADD", pod, withConfig({ runtimeConfig: { ips: ["10.50.7.7"] } }));
      const address = await site.call("ADD", pod, withConfig({ runtimeConfig: { ips: ["10.50.7.8"], mac: MAC } }));

      expect(failureOf(mac)).toMatchObject({ code: 106, msg: expect.stringContaining(`with MAC ${MAC} instead of`) });
      expect(failureOf(address)).toMatchObject({ code: 104, msg: expect.stringContaining('already has "10.50.7.7"') });
      await site.quietly("CHECK", pod, withConfig({ prevResult: result }));
      await site.quietly("DEL", pod, withConfig({}));
      await site.add(pod, withConfig({ runtimeConfig: { ips: ["10.50.7.8"] } }));
      await site.quietly("DEL", pod, withConfig({}));
      expect(await site.left()).toEqual([]);
    });
  });
}
