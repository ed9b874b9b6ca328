/** A locked datastore: nobody changes its IPAM data, whoever asks and however late the lock comes. */
import { describe, expect, test } from "bun:test";
import { copyingMemory } from "../../test/support/copying-memory.ts";
import { address, means, nodeChange, poolChange, prefix, request, seed, textsOf } from "../../test/support/ipam.ts";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { storeAround } from "../../test/support/wrapped-store.ts";
import type { Change, Datastore, Entry } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { clusterInformation } from "../model/cluster-information.ts";
import { resourceKey } from "../model/keys.ts";
import { UPGRADE_LOCK_ANNOTATION } from "../model/upgrade-lock-annotation.ts";
import { type Allocator, openAllocator } from "./allocator.ts";
import { DatastoreLocked, readyForReleasing, WANTED_CLUSTER } from "./cluster.ts";
import type { Alongside } from "./commit-loop.ts";
import { respectingLock } from "./respecting-lock.ts";

const NODE = "node-1";

function readiness(datastoreReady: boolean, annotations: Readonly<Record<string, string>> = {}): Change {
  const key = resourceKey("clusterinformations", { name: "default" });
  const information = clusterInformation.make({ name: "default", annotations }, { datastoreReady });
  return { kind: "put", key, value: clusterInformation.write(information) };
}

/** One address is in use. */
async function cluster() {
  const table = new MemoryTable();
  const store = openMemory(table);
  await seed(store, readiness(true), nodeChange(NODE), poolChange("blue", "10.0.0.0/29", { blockSize: 29 }));
  const allocator = openAllocator(store, means());
  const given = await allocator.assign(request("net.first"));
  expect(textsOf(given)).toEqual(["10.0.0.0"]);
  return { table, store, allocator, lock: () => seed(store, readiness(false)) };
}

/** As the plugins do it. */
const WITH_OWN_CHECK: Alongside<unknown> = {
  wanted: [WANTED_CLUSTER],
  changes: ([lock]) => readyForReleasing(lock),
};

const CHANGES: readonly (readonly [string, (allocator: Allocator) => Promise<unknown>])[] = [
  ["an ADD", (allocator) => allocator.assign(request("net.new"), WITH_OWN_CHECK)],
  ["a DEL", (allocator) => allocator.releaseHandle({ handle: "net.first", node: NODE }, WITH_OWN_CHECK)],
  ["an assignment to a tunnel", (allocator) => allocator.assign(request("tunnel"))],
  ["the release of a tunnel", (allocator) => allocator.releaseHandle({ handle: "net.first", node: NODE })],
  [
    "the release of a leaked address",
    (allocator) => allocator.releaseAddresses([{ address: address("10.0.0.0"), handle: "net.first" }]),
  ],
  [
    "the release of a block",
    (allocator) => allocator.releaseAffinity({ node: NODE, block: prefix("10.0.0.0/29"), inUse: "release" }),
  ],
];

async function everything(store: Datastore) {
  const { answers } = await store.read([{ kind: "prefix", prefix: "/" }]);
  return (answers[0] ?? []).filter(({ key }) => !key.includes("clusterinformations"));
}

describe("the message about the lock", () => {
  const refusal = async (annotations: Readonly<Record<string, string>>) => {
    const { store, allocator } = await cluster();
    await seed(store, readiness(false, annotations));
    return rejectionOf(() => allocator.assign(request("net.new"), WITH_OWN_CHECK));
  };

  test("does not say how to unlock it while an upgrade has locked it", async () => {
    const { details } = await refusal({ [UPGRADE_LOCK_ANNOTATION]: "2026-01-02T03:04:05.000Z" });

    expect(details).not.toContain("datastoreReady");
    expect(details).toMatch(/upgrade is in progress.*upgrade status.*upgrade apply.*upgrade rollback/);
  });

  test("says how to unlock it if it was locked otherwise, and left so", async () => {
    expect((await refusal({})).details).toContain(
      `patch clusterinformation default -p '{"spec":{"datastoreReady":true}}'`,
    );
  });
});

