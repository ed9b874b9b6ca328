import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { means, nodeChange, poolChange, request, seed } from "../../../test/support/ipam.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { formatAddress } from "../../ip/address.ts";
import { readAllRecords, readValidRecords } from "../../ipam/all-records.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { findProblems } from "../../ipam/invariants.ts";
import { blocksPrefix } from "../../model/keys.ts";
import { NODE, POOL } from "../../model/kinds.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

const HANDLE = "vxlan-tunnel-addr-node-1";
const POOL_BLUE = poolChange("blue", "10.0.0.0/24", { blockSize: 28 });
const OWNER = { handle: HANDLE, node: "node-1" };

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await seed(store, POOL_BLUE);
  const attributes = { type: "vxlanTunnelAddress" };
  await allocator().assign(request(HANDLE, { attributes, intendedUse: "Tunnel" }));
  await recordTunnel(await held());
});

const allocator = () => openAllocator(store, means());
const held = async () => (await allocator().held(OWNER)).map(({ address }) => formatAddress(address));

/** Time passes only while it waits. */
function deletePool({ wait = async () => {}, ...more }: AdminSurroundings = {}): Promise<AdminRun> {
  let elapsed = 0;
  const pass = async (milliseconds: number) => {
    elapsed += milliseconds;
    await wait(milliseconds);
  };
  return runInside(["delete", "ippool", "blue"], {
    ...{ store, wait: pass, clock: { now: () => elapsed, wait: pass } },
    ...more,
  });
}

const unavailable = () => new PluginError("try-again-later", "Cannot use the datastore");

async function poolState(): Promise<"enabled" | "disabled" | "deleted"> {
  const [entry] = (await store.read([{ kind: "key", key: POOL.key({ name: "blue" }) }])).answers[0] ?? [];
  if (!entry) return "deleted";
  return POOL.codec.read(entry.value, entry.key).spec.disabled ? "disabled" : "enabled";
}

async function recordTunnel([address]: readonly string[]): Promise<void> {
  const node = NODE.codec.make({ name: "node-1" }, address === undefined ? {} : { ipv4VXLANTunnelAddr: address });
  await seed(store, { kind: "put", key: NODE.key({ name: "node-1" }), value: NODE.codec.write(node) });
}

async function removeNode(): Promise<void> {
  const key = NODE.key({ name: "node-1" });
  const { revision = "" } = (await store.read([{ kind: "key", key }])).answers[0]?.[0] ?? {};
  await seed(store, { kind: "delete", key, revision });
}

