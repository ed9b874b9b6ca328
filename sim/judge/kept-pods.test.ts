import { describe, expect, test } from "bun:test";
import { formatAddress, parseAddress } from "../../src/ip/address.ts";
import { keepHandle } from "../../src/model/kept-address.ts";
import { poolChange, request, seed } from "../../test/support/ipam.ts";
import { NETWORK_NAME } from "../node/network-config.ts";
import { KEEP_SECONDS, violationsIn, type WorldAttachment } from "./invariant.ts";
import { LATENESS } from "./kept-addresses.ts";
import { keptAddressesStay } from "./kept-pods.ts";
import { SmallWorld } from "./small-world.ts";

const POD = { namespace: "default", name: "db", uid: "uid-of-db" };
const HANDLE = keepHandle({ network: NETWORK_NAME, namespace: "default", identity: "pod/db" });

/** With a container of a pod that keeps its addresses. */
async function start() {
  const world = await SmallWorld.make("node-1");
  const keep = { handle: HANDLE, containerId: "c1", when: "always" as const, title: 'pod "default/db"' };
  const { addresses } = await world.allocator.assign(request("pod-network.c1", { keep, network: NETWORK_NAME }));
  const texts = addresses.map(({ address }) => formatAddress(address));
  world.pods.set("default/db", { ...POD, node: "node-1", isEnding: false, keeps: true });
  const attached: WorldAttachment = { pod: POD, containerId: "c1", state: "attached", addresses: texts };
  world.attach("node-1", attached);
  const invariant = keptAddressesStay();
  const look = () => violationsIn(world, [invariant]).map(({ what }) => what);
  expect(look()).toEqual([]);
  return {
    world,
    look,
    del: async () => {
      world.attach("node-1", { ...attached, state: "deleting" });
      const owner = { handle: "pod-network.c1", network: NETWORK_NAME, node: "node-1" };
      await world.allocator.releaseHandle({ ...owner, kept: { containerId: "c1", handle: HANDLE } });
    },
    free: () =>
      world.allocator.releaseAddresses(
        texts.flatMap((text) => {
          const address = parseAddress(text);
          return address === undefined ? [] : [{ address, how: "for good" as const }];
        }),
      ),
  };
}

describe("kept addresses of pods", () => {
  test("wait after the DEL of their container, and are not freed before their time", async () => {
    const { world, look, del, free } = await start();
    await del();
    expect(look()).toEqual([]);

    world.now += LATENESS;
    await free();
    expect(look()).toEqual([expect.stringContaining("and its owner exists")]);
  });

  test("are free when their time is over", async () => {
    const { world, look, del, free } = await start();
    await del();
    look();
    world.now += KEEP_SECONDS * 1_000;
    await free();
    expect(look()).toEqual([]);
  });

  test("are free before, if their pool is disabled", async () => {
    const { world, look, del, free } = await start();
    await del();
    expect(look()).toEqual([]);
    world.now += LATENESS;
    await seed(world.store, poolChange("blue", "10.0.0.0/24", { blockSize: 29, disabled: true }));
    expect(look()).toEqual([]);
    await free();
    expect(look()).toEqual([]);
  });

  test("are not freed while a container uses them", async () => {
    const { look, free } = await start();
    await free();
    expect(look()).toContainEqual(expect.stringContaining("a container used it"));
  });
});
