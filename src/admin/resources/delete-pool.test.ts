import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { means, poolChange, request, seed } from "../../../test/support/ipam.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { formatAddress } from "../../ip/address.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { findProblems } from "../../ipam/invariants.ts";
import { readWorld } from "../../ipam/world.ts";
import { NODE } from "../../model/kinds.ts";
import { EXIT_FAILED, EXIT_OK } from "../command.ts";

const HANDLE = "vxlan-tunnel-addr-node-1";
const OWNER = { handle: HANDLE, node: "node-1" };

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28 }));
  const attributes = { type: "vxlanTunnelAddress" };
  await allocator().assign(request(HANDLE, { attributes, intendedUse: "Tunnel" }));
  await recordTunnel(await held());
});

const allocator = () => openAllocator(store, means());
const held = async () => (await allocator().held(OWNER)).map(({ address }) => formatAddress(address));
const deletePool = (surroundings: AdminSurroundings = {}): Promise<AdminRun> =>
  runInside(["delete", "ippool", "blue"], { store, ...surroundings });

async function recordTunnel([address]: readonly string[]): Promise<void> {
  const node = NODE.codec.make({ name: "node-1" }, address === undefined ? {} : { ipv4VXLANTunnelAddr: address });
  await seed(store, { kind: "put", key: NODE.key({ name: "node-1" }), value: NODE.codec.write(node) });
}

describe("delete ippool, with the address of a tunnel in it that a node uses", () => {
  test("leaves the address to the agent, which gives it back when the pool is gone", async () => {
    let looks = 0;
    const wait = async () => {
      looks += 1;
      if (looks < 3) return;
      expect((await readWorld(store)).pools).toEqual([]);
      expect(await held()).toHaveLength(looks === 3 ? 1 : 0);
      await recordTunnel([]);
      await allocator().releaseHandle(OWNER);
    };

    expect(await deletePool({ wait })).toEqual({ code: EXIT_OK, stdout: "ippool/blue deleted\n", stderr: "" });
    const world = await readWorld(store);
    expect([world.blocks, world.affinities, world.handles]).toEqual([[], [], []]);
  });

  test("does not wait for ever, and says what stays; the block goes with the address", async () => {
    const { code, stderr } = await deletePool();

    expect({ code, stderr }).toEqual({
      code: EXIT_OK,
      stderr: "note: 1 tunnel address stays until the agent of its node has replaced it\n",
    });
    expect(await held()).toHaveLength(1);
    expect(findProblems(await readWorld(store)).filter(({ severity }) => severity === "corrupt")).toEqual([]);
    await allocator().releaseHandle(OWNER);
    const world = await readWorld(store);
    expect([world.blocks, world.affinities, world.handles]).toEqual([[], [], []]);
  });

  test("fails without releasing it if the datastore fails half way, whenever that is", async () => {
    for (let first = 1; ; first += 1) {
      let commits = 0;
      const failing = storeAround(store, {
        commit: async (changes) => {
          commits += 1;
          if (commits >= first) throw new PluginError("try-again-later", "Cannot use the datastore");
          return store.commit(changes);
        },
      });
      const { code } = await deletePool({ store: failing });
      expect(await held()).toHaveLength(1);
      if (code === EXIT_OK) break;
      expect(code).toBe(EXIT_FAILED);
    }
    expect((await readWorld(store)).pools).toEqual([]);
  });
});