describe("delete ippool, with the address of a tunnel in it that a node uses", () => {
  test("leaves the address to the agent, which gives it back when the pool is gone", async () => {
    let looks = 0;
    const wait = async () => {
      looks += 1;
      if (looks < 3) return;
      expect((await readAllRecords(store)).pools).toEqual([]);
      expect(await held()).toHaveLength(looks === 3 ? 1 : 0);
      await recordTunnel([]);
      await allocator().releaseHandle(OWNER);
    };

    expect(await deletePool({ wait })).toEqual({ code: EXIT_OK, stdout: "ippool/blue deleted\n", stderr: "" });
    const world = await readAllRecords(store);
    expect([world.blocks, world.affinities, world.handles]).toEqual([[], [], []]);
  });

  test("does not wait for ever, and says what stays; the block is given back once it is empty", async () => {
    let waited = 0;
    const wait = async (milliseconds: number) => {
      waited += milliseconds;
    };
    const { code, stderr } = await deletePool({ wait });

    expect({ code, stderr, waited }).toEqual({
      code: EXIT_OK,
      stderr: "note: 1 tunnel address stays until the agent of its node has replaced it\n",
      waited: 5_500,
    });
    expect(await held()).toHaveLength(1);
    expect(findProblems(await readAllRecords(store)).filter(({ severity }) => severity === "corrupt")).toEqual([]);
    await allocator().releaseHandle(OWNER);
    const rested = new Date("2026-01-02T03:07:05Z");
    for (const command of ["node register", "ipam gc"]) {
      expect((await runInside([...command.split(" "), "--name", "node-1"], { store, now: rested })).code).toBe(EXIT_OK);
    }
    const world = await readAllRecords(store);
    expect([world.blocks, world.affinities, world.handles]).toEqual([[], [], []]);
  });

  test("leaves the address to the agent also if the record does not name it: the agent may be about to write that", async () => {
    await recordTunnel([]);
    const { code, stderr } = await deletePool();

    expect({ code, stderr }).toEqual({
      code: EXIT_OK,
      stderr: "note: 1 tunnel address stays until the agent of its node has replaced it\n",
    });
    expect(await held()).toHaveLength(1);
  });

  test("reads the blocks once, and then only what is left: the pools, the block and the Node", async () => {
    await seed(store, nodeChange("node-2"));
    const lists: string[] = [];
    const counting = storeAround(store, {
      read: (wanted) => {
        for (const each of wanted) if (each.kind === "prefix" && isDeleted) lists.push(each.prefix);
        return store.read(wanted);
      },
      commit: async (changes) => {
        const written = await store.commit(changes);
        isDeleted ||= changes.some(({ kind, key }) => kind === "delete" && key === POOL.key({ name: "blue" }));
        return written;
      },
    });
    let isDeleted = false;
    expect((await deletePool({ store: counting })).code).toBe(EXIT_OK);

    // The second list is for the note about what stays.
    expect(lists.filter((prefix) => prefix === blocksPrefix(4))).toHaveLength(2);
    expect(lists).not.toContain(NODE.prefix());
    expect(lists).toContain(POOL.prefix());
  });

  test.each([1, Number.POSITIVE_INFINITY])(
    "fails without releasing it if %d commits fail, whichever is the first; the pool is enabled, or the error says so",
    async (count) => {
      for (let first = 1; ; first += 1) {
        let commits = 0;
        const failing = storeAround(store, {
          commit: async (changes) => {
            commits += 1;
            if (commits >= first && commits < first + count) throw unavailable();
            return store.commit(changes);
          },
        });
        const { code, stderr } = await deletePool({ store: failing });
        expect(await held()).toHaveLength(1);
        if (code === EXIT_OK) break;
        expect(code).toBe(EXIT_FAILED);
        const isDisabled = count > 1 && first > 1;
        expect(await poolState()).toBe(isDisabled ? "disabled" : "enabled");
        expect(stderr.includes("the pool stays disabled")).toBe(isDisabled);
        if (isDisabled) expect(stderr).toContain(`patch ippool blue -p '{"spec":{"disabled":false}}'`);
        await seed(store, POOL_BLUE);
      }
      expect(await poolState()).toBe("deleted");
    },
  );

  test("enables the pool again if the answer to the first commit is lost", async () => {
    let isLost = false;
    const failing = storeAround(store, {
      commit: async (changes) => {
        const written = await store.commit(changes);
        if (isLost) return written;
        isLost = true;
        throw unavailable();
      },
    });
    expect((await deletePool({ store: failing })).code).toBe(EXIT_FAILED);
    expect([isLost, await poolState()]).toEqual([true, "enabled"]);
  });

  test("does not enable a pool that another disabled meanwhile", async () => {
    const overtaken = storeAround(store, {
      commit: async (changes) => {
        await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28, disabled: true }));
        return store.commit(changes);
      },
    });
    expect((await deletePool({ store: overtaken })).code).toBe(EXIT_FAILED);
    expect(await poolState()).toBe("disabled");
  });
});

describe("delete ippool, with the address of a tunnel in it whose node is gone", () => {
  const affinities = async () => (await readValidRecords(store)).records.affinities.map(({ node }) => node);

  test("releases the address and its block", async () => {
    await removeNode();
    expect(await deletePool()).toEqual({ code: EXIT_OK, stdout: "ippool/blue deleted\n", stderr: "" });
    const world = await readAllRecords(store);
    expect([world.blocks, world.affinities, world.handles]).toEqual([[], [], []]);
  });

  test.each(["10.0.0.128/25", "10.0.0.0/16"])("leaves both alone if pool %s has them, too", async (cidr) => {
    await removeNode();
    await seed(store, poolChange("overlapping", cidr, { blockSize: 28 }));
    expect(await deletePool()).toEqual({ code: EXIT_OK, stdout: "ippool/blue deleted\n", stderr: "" });
    expect(await held()).toHaveLength(1);
    expect(await affinities()).toEqual(["node-1"]);
  });

  test("leaves both alone if another pool cannot be read", async () => {
    await removeNode();
    await seed(store, { kind: "put", key: POOL.key({ name: "unreadable" }), value: "{" });
    expect((await deletePool()).code).toBe(EXIT_OK);
    expect(await held()).toHaveLength(1);
    expect(await affinities()).toEqual(["node-1"]);
  });

  test.each(["the tunnel", "nothing"])("leaves both alone if the pool is created again and has %s", async (use) => {
    let waits = 0;
    const wait = async () => {
      waits += 1;
      if (waits !== 3) return;
      // It was assigned from the new pool, or released.
      await seed(store, POOL_BLUE);
      await removeNode();
      if (use === "nothing") await allocator().releaseHandle(OWNER);
    };
    expect(await deletePool({ wait })).toEqual({ code: EXIT_OK, stdout: "ippool/blue deleted\n", stderr: "" });
    expect(waits).toBe(3);
    expect(await held()).toHaveLength(use === "nothing" ? 0 : 1);
    expect(await affinities()).toEqual(["node-1"]);
  });
});
