import { describe, expect, test } from "bun:test";
import { means, prefix, request, textsOf } from "../../../test/support/ipam.ts";
import { type Around, startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { FLOW_SETTINGS, fillEtcd, resourceValue } from "../../../test/support/migration-source.ts";
import { proofSize } from "../../../test/support/proof-size.ts";
import { rejectionOf } from "../../../test/support/thrown-by.ts";
import { productMapping } from "../../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { formatAddress } from "../../ip/address.ts";
import { readAllRecords } from "../../ipam/all-records.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { findProblems } from "../../ipam/invariants.ts";
import { readBlock, writeBlock } from "../../model/ipam-block.ts";
import { keepHandle, keptOf } from "../../model/kept-address.ts";
import { blockKey, resourceKey } from "../../model/keys.ts";
import { changeRecord } from "../engine/change-record.ts";
import { withLockTime } from "../former-storage/lock.ts";
import { readRecords } from "../former-storage/stored-records.ts";
import { MIGRATED_PREFIXES } from "./convert.ts";
import { decodeExport, type ExportFile, encodeExport } from "./export-file.ts";
import { checkData, exportData, importData, setLock } from "./migrate.ts";

const ENTRY = resourceKey("clusterinformations", { name: "default" });

async function exported(): Promise<{ readonly file: ExportFile; readonly addresses: ReadonlyMap<string, string> }> {
  const store = openMemory();
  const addresses = await fillEtcd(store);
  await setLock(store, "locked");
  const result = await exportData(store, "run1");
  if (!result.ok) throw new Error(JSON.stringify(result.obstacles));
  return { file: decodeExport(encodeExport(result.file)), addresses };
}

async function startCluster(nodes: readonly string[] = ["one", "two"]) {
  const api = startFakeApi();
  for (const name of nodes) {
    const body = JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name, labels: { role: "w" } } });
    await api.connect().request({ method: "POST", path: "/api/v1/nodes", body });
  }
  let mark = 0;
  const open = (around?: Around) =>
    openKubeStore({ api: api.connect(around), mappings: productMapping(() => `m${++mark}`), close: async () => {} });
  return { api, open };
}

const quiet = () => {};

/** Of pod `shop/NAME`, in the pool that keeps addresses. */
function keptRequest(pod: string, node: string) {
  const handle = keepHandle({ network: "pods", namespace: "shop", identity: `pod/${pod}` });
  return {
    ...request(`pods.c-${pod}`, { node, network: "pods", attributes: { pod, namespace: "shop" } }),
    addressRequests: [{ kind: "automatic", family: 4, pools: ["stay"] }],
    keep: { handle, containerId: `c-${pod}`, when: "if its pool does", title: `pod "shop/${pod}"` },
  } as const;
}

describe("the lock of an upgrade", () => {
  test("is not ended by the command of a migration", async () => {
    const store = openMemory();
    await fillEtcd(store);
    await setLock(store, "locked");
    await changeRecord(store, ENTRY, (value) => withLockTime(value ?? "", new Date(0)));
    const refused = await rejectionOf(() => setLock(store, "unlocked"));

    expect([refused.kind, refused.details]).toEqual(["resource-in-use", expect.stringContaining("upgrade apply")]);
    expect(await setLock(store, "locked")).toBe("unchanged");
  });
});

describe("an export", () => {
  test("needs a locked datastore", async () => {
    const store = openMemory();
    await fillEtcd(store);
    expect((await rejectionOf(() => exportData(store, "run1"))).details).toContain("datastore migrate lock");
  });

  test("renames nodes everywhere, and leaves out what the API has itself", async () => {
    const { file } = await exported();
    const text = encodeExport(file);
    expect(text).not.toContain("Host_One");
    expect(text).not.toContain("host-two");
    const names = file.records.map(({ what }) => what);
    expect(names).toContain('NodeAgentConfiguration "node.one"');
    expect(names).toContain('IPAMHandle "vxlan-tunnel-addr-one"');
    expect(names).toContain('IPAddressList "web"');
    expect(text).toContain("tenant == 'a'");
    expect(names.join()).not.toContain("knp.default");
    expect(names.join()).not.toContain("kcnp.");
    expect(names.join()).not.toMatch(/Profile|ContainerLabels/);
    expect(file.nodes.map(({ what }) => what)).toEqual(['Node "one"', 'Node "two"']);
  });

  test("names what it leaves out, and stops at a node that is unknown to the orchestrator", async () => {
    const store = openMemory();
    await fillEtcd(store);
    await setLock(store, "locked");
    const result = await exportData(store, "run1");
    expect(result.ok && result.notes.join()).toContain('Profile "by-hand"');
    expect(result.ok && result.notes.join()).toContain('ContainerLabels "network.pods" is left out');
    const key = resourceKey("nodes", { name: "third" });
    await store.commit([{ kind: "create", key, value: resourceValue("Node", "third", {}) }]);
    expect(await exportData(store, "run1")).toMatchObject({
      ok: false,
      obstacles: [{ message: expect.stringContaining('Node "third"'), remedy: expect.stringContaining("orchRefs") }],
    });
  });

  test("that is cut off or of another format is not read", async () => {
    const text = encodeExport((await exported()).file);
    const lines = text.trimEnd().split("\n");
    for (const broken of [
      "",
      "{}",
      lines.slice(0, -1).join("\n"),
      text.replace('"format":1', '"format":2'),
      `${text}{}`,
    ]) {
      expect(() => decodeExport(broken)).toThrow("Cannot read the export");
    }
  });
});

