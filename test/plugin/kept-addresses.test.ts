/** Addresses of a pool that keeps them: a pod, or a named container, gets its own again, by the built plugin. */
import { afterEach, beforeEach, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { readBlock } from "../../src/model/ipam-block.ts";
import { type KeptAddress, keptOf } from "../../src/model/kept-address.ts";
import { parseKey } from "../../src/model/keys.ts";
import { bootNow, setBootTime } from "../support/boot-time.ts";
import { hostProblem } from "../support/host.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { failureOf, openPluginSite, type PluginSite, type Pod, WITHOUT_NET_ADMIN } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { STORES } from "./stores.ts";

const RECORDS = [
  poolChange("keeps", "10.50.0.0/24", { keepAddresses: true, keepFor: "2h" }),
  poolChange("keeps6", "fd50::/112"),
  nodeChange("node-1"),
  nodeChange("node-2"),
];
const DB = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=db-0";
const WEB = "IgnoreUnknown=1;K8S_POD_NAME=web";

for (const { kind, test } of STORES) {
  describe(`kept addresses on ${kind}`, () => {
    let site: PluginSite;
    beforeEach(async () => {
      if (hostProblem() === undefined) site = await openPluginSite(kind, RECORDS);
    });
    afterEach(() => site?.[Symbol.asyncDispose]());

    const on = (node: string) => ({ config: site.config({ nodename: node }) });
    const add = async (pod: Pod, node = "node-1") =>
      (await site.add(pod, on(node))).ips.map(({ address }) => address.split("/")[0] ?? "");
    const del = (pod: Pod, node = "node-1") => site.quietly("DEL", pod, on(node));
    const kept = async (): Promise<readonly KeptAddress[]> =>
      [...(await site.store.list())].flatMap(([key, value]) => {
        if (parseKey(key)?.kind !== "block") return [];
        const { allocations, attributes } = readBlock(value, key);
        return allocations.flatMap((index) => (index === undefined ? [] : (keptOf(attributes[index]) ?? [])));
      });

    test("a container by its name on its node, both families; others get others", async () => {
      const [first, other, second] = [
        await site.makePod({ args: WEB }),
        await site.makePod(),
        await site.makePod({ args: WEB }),
      ];
      const own = await add(first);
      expect(own).toHaveLength(2);
      expect((await kept()).map(({ keepForSeconds }) => keepForSeconds).toSorted()).toEqual([7200, 86400]);
      await del(first);
      expect((await kept()).map(({ user }) => user)).toEqual([undefined, undefined]);
      const others = await add(other);

      expect(await add(second)).toEqual(own);
      expect(others).not.toContainAnyValues(own);
      await site.quietly("CHECK", second, {
        config: site.config({ prevResult: await site.add(second, on("node-1")) }),
      });
      await del(other);
      await del(second);
      expect((await site.left()).filter((line) => !/handle|taken/.test(line))).toEqual([]);
    });

    test("a pod on another node, and the second ADD and DEL of each change nothing", async () => {
      const [first, second] = [await site.makePod({ args: DB }), await site.makePod({ args: DB })];
      const own = await add(first);
      expect(await add(first)).toEqual(own);
      await del(first);
      await del(first);

      expect(await add(second, "node-2")).toEqual(own);
      await del(first);
      expect((await kept()).map(({ user }) => user?.node)).toEqual(["node-2", "node-2"]);
      await del(second, "node-2");
    });

    test("a pod whose former container still runs is refused with code 11, which names it; a DEL lets it in", async () => {
      const [first, second] = [await site.makePod({ args: DB }), await site.makePod({ args: DB })];
      const own = await add(first);
      const failure = failureOf(await site.call("ADD", second, on("node-2")));

      expect(failure.code).toBe(11);
      for (const text of [...own, first.containerId, '"node-1"', "shop/db-0"]) expect(failure.msg).toContain(text);
      expect(failure.details).toContain("ipam release");
      await del(first);
      expect(await add(second, "node-2")).toEqual(own);
      await del(second, "node-2");
    });

    test("after a lost DEL the same host gives them to the next container: once no ADD of the former one can be in progress", async () => {
      const [first, second] = [await site.makePod({ args: DB }), await site.makePod({ args: DB })];
      await becomeOwn();
      const own = await add(first);
      await lose(first);
      // An ADD might be in progress: its link is not there yet.
      expect(failureOf(await site.call("ADD", second, on("node-1"))).code).toBe(11);
      await ageBlocks();

      expect(await add(second)).toEqual(own);
      expect((await kept()).map(({ user }) => user?.containerId)).toEqual([second.containerId, second.containerId]);
      await del(second);
    });

    for (const args of [DB, WEB]) {
      test(`after a lost DEL and a reboot the same host gives them to the next container at once (${args})`, async () => {
        const [first, second] = [await site.makePod({ args }), await site.makePod({ args })];
        await becomeOwn();
        const own = await add(first);
        await lose(first);
        await bootNow(site.host);

        expect(await add(second)).toEqual(own);
        expect((await kept()).map(({ user }) => user?.containerId)).toEqual([second.containerId, second.containerId]);
        // The endpoint of a container without a pod has its ID in its name.
        expect(JSON.stringify([...(await site.store.list())])).not.toContain(first.containerId);
        await del(second);
      });
    }

    test("a failed ADD frees what is new, and lets what waited wait", async () => {
      const [first, second] = [await site.makePod({ args: DB }), await site.makePod({ args: DB })];
      // It fails at the link, after the addresses were assigned.
      const fails = { ...on("node-1"), under: WITHOUT_NET_ADMIN };
      expect((await site.call("ADD", first, fails)).code).not.toBe(0);
      expect(await kept()).toEqual([]);
      const own = await add(first);
      await del(first);
      const waiting = await kept();

      expect((await site.call("ADD", second, fails)).code).not.toBe(0);
      const after = await kept();
      expect(after.map(({ user }) => user)).toEqual([undefined, undefined]);
      // They were taken in between.
      expect(after.map(({ since }) => since)).not.toEqual(waiting.map(({ since }) => since));
      expect(await add(second)).toEqual(own);
      await del(second);
    });

    test("GC of the runtime ends the use of containers that are gone, and keeps what waits", async () => {
      const [first, second] = [await site.makePod({ args: DB }), await site.makePod({ args: DB })];
      const own = await add(first);
      const collect = { config: site.config({ "cni.dev/valid-attachments": [] }) };
      await site.quietly("GC", first, collect);
      expect((await kept()).map(({ user }) => user)).toEqual([undefined, undefined]);
      await site.quietly("GC", first, collect);

      expect(await add(second, "node-2")).toEqual(own);
      await del(second, "node-2");
    });

    /** Nobody calls DEL. The kernel removes the links some time later. */
    const lose = async ({ netnsName }: Pod) => {
      await site.host.must(["ip", "netns", "delete", netnsName]);
      const links = () => site.host.must(["ip", "-o", "link"]);
      await pollUntil(async () => !(await links()).includes(identity.interfacePrefix), "the kernel to remove the link");
    };
    /** The node was registered long ago by this machine. */
    const becomeOwn = async () => {
      if (kind === "embedded") return;
      site.host.writeFile(`${identity.stateDirectory}/machine-id`, "this-machine\n");
      const { name, cniVersion, ...plugin } = site.config();
      site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
      await site.host.must([builtProgram(identity.adminTool), "node", "register"]);
    };
    /** As if the addresses had been assigned an hour ago, after the boot of the host and the registration of the node. */
    const ageBlocks = async () => {
      const past = (minutes: number) => new Date(Date.now() - minutes * 60_000);
      await setBootTime(site.host, past(180));
      for (const [key, value] of await site.store.list()) {
        const aged =
          parseKey(key)?.kind === "block"
            ? value.replaceAll(/("timestamp":\s*")[^"]*"/g, `$1${past(60).toISOString()}"`)
            : value.replace(/(machine-since":\s*")[^"]*"/, `$1${past(120).toISOString()}"`);
        if (aged !== value) await site.store.put([{ kind: "put", key, value: aged }]);
      }
    };
  });
}