describe("a locked datastore", () => {
  test.each(CHANGES)("refuses %s, and keeps everything", async (_, change) => {
    const { store, allocator, lock } = await cluster();
    await lock();
    const before = await everything(store);

    expect(await rejectionOf(() => change(allocator))).toBeInstanceOf(DatastoreLocked);
    expect(await everything(store)).toEqual(before);
  });

  test.each(CHANGES)("refuses %s that had read that it is not locked", async (_, change) => {
    const { store, lock } = await cluster();
    const before = await everything(store);
    let isLate = true;
    const late = storeAround(store, {
      commit: async (changes) => {
        if (isLate) await lock();
        isLate = false;
        return store.commit(changes);
      },
    });

    expect(await rejectionOf(() => change(openAllocator(late, means())))).toBeInstanceOf(DatastoreLocked);
    expect(await everything(store)).toEqual(before);
  });

  test.each(CHANGES)("refuses %s by a node agent whose copies are older than the lock", async (_, change) => {
    const { table, store, lock } = await cluster();
    const agent = await copyingMemory(openMemory(table, { atomicity: "one object" }), table);
    await lock();
    const before = await everything(store);

    expect(await rejectionOf(() => change(openAllocator(agent, means())))).toBeInstanceOf(DatastoreLocked);
    expect(await everything(store)).toEqual(before);
    await agent.close();
  });

  test("keeps what an ADD had written of its addresses when the lock came, for the DEL that follows", async () => {
    const { table, store, lock } = await cluster();
    const oneObject = openMemory(table, { atomicity: "one object" });
    let isFirst = true;
    let atLock: Entry[] = [];
    const late = storeAround(oneObject, {
      commit: async (changes) => {
        if (!isFirst) return oneObject.commit(changes);
        isFirst = false;
        await oneObject.commit(changes);
        await lock();
        atLock = await everything(store);
        return { ok: false, reason: "stale", key: changes.at(-1)?.key ?? "", partly: true };
      },
    });
    const before = await everything(store);
    const allocator = openAllocator(late, means());
    const refusal = await rejectionOf(() => allocator.assign(request("net.new"), WITH_OWN_CHECK));

    expect(refusal).toBeInstanceOf(DatastoreLocked);
    expect(atLock.length).toBeGreaterThan(before.length);
    expect(await everything(store)).toEqual(atLock);
    await seed(store, readiness(true));
    expect(await allocator.releaseHandle({ handle: "net.new", node: NODE }, WITH_OWN_CHECK)).toHaveLength(1);
    expect((await everything(store)).map(({ key }) => key)).toEqual(before.map(({ key }) => key));
  });

  test("refuses commits of a search for leaks, and can be read", async () => {
    const { store, allocator, lock } = await cluster();
    await lock();
    const guarded = respectingLock(store);
    const deletion = (await everything(store)).map(({ key, revision }): Change => ({ kind: "delete", key, revision }));

    expect(await rejectionOf(() => guarded.commit(deletion))).toBeInstanceOf(DatastoreLocked);
    expect(await allocator.held({ handle: "net.first", node: NODE })).toHaveLength(1);
    await seed(store, readiness(true));
    expect(await guarded.commit(deletion.slice(0, 1))).toMatchObject({ ok: true });
  });

  test("is not committed to by calls that have nothing to change", async () => {
    const { store } = await cluster();
    let commits = 0;
    const counting = storeAround(store, {
      commit: (changes) => {
        commits += 1;
        return store.commit(changes);
      },
    });
    const allocator = openAllocator(counting, means());

    expect(textsOf(await allocator.assign(request("net.first"), WITH_OWN_CHECK))).toEqual(["10.0.0.0"]);
    expect(await allocator.releaseHandle({ handle: "net.absent", node: NODE }, WITH_OWN_CHECK)).toEqual([]);
    expect(commits).toBe(0);
  });
});