describe("an import", () => {
  test("keeps every address; after the unlock no new pod gets one of them", async () => {
    const { file, addresses } = await exported();
    const { api, open } = await startCluster();
    const store = open();
    expect(await importData(store, file, quiet)).toEqual([]);
    expect(await checkData(store, file)).toEqual([]);
    const settings = resourceKey("nodeagentconfigurations", { name: "node.one" });
    const { answers } = await store.read([{ kind: "key", key: settings }]);
    expect(JSON.parse(answers[0]?.[0]?.value ?? "{}").spec).toMatchObject(FLOW_SETTINGS);
    expect(api.object("/api/v1/nodes/one")?.metadata["labels"]).toEqual({ role: "w" });
    expect(JSON.stringify(api.object("/api/v1/nodes/one"))).toContain("192.0.2.1/24");

    const allocator = openAllocator(store, means());
    await expect(allocator.assign(request("early", { node: "one" }))).rejects.toThrow();
    expect(await setLock(store, "unlocked")).toBe("changed");
    for (const [handle, address] of addresses) {
      const held = await Promise.all(["one", "two"].map((node) => allocator.held(request(handle, { node }))));
      expect([...new Set(held.flat().map((each) => formatAddress(each.address)))]).toEqual([address]);
    }
    expect(findProblems(await readAllRecords(store))).toEqual([]);
    const used = new Set(addresses.values());
    for (let index = 0; index < 12; index += 1) {
      const node = index % 2 === 0 ? "one" : "two";
      const [address = ""] = textsOf(await allocator.assign(request(`new-${index}`, { node })));
      expect(used.has(address)).toBe(false);
      used.add(address);
    }
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test("carries what is kept for pods, and what rests, which the check compares", async () => {
    const source = openMemory();
    await fillEtcd(source);
    const spec = { cidr: "10.30.0.0/28", blockSize: 28, cooldownSeconds: 600, keepAddresses: true, keepFor: "2h" };
    const key = resourceKey("ippools", { name: "stay" });
    await source.commit([{ kind: "create", key, value: resourceValue("IPPool", "stay", spec) }]);
    const used = keptRequest("db-0", "host-two");
    const waiting = keptRequest("db-1", "Host_One");
    const before = openAllocator(source, means());
    for (const each of [used, waiting]) await before.assign(each);
    await before.assign(request("pods.other", { node: "host-two", addressRequests: used.addressRequests }));
    await before.releaseHandle({ handle: "pods.other", node: "host-two" });
    await before.releaseHandle({
      ...waiting,
      kept: { containerId: waiting.keep.containerId, handle: waiting.keep.handle },
    });
    await setLock(source, "locked");
    const result = await exportData(source, "run1");
    if (!result.ok) throw new Error(JSON.stringify(result.obstacles));
    const store = (await startCluster()).open();
    const file = decodeExport(encodeExport(result.file));
    await importData(store, file, quiet);
    expect(await checkData(store, file)).toEqual([]);

    const { answers } = await store.read([{ kind: "key", key }]);
    expect(JSON.parse(answers[0]?.[0]?.value ?? "{}").spec).toMatchObject(spec);
    const entries = await readRecords(store, MIGRATED_PREFIXES);
    const entry = entries.get(blockKey(prefix("10.30.0.0/28")));
    if (entry === undefined) throw new Error("there is no block");
    const block = readBlock(entry.value, entry.key);
    expect(block.attributes.map(keptOf)).toMatchObject([
      { handle: used.keep.handle, keepForSeconds: 7200, user: { containerId: "c-db-0", node: "two" } },
      { handle: waiting.keep.handle, keepForSeconds: 7200, lastNode: "one" },
    ]);
    expect([block.cooldownSeconds, Object.keys(block.released ?? {})]).toEqual([600, ["2"]]);
    const { released: _, ...forgotten } = block;
    await store.commit([{ kind: "update", key: entry.key, value: writeBlock(forgotten), revision: entry.revision }]);
    expect(await checkData(store, file)).toEqual([expect.stringContaining('"released" of 10.30.0.0/28')]);
    await importData(store, file, quiet);

    await setLock(store, "unlocked");
    const after = openAllocator(store, means());
    const again = await after.assign(keptRequest("db-1", "two"));
    expect([textsOf(again), again.addresses[0]?.kept]).toEqual([["10.30.0.1"], "again"]);
  });

  test("is refused by the data of another cluster, and once the datastore is unlocked", async () => {
    const { file } = await exported();
    const { open } = await startCluster();
    const store = open();
    await importData(store, file, quiet);
    const other = { ...file, clusterGUID: "another" };
    expect((await rejectionOf(() => importData(store, other, quiet))).kind).toBe("resource-exists");
    await setLock(store, "unlocked");
    expect((await rejectionOf(() => importData(store, file, quiet))).message).toContain("unlocked already");
  });

  test("leaves out a node that the orchestrator does not have", async () => {
    const { file } = await exported();
    const { open } = await startCluster(["one"]);
    expect(await importData(open(), file, quiet)).toEqual([
      'Node "two" is left out: the orchestrator has no such node',
    ]);
  });

  test("finds a single address that differs", async () => {
    const { file } = await exported();
    const { open } = await startCluster();
    const store = open();
    await importData(store, file, quiet);
    const records = await readRecords(store, MIGRATED_PREFIXES);
    const block = [...records.values()].find(({ key, value }) => key.includes("/block/10.10") && value.includes("p0"));
    if (block === undefined) throw new Error("there is no block");
    const value = block.value.replace('"p0"', '"someone-else"');
    await store.commit([{ kind: "update", key: block.key, value, revision: block.revision }]);
    const differences = await checkData(store, file);
    expect(differences).toHaveLength(1);
    expect(differences[0]).toMatch(/10\.10\.0\.\d+ is of handle .*someone-else/);
    await importData(store, file, quiet);
    expect(await checkData(store, file)).toEqual([]);
  });

  test("killed at any write and started again, it ends as if it had not been; then it writes nothing", async () => {
    const { file } = await exported();
    const count = async (cluster: Awaited<ReturnType<typeof startCluster>>) => {
      let writes = 0;
      const store = cluster.open(async ({ method }, send) => {
        if (method !== "GET") writes += 1;
        return send();
      });
      await importData(store, file, quiet);
      return writes;
    };
    const undisturbed = await startCluster();
    const total = await count(undisturbed);
    const expected = await contents(undisturbed.open());
    expect(total).toBeGreaterThan(file.records.length);
    const moments = Array.from({ length: total }, (_, index) => index + 1);
    for (const write of moments.filter((each) => each % proofSize({ everyDay: 3, soak: 1 }) === 0)) {
      for (const when of ["before", "after"] as const) {
        const cluster = await startCluster();
        let writes = 0;
        const killed = cluster.open(async ({ method }, send) => {
          if (method === "GET") return send();
          writes += 1;
          if (writes === write && when === "after") send();
          if (writes >= write) throw new Error("killed");
          return send();
        });
        await expect(importData(killed, file, quiet)).rejects.toThrow();
        await importData(cluster.open(), file, quiet);
        expect(await contents(cluster.open())).toEqual(expected);
      }
    }
    expect(await count(undisturbed)).toBe(0);
    expect(await checkData(undisturbed.open(), file)).toEqual([]);
  });
});

async function contents(store: Parameters<typeof readRecords>[0]) {
  const records = await readRecords(store, MIGRATED_PREFIXES);
  expect(records.has(ENTRY)).toBe(true);
  return Array.from(records.values(), ({ key, value }) => [
    key,
    value.replaceAll(/"uid":"[^"]*",?|"creationTimestamp":"[^"]*",?/g, ""),
  ]);
}
