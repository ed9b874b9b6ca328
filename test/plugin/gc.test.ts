/** GC removes what the runtime no longer lists, and nothing else; STATUS reports whether an ADD could succeed. */
import { afterAll, afterEach, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { hostProblem } from "../support/host.ts";
import { poolChange } from "../support/ipam.ts";
import {
  failureOf,
  type Json,
  NETWORK,
  openPluginSite,
  type PluginSite,
  type Pod,
  readyCluster,
  WITHOUT_NET_ADMIN,
} from "../support/plugin-site.ts";
import { STORES } from "./stores.ts";

const NOBODY: Pod = { containerId: "", netnsName: "", netns: "", ifname: "", args: "" };

const validOf = (pods: readonly Pod[]) => pods.map(({ containerId: containerID, ifname }) => ({ containerID, ifname }));

for (const { kind, test } of STORES) {
  describe(`GC on ${kind}`, () => {
    let site: PluginSite;
    beforeAll(async () => {
      if (hostProblem() === undefined) site = await openPluginSite(kind);
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    const collect = (more: Json) => site.call("GC", NOBODY, { config: site.config(more) });
    const marks = async () => [...((await site.host.must(["ip", "-o", "link"])).match(/net\S*\/\S+/g) ?? [])].sort();
    const markOf = (pod: Pod, network = NETWORK) => `${network}/${pod.containerId}/${pod.ifname}`;

    test("removes links, addresses and endpoints of containers that are not in the list, and keeps the others", async () => {
      const [kept, gone, second] = [await site.makePod(), await site.makePod(), await site.makePod()];
      const other = { ...kept, ifname: "eth1" };
      for (const pod of [kept, gone, second, other]) await site.add(pod);
      await site.host.must(["ip", "netns", "delete", second.netnsName]);
      const lone = await site.makePod();
      await site.add(lone, { config: site.config({ name: "net.b" }) });

      expect(await collect({ "cni.dev/valid-attachments": validOf([kept]) })).toMatchObject({ code: 0, stdout: "" });
      expect(await marks()).toEqual([markOf(kept), markOf(lone, "net.b")].sort());
      const records = (await site.left()).filter((line) => /handle|workloadendpoints/.test(line));
      expect(records).toHaveLength(4);
      expect(records.every((line) => line.includes(kept.containerId) || line.includes(lone.containerId))).toBe(true);

      await site.quietly("DEL", lone, { config: site.config({ name: "net.b" }) });
      expect(await collect({ "cni.dev/attachments": [] })).toMatchObject({ code: 0, stdout: "" });
      expect(await site.left()).toEqual([]);
    });

    test("removes nothing without a list from the runtime", async () => {
      const pod = await site.makePod();
      await site.add(pod);
      const before = await site.left();

      expect(await collect({})).toMatchObject({ code: 0, stdout: "" });
      expect(await collect({ "cni.dev/valid-attachments": null })).toMatchObject({ code: 0, stdout: "" });
      expect(await site.left()).toEqual(before);
      await site.quietly("DEL", pod);
      expect(await site.left()).toEqual([]);
    });

    test("continues after an unreadable record, and reports it", async () => {
      const pod = await site.makePod();
      await site.add(pod);
      const key = resourceKey("workloadendpoints", { namespace: "default", name: "node--1-cni-broken" });
      await site.store.put([{ kind: "put", key, value: "[" }]);
      const failure = failureOf(await collect({ "cni.dev/valid-attachments": [] }));

      expect(failure.code).toBe(112);
      expect(failure.msg).toContain(key);
      expect(await site.left()).toEqual([key]);
      await site.store.remove(key);
    });

    test("keeps endpoint and addresses of a link that it cannot remove, however long the container ID", async () => {
      const pods = [await site.makePod(), await site.makePod({ containerId: "f".repeat(180) })];
      for (const pod of pods) await site.add(pod);
      const before = await site.left();
      const config = site.config({ "cni.dev/valid-attachments": [] });
      const refused = await site.call("GC", NOBODY, { config, under: WITHOUT_NET_ADMIN });

      expect(failureOf(refused)).toMatchObject({
        code: 107,
        msg: expect.stringContaining("Cannot collect everything"),
      });
      expect(await site.left()).toEqual(before);
      expect(await collect(config)).toMatchObject({ code: 0, stdout: "" });
      expect(await site.left()).toEqual([]);
    });

    test("keeps what another node left", async () => {
      const pod = await site.makePod();
      await site.add(pod, { config: site.config({ nodename: "node-2" }) });
      await site.host.must(["ip", "netns", "delete", pod.netnsName]);
      await collect({ "cni.dev/valid-attachments": [] });

      expect((await site.left()).filter((line) => /handle|workloadendpoints/.test(line))).toHaveLength(2);
      await site.quietly("DEL", pod, { config: site.config({ nodename: "node-2" }) });
      expect(await site.left()).toEqual([]);
    });
  });

  describe(`STATUS on ${kind}`, () => {
    let site: PluginSite;
    beforeAll(async () => {
      if (hostProblem() === undefined) site = await openPluginSite(kind);
    });
    afterEach(() => site?.store.put([readyCluster()]));
    afterAll(() => site?.[Symbol.asyncDispose]());

    const status = (more: Json = {}) => site.call("STATUS", NOBODY, { config: site.config(more) });

    test("succeeds if an ADD could succeed", async () => {
      expect(await status()).toMatchObject({ code: 0, stdout: "" });
      expect(await status({ ipam: HOST_LOCAL })).toMatchObject({ code: 1 });
    });

    test("keeps the node in service while the datastore is locked; ADD and DEL say try again, and both work afterwards", async () => {
      const pod = await site.makePod();
      await site.add(pod);
      await site.store.put([readyCluster(false)]);
      expect(await status()).toMatchObject({ code: 0, stdout: "" });
      const locked = {
        code: 11,
        msg: expect.stringContaining("locked"),
        details: expect.stringContaining("unlock it with"),
      };
      expect(failureOf(await site.call("ADD", await site.makePod()))).toMatchObject(locked);
      expect(failureOf(await site.call("DEL", pod))).toMatchObject(locked);
      await site.store.put([readyCluster()]);
      await site.quietly("DEL", pod);
      expect(await site.left()).toEqual([]);
    });

    test("reports an unreachable datastore; a DEL fails then, and the next one finishes", async () => {
      const elsewhere = { datastore_type: "etcdv3", etcd_endpoints: "http://127.0.0.1:9" };
      expect(failureOf(await status(elsewhere)).code).toBe(50);
      const pod = await site.makePod();
      await site.add(pod);
      expect(failureOf(await site.call("DEL", pod, { config: site.config(elsewhere) })).code).toBe(103);
      expect((await site.left()).filter((line) => line.includes("vend0"))).toEqual([]);
      await site.quietly("DEL", pod);
      expect(await site.left()).toEqual([]);
    });

    test("reports missing pools, and a missing IPAM plugin", async () => {
      await site.store.put([poolChange("blue6", "fd50::/64", { disabled: true })]);
      expect(failureOf(await status())).toMatchObject({ code: 50, msg: expect.stringContaining("IPv6") });
      await site.store.put([poolChange("blue6", "fd50::/64")]);
      const missing = failureOf(await status({ ipam: { type: "absent-ipam" } }));
      expect(missing).toMatchObject({ code: 50, msg: expect.stringContaining("absent-ipam") });
    });

    test("reports pools that exist but cannot be used, as ADD does", async () => {
      const failures: readonly (readonly [Parameters<typeof poolChange>[2], Json, number])[] = [
        [{ nodeSelector: 'rack == "a"' }, {}, 102],
        [{ allowedUses: ["Tunnel"] }, {}, 102],
        [{}, { ipam: { type: identity.ipamType, ipv4_pools: ["absent"] } }, 101],
        [{ disabled: true }, { ipam: { type: identity.ipamType, ipv4_pools: ["blue"] } }, 101],
      ];
      for (const [pool, more, code] of failures) {
        await site.store.put([poolChange("blue", "10.50.0.0/16", pool)]);
        const config = site.config(more);
        const refused = failureOf(await site.call("ADD", await site.makePod(), { config }));
        expect([pool, refused.code]).toEqual([pool, code]);
        expect(failureOf(await status(more))).toMatchObject({ code: 50, msg: refused.msg });

        // During an upgrade the caller should try again, not change the pools.
        await site.store.put([readyCluster(false)]);
        expect(failureOf(await site.call("ADD", await site.makePod(), { config })).code).toBe(11);
        await site.store.put([readyCluster()]);
      }
      await site.store.put([poolChange("blue", "10.50.0.0/16")]);
      expect(await status()).toMatchObject({ code: 0, stdout: "" });
      expect(await site.left()).toEqual([]);
    });

    test("reports how to initialize an empty etcd, and initializes an embedded datastore itself", async () => {
      await site.store.remove(resourceKey("clusterinformations", { name: "default" }));
      const pod = await site.makePod();
      const { code, stdout } = await site.call("ADD", pod);
      if (kind === "embedded") expect(code).toBe(0);
      else expect(JSON.parse(stdout)).toMatchObject({ code: 11, details: expect.stringContaining("datastore init") });
      await site.quietly("DEL", pod);
      expect(await site.left()).toEqual([]);
    });
  });
}

/** Debian's does not support STATUS, which is an error, too. */
const HOST_LOCAL = { type: "host-local", ranges: [[{ subnet: "10.88.0.0/24" }]] };
