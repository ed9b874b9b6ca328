import { describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../../test/support/admin-context.ts";
import { means, poolChange, prefix, request, seed } from "../../../../test/support/ipam.ts";
import { startFakeApi } from "../../../../test/support/kube-api/fake-api.ts";
import { LEVELS, stoppingMemory } from "../../../../test/support/stopping-memory.ts";
import type { Datastore } from "../../../datastore/datastore.ts";
import { productMapping } from "../../../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../../datastore/kube/store.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { MemoryTable } from "../../../datastore/memory/table.ts";
import { readAllEntries } from "../../../datastore/pages.ts";
import { API_VERSION } from "../../../identity.ts";
import { readAllRecords } from "../../../ipam/all-records.ts";
import { openAllocator } from "../../../ipam/allocator.ts";
import { findProblems } from "../../../ipam/invariants.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../../main/command.ts";

function ctl(store: Datastore, words: string): Promise<AdminRun> {
  return runInside(words.split(" "), { store });
}

async function begin(table = new MemoryTable(), spec: object = {}): Promise<Datastore> {
  const store = openMemory(table);
  await seed(store, poolChange("blue", "10.0.0.0/24", { natOutgoing: true, blockSize: 28, ...spec }));
  await ctl(store, "datastore init");
  for (const [index, node] of ["n1", "n2", "n3"].entries()) {
    await openAllocator(store, means()).assign(request(`net.${index}`, { node }));
  }
  await lock(store);
  return store;
}

function lock(store: Datastore, isLocked = true): Promise<AdminRun> {
  return ctl(store, `patch clusterinfo default -p {"spec":{"datastoreReady":${!isLocked}}}`);
}

const FOUR = [
  "ippool/split-blue-0 10.0.0.0/26",
  "ippool/split-blue-1 10.0.0.64/26",
  "ippool/split-blue-2 10.0.0.128/26",
  "ippool/split-blue-3 10.0.0.192/26",
  "",
].join("\n");

async function contentOf(store: Datastore): Promise<readonly unknown[]> {
  return (await readAllEntries(store, "/")).map(({ key, value }) => [key, value]);
}

describe("ipam split", () => {
  test("divides a pool, and keeps its settings, blocks and addresses", async () => {
    const store = await begin();
    const before = await readAllRecords(store);

    expect(await ctl(store, "ipam split 4 --name blue")).toEqual({ code: EXIT_OK, stdout: FOUR, stderr: "" });
    const after = await readAllRecords(store);
    expect(after.pools.map(({ length }) => length)).toEqual([26, 26, 26, 26]);
    expect([after.blocks, after.handles, after.affinities]).toEqual([before.blocks, before.handles, before.affinities]);
    expect(findProblems(after)).toEqual([]);
    const { spec, metadata } = JSON.parse((await ctl(store, "get pool split-blue-2 -o json")).stdout);
    expect(spec).toMatchObject({ cidr: "10.0.0.128/26", natOutgoing: true, blockSize: 28, disabled: false });
    expect(metadata.annotations).toBeUndefined();
    await lock(store, false);
    await openAllocator(store, means()).assign(request("net.new", { node: "n9" }));
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test("a disabled pool becomes disabled pools, chosen by its CIDR", async () => {
    const store = await begin();
    await ctl(store, 'patch pool blue -p {"spec":{"disabled":true}}');
    await ctl(store, "ipam split 2 --cidr 10.0.0.0/24");

    expect((await ctl(store, "get pools -o jsonpath={.items[*].spec.disabled}")).stdout).toBe("true true");
  });

  test("again changes nothing, by the name and by the CIDR", async () => {
    const store = await begin();
    await ctl(store, "ipam split 4 --name blue");
    const { revision } = await store.read([]);

    expect((await ctl(store, "ipam split 4 --name blue")).stdout).toBe(FOUR);
    expect((await ctl(store, "ipam split 4 --cidr 10.0.0.0/24")).stdout).toBe(FOUR);
    expect((await store.read([])).revision).toBe(revision);
    expect((await ctl(store, "ipam split 2 --name blue")).code).toBe(EXIT_FAILED);
  });

  test("--dry-run writes nothing", async () => {
    const store = await begin();
    const { revision } = await store.read([]);
    const { stdout } = await ctl(store, "ipam split 4 --name blue --dry-run");

    expect(stdout).toContain("ippool/split-blue-3 10.0.0.192/26 (dry run)\n");
    expect((await store.read([])).revision).toBe(revision);
  });

  for (const level of LEVELS) {
    test(`stopped after any write and run again, it ends as an undisturbed run does (${level})`, async () => {
      const undisturbed = await begin();
      await ctl(undisturbed, "ipam split 4 --name blue");
      const expected = await contentOf(undisturbed);
      let stops = 0;
      for (let after = 0; ; after += 1) {
        const table = new MemoryTable();
        const store = await begin(table);
        const { code } = await ctl(stoppingMemory(table, level, after), "ipam split 4 --name blue");
        if (code === EXIT_OK) break;
        stops += 1;

        expect((await ctl(store, "ipam split 4 --name blue")).stdout).toBe(FOUR);
        expect(await contentOf(store)).toEqual(expected);
      }
      // The mark, four parts, the deletion; and before the first of them.
      expect(stops).toBe(7);
    });
  }

  test("another number is refused once it has begun", async () => {
    const table = new MemoryTable();
    const store = await begin(table);
    await ctl(stoppingMemory(table, "one object", 2), "ipam split 4 --name blue");
    const { code, stderr } = await ctl(store, "ipam split 2 --name blue");

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("run it again with 4");
  });

  test("refuses before it writes: no lock, too many parts, a pool of the name of a part", async () => {
    const store = await begin();
    const refusal = async (words: string) => (await ctl(store, words)).stderr;

    expect(await refusal("ipam split 32 --name blue")).toContain("use at most 16");
    expect(await refusal("ipam split 2 --name none")).toContain("pools: blue (10.0.0.0/24)");
    await ctl(store, "ipam split 2 --name blue --dry-run");
    await seed(store, poolChange("split-blue-1", "10.9.0.0/24"));
    expect(await refusal("ipam split 4 --name blue")).toContain("10.9.0.0/24, not 10.0.0.64/26");
    await lock(store, false);
    expect(await refusal("ipam split 4 --name blue")).toContain("not locked");
    expect((await ctl(store, "get pool blue -o jsonpath={.spec.disabled}")).stdout).toBe("false");
  });

  test("in the orchestrator's API the parts are protected as the pool was", async () => {
    const api = startFakeApi();
    let marks = 0;
    const mappings = productMapping(() => String(++marks));
    const store = openKubeStore({ api: api.connect(), mappings, close: async () => {} });
    await ctl(store, "datastore init");
    const pool = { apiVersion: API_VERSION, kind: "IPPool", metadata: { name: "blue" }, spec: { cidr: "10.0.0.0/24" } };
    await runInside(["apply", "-f", "-"], { store, stdin: JSON.stringify(pool) });
    await openAllocator(store, means()).assign(request("net.a"));
    const path = `/apis/${API_VERSION}/ippools`;
    const { finalizers } = api.object(`${path}/blue`)?.metadata ?? {};
    await lock(store);

    expect((await ctl(store, "ipam split 2 --name blue")).stderr).toBe("");
    expect(finalizers).toHaveLength(1);
    expect(api.object(`${path}/split-blue-1`)?.metadata["finalizers"]).toEqual(finalizers);
    expect(api.object(`${path}/blue`)).toBeUndefined();
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test.each([
    "3 --name blue",
    "1 --name blue",
    "x --name blue",
    "--name blue",
    "2",
    "2 --name a --cidr 10.0.0.0/8",
    "2 --cidr x",
    "2 3 --name a",
  ])("%s is wrong usage", async (words) => {
    expect((await ctl(openMemory(), `ipam split ${words}`)).code).toBe(EXIT_USAGE);
  });

  test("of IPv6 pools too", async () => {
    const store = await begin();
    await seed(store, poolChange("six", "fd00::/112"));

    expect((await ctl(store, "ipam split 2 --name six")).stdout).toBe(
      "ippool/split-six-0 fd00::/113\nippool/split-six-1 fd00::8000/113\n",
    );
    expect(prefix("fd00::8000/113").length).toBe(113);
  });
});
