/** Addresses that an older release assigned, with the container ID as handle: DEL releases them, CHECK accepts them, GC keeps them. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import type { Change } from "../../src/datastore/datastore.ts";
import { readBlock, writeBlock } from "../../src/model/ipam-block.ts";
import { handleKey, parseKey } from "../../src/model/keys.ts";
import { hostProblem } from "../support/host.ts";
import { failureOf, NETWORK, openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { STORES } from "./stores.ts";

for (const { kind, test } of STORES) {
  describe(`addresses of an older release on ${kind}`, () => {
    let site: PluginSite;
    beforeAll(async () => {
      if (hostProblem() === undefined) site = await openPluginSite(kind);
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    /** Rewrites the pod's records like a release without the network in its handles. */
    const age = async ({ containerId }: Pod, node = "node-1") => {
      const records = await site.store.list();
      const handle = `${NETWORK}.${containerId}`;
      const value = records.get(handleKey(handle)) ?? "";
      const blocks = [...records].flatMap(([key, text]): Change[] => {
        if (parseKey(key)?.kind !== "block") return [];
        const block = readBlock(text, key);
        const attributes = block.attributes.map((each) =>
          each.handleId === handle ? { handleId: containerId, secondary: { node } } : each,
        );
        return [{ kind: "put", key, value: writeBlock({ ...block, attributes }) }];
      });
      await site.store.put([...blocks, { kind: "put", key: handleKey(containerId), value }]);
      await site.store.remove(handleKey(handle));
    };

    test("are confirmed by CHECK and released by DEL, together with those of the current handle", async () => {
      const pod = await site.makePod();
      const prevResult = await site.add(pod);
      await age(pod);
      await site.quietly("CHECK", pod, { config: site.config({ prevResult }) });
      const other = { ...pod, ifname: "eth1" };
      await site.add(other);

      await site.quietly("DEL", pod);
      await site.quietly("DEL", other);
      expect(await site.left()).toEqual([]);
    });

    test("are kept if another node assigned them", async () => {
      const pod = await site.makePod();
      await site.add(pod);
      await age(pod, "node-2");
      await site.quietly("DEL", pod);

      expect((await site.left()).filter((line) => line.includes(handleKey("")))).toEqual([handleKey(pod.containerId)]);
      await site.quietly("DEL", pod, { config: site.config({ nodename: "node-2" }) });
      expect(await site.left()).toEqual([]);
    });

    test("are not collected: the handle does not contain the network", async () => {
      const pod = await site.makePod();
      await site.add(pod);
      await age(pod);
      const config = site.config({ "cni.dev/valid-attachments": [] });
      await site.quietly("GC", { ...pod, containerId: "", netns: "", ifname: "" }, { config });

      expect((await site.left()).filter((line) => line.includes(handleKey("")))).toEqual([handleKey(pod.containerId)]);
      await site.quietly("DEL", pod);
      expect(await site.left()).toEqual([]);
    });

    test("are kept if an ADD fails: it only releases what it assigned itself", async () => {
      const pod = await site.makePod();
      await site.add(pod);
      await age(pod);
      const second = { ...pod, ifname: "eth1" };
      // The kernel has no IPv6 on a link as narrow as this.
      expect(failureOf(await site.call("ADD", second, { config: site.config({ mtu: 1000 }) })).code).toBe(107);

      expect((await site.left()).filter((line) => line.includes(handleKey("")))).toEqual([handleKey(pod.containerId)]);
      await site.quietly("DEL", pod);
      expect(await site.left()).toEqual([]);
    });
  });
}
