/** The built IPAM plugin on each datastore, called as a runtime calls it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { MACHINE_ANNOTATION } from "../../src/model/machine-annotation.ts";
import { node as nodeKind } from "../../src/model/node.ts";
import { configurationChange, means, nodeChange, poolChange, request, seed } from "../support/ipam.ts";
import { IPAM_SITES, type IpamSite, judge, PLUGIN, readyCluster } from "../support/ipam-site.ts";
import { cniErrorOfRun, type PluginRun, runPlugin } from "../support/run-plugin.ts";

for (const { name, missing, start } of IPAM_SITES) {
  describe.skipIf(missing !== undefined)(`the IPAM plugin on ${name}${missing ? ` (skipped: ${missing})` : ""}`, () => {
    let site: IpamSite;
    beforeAll(async () => {
      site = await start(
        nodeChange("node-1"),
        poolChange("blue", "10.1.0.0/24"),
        poolChange("elsewhere", "10.2.0.0/24", { nodeSelector: "rack == '2'" }),
        poolChange("off", "10.3.0.0/24", { disabled: true }),
        poolChange("six", "fd00::/64"),
      );
    });
    afterAll(() => site.stop());

    interface Call {
      readonly args?: string;
      readonly ipam?: Readonly<Record<string, unknown>>;
      readonly config?: Readonly<Record<string, unknown>>;
      readonly ifname?: string | undefined;
    }
    const call = (command: string, container: string, more: Call = {}): Promise<PluginRun> =>
      runPlugin(PLUGIN, {
        env: {
          ...site.environment,
          CNI_COMMAND: command,
          CNI_CONTAINERID: container,
          CNI_IFNAME: "ifname" in more ? more.ifname : "eth0",
          CNI_ARGS: more.args,
        },
        stdin: {
          ...site.config,
          ...more.config,
          ipam: { ...(site.config["ipam"] as Readonly<Record<string, unknown>>), ...more.ipam },
        },
      });
    const add = async (container: string, more: Call = {}): Promise<readonly string[]> => {
      const run = await call("ADD", container, more);
      if (run.exitCode !== 0) throw new Error(run.stdout);
      return (JSON.parse(run.stdout) as { ips: { address: string }[] }).ips.map(({ address }) => address);
    };
    const codeOf = async (run: Promise<PluginRun>) => cniErrorOfRun(await run).code;

    test("gives an address with the length of its block, the same again, and takes it back", async () => {
      const first = await add("a");
      const again = await add("a");

      expect(first).toEqual([expect.stringMatching(/^10\.1\.0\.\d+\/26$/)]);
      expect(again).toEqual([...first]);
      expect((await call("CHECK", "a")).exitCode).toBe(0);
      expect((await call("DEL", "a")).exitCode).toBe(0);
      expect((await call("DEL", "a")).exitCode).toBe(0);
      expect(await codeOf(call("CHECK", "a"))).toBe(109);
    });

    test("gives one container ID on two nodes two addresses, and DEL and CHECK of one concern only its own", async () => {
      const elsewhere = { config: { nodename: "node-2" } };
      const [first, second] = [await add("twin"), await add("twin", elsewhere)];

      expect(second).not.toEqual(first);
      const prevResult = { cniVersion: "1.0.0", ips: first.map((address) => ({ address })) };
      expect(await codeOf(call("CHECK", "twin", { config: { ...elsewhere.config, prevResult } }))).toBe(109);
      expect((await call("DEL", "twin", elsewhere)).exitCode).toBe(0);
      expect((await call("DEL", "twin", elsewhere)).exitCode).toBe(0);
      expect(await add("twin")).toEqual([...first]);
      expect((await call("DEL", "twin")).exitCode).toBe(0);
      expect((await judge(site)).world.handles).toEqual([]);
    });

    test("refuses ADD, GC and STATUS under a node name that another machine has registered", async () => {
      const annotations = { [MACHINE_ANNOTATION]: "another-machine" };
      const value = nodeKind.write(nodeKind.make({ name: "taken", annotations }, {}));
      await seed(site.store, { kind: "put", key: resourceKey("nodes", { name: "taken" }), value });
      await openAllocator(site.store, means()).assign(request("net.theirs", { node: "taken", network: "net" }));
      const config = { nodename: "taken", "cni.dev/valid-attachments": [] };

      expect(cniErrorOfRun(await call("ADD", "ours", { config }))).toMatchObject({
        code: 7,
        msg: expect.stringContaining("another-machine"),
        details: expect.stringContaining("node register --force"),
      });
      expect(await codeOf(call("GC", "", { config }))).toBe(7);
      expect(await codeOf(call("STATUS", "", { config }))).toBe(50);
      expect((await judge(site)).world.handles.map((each) => each.handleId)).toEqual(["net.theirs"]);
      await openAllocator(site.store, means()).releaseHandle({ handle: "net.theirs", node: "taken" });
    });

    test("looks at neither CNI_IFNAME nor CNI_NETNS nor CNI_PATH", async () => {
      const addresses = await add("bare", { ifname: undefined });

      expect(addresses).toHaveLength(1);
      for (const ifname of ["eth0", "net1", "not/a name"]) expect(await add("bare", { ifname })).toEqual(addresses);
      expect((await call("CHECK", "bare", { ifname: "eth7" })).exitCode).toBe(0);
      expect((await call("DEL", "bare", { ifname: "eth9" })).exitCode).toBe(0);
      expect((await judge(site)).world.handles).toEqual([]);
    });

    test("gives both families when asked, IPv4 first", async () => {
      const addresses = await add("dual", { ipam: { assign_ipv6: "true" } });

      expect(addresses).toEqual([expect.stringMatching(/^10\./), expect.stringMatching(/^fd00::.*\/122$/)]);
      await call("DEL", "dual");
    });

    test("gives a given address as a single one, once", async () => {
      expect(await add("given", { args: "IP=10.1.0.77" })).toEqual(["10.1.0.77/32"]);
      expect(await add("given6", { args: "IgnoreUnknown=1;IP=fd00::77;OTHER=x" })).toEqual([
        expect.stringMatching(/^10\./),
        "fd00::77/128",
      ]);

      const taken = cniErrorOfRun(await call("ADD", "late", { args: "IP=10.1.0.77" }));
      expect(taken.code).toBe(104);
      expect(taken.msg).toContain('"net.given"');
      expect(await codeOf(call("ADD", "out", { args: "IP=10.3.0.1" }))).toBe(105);
      expect(await codeOf(call("ADD", "bad", { args: "IP=ten" }))).toBe(4);
      for (const each of ["given", "given6"]) await call("DEL", each);
    });

    test("draws from the pools asked for, by name or CIDR, and refuses those that do not exist", async () => {
      expect(await add("pools", { ipam: { ipv4_pools: ["elsewhere"] } })).toEqual([expect.stringMatching(/^10\.2\./)]);
      expect(await add("cidr", { ipam: { ipv4_pools: ["10.2.0.0/24"] } })).toEqual([expect.stringMatching(/^10\.2\./)]);
      for (const pool of ["green", "10.1.0.0/25", "off"]) {
        const error = cniErrorOfRun(await call("ADD", "x", { ipam: { ipv4_pools: [pool] } }));
        expect(error.code).toBe(101);
        expect(error.details).toContain("blue 10.1.0.0/24");
      }
      for (const each of ["pools", "cidr"]) await call("DEL", each);
    });

    test("gives back on GC what the runtime does not know any more, and only that", async () => {
      await add("stays");
      await add("goes");
      await add("elsewhere", { config: { nodename: "node-2" } });
      await add("other", { config: { name: "net.x" } });
      const valid = [{ containerID: "stays", ifname: "eth1" }];

      expect((await call("GC", "", { config: {} })).exitCode).toBe(0);
      expect((await judge(site)).world.handles).toHaveLength(4);
      const collected = await call("GC", "", { config: { "cni.dev/valid-attachments": valid } });

      expect(collected).toMatchObject({ exitCode: 0, stdout: "" });
      const { world, problems } = await judge(site);
      expect(world.handles.map((each) => each.handleId).sort()).toEqual(["net.elsewhere", "net.stays", "net.x.other"]);
      expect(world.handles.flatMap((each) => Object.values(each.blocks))).toEqual([1, 1, 1]);
      expect(problems).toEqual([]);
      await call("DEL", "stays");
      await call("DEL", "elsewhere", { config: { nodename: "node-2" } });
      await call("DEL", "other", { config: { name: "net.x" } });
    });

    test("gives back on DEL what an older release assigned under the container ID alone, unless it is another's", async () => {
      const allocator = openAllocator(site.store, means());
      await allocator.assign(request("old"));
      await allocator.assign(request("away", { node: "node-2" }));
      await add("old");

      expect((await call("CHECK", "old")).exitCode).toBe(0);
      for (const container of ["old", "away"]) expect((await call("DEL", container)).exitCode).toBe(0);
      const { world, problems } = await judge(site);
      expect(world.handles.map((each) => each.handleId)).toEqual(["away"]);
      expect(problems).toEqual([]);
      expect((await call("DEL", "away", { config: { nodename: "node-2" } })).exitCode).toBe(0);
      expect((await judge(site)).world.handles).toEqual([]);
    });

    test("says that it is ready, and assigns nothing while the datastore is locked", async () => {
      expect((await call("STATUS", "")).exitCode).toBe(0);
      await seed(site.store, readyCluster(false));

      expect((await call("STATUS", "")).exitCode).toBe(0);
      expect(await codeOf(call("ADD", "soon"))).toBe(11);
      expect(await codeOf(call("DEL", "soon"))).toBe(11);
      await seed(site.store, readyCluster(true));
      expect((await judge(site)).world.handles).toEqual([]);
    });

    test(`${name === "embedded" ? "initializes the datastore" : "says how to initialize the datastore"}`, async () => {
      const key = resourceKey("clusterinformations", { name: "default" });
      const { answers } = await site.store.read([{ kind: "key", key }]);
      const revision = answers[0]?.[0]?.revision ?? "";
      await site.store.commit([{ kind: "delete", key, revision }]);

      if (name === "embedded") {
        expect(await add("first")).toHaveLength(1);
        expect((await call("DEL", "first")).exitCode).toBe(0);
      } else {
        const error = cniErrorOfRun(await call("ADD", "first"));
        expect(error.code).toBe(11);
        expect(error.details).toContain("datastore init");
        // What else may be wrong with a datastore that was never made ready is of no interest.
        expect(await codeOf(call("ADD", "first", { ipam: { ipv4_pools: ["nowhere"] } }))).toBe(11);
        await seed(site.store, readyCluster(true));
      }
    });

    test("says which pools it tried and how full they are when all is given", async () => {
      await seed(site.store, poolChange("tiny", "10.9.0.0/30", { blockSize: 30 }), configurationChange({}));
      const ipam = { ipv4_pools: ["tiny"] };
      for (const each of ["t0", "t1", "t2", "t3"]) await add(each, { ipam });

      const error = cniErrorOfRun(await call("ADD", "t4", { ipam }));
      expect(error.code).toBe(102);
      expect(error.msg).toContain('pool "tiny" 10.9.0.0/30 (4 of 4 used)');
      for (const each of ["t0", "t1", "t2", "t3"]) await call("DEL", each);
      expect((await judge(site)).problems).toEqual([]);
    });
  });
}
