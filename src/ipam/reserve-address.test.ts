import { beforeEach, describe, expect, test } from "bun:test";
import { address, configurationChange, means, nodeChange, poolChange, request, seed } from "../../test/support/ipam.ts";
import { storeAround } from "../../test/support/wrapped-store.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { readAllRecords } from "./all-records.ts";
import { openAllocator } from "./allocator.ts";
import { openHintMemory } from "./hint-file.ts";
import { findProblems } from "./invariants.ts";
import { type ReserveOutcome, reserveAddress } from "./reserve-address.ts";

const START = Date.parse("2026-01-02T03:04:05Z");
const COOLDOWN = 600;
/** A rest that was set is longer for clocks that are only known by the second. */
const ROUNDING = 3;
const HOUR = 3_600;
const WANTED = "10.0.0.1";

describe.each(["all changes", "one object"] as const)("reserveAddress() of a resting address (%s)", (atomicity) => {
  let store: Datastore;
  /** Seconds since START, by the clock of the datastore. */
  let seconds: number;
  const time = () => new Date(START + seconds * 1000);
  /** `error`: by how many seconds the clock of its host is ahead. */
  const meansOf = (error = 0) =>
    means({ now: () => new Date(time().getTime() + error * 1000), hints: openHintMemory() });

  beforeEach(async () => {
    seconds = 0;
    store = storeAround(openMemory(undefined, { atomicity }), { clock: time });
    await seed(store, nodeChange("node-1"));
  });

  const pool = (cooldownSeconds?: number) =>
    seed(
      store,
      poolChange("blue", "10.0.0.0/28", {
        blockSize: 30,
        ...(cooldownSeconds === undefined ? {} : { cooldownSeconds }),
      }),
    );
  /** A pod of namespace "shop" has it, and gives it back now. */
  const use = async () => {
    const allocator = openAllocator(store, meansOf());
    const attributes = { pod: "web", namespace: "shop" };
    const addressRequests = [{ kind: "given", address: address(WANTED) }] as const;
    await allocator.assign(request("net.web", { network: "net", attributes, addressRequests }));
    await allocator.releaseHandle({ handle: "net.web", node: "node-1" });
  };
  const reserve = (namespace: string, { error = 0 } = {}): Promise<ReserveOutcome> =>
    reserveAddress(store, meansOf(error), {
      ...{ network: "net", interface: "eth0", namespace, pod: "db-0" },
      ...{ address: address(WANTED), keepForSeconds: HOUR },
    });
  const rests = (left: number) => ({
    kind: "rests" as const,
    milliseconds: left * 1000,
    release: { at: START / 1000, namespace: "shop" },
  });
  const problems = async () => findProblems({ ...(await readAllRecords(store)), now: time() });

  test("is refused for another namespace for as long as its pool says, by the clock of the datastore", async () => {
    await pool(COOLDOWN);
    await use();
    seconds = 200;
    for (const error of [0, 26 * HOUR, -26 * HOUR]) {
      expect(await reserve("bank", { error })).toEqual(rests(COOLDOWN + ROUNDING - 200));
    }
    seconds = COOLDOWN + ROUNDING - 1;
    expect(await reserve("bank")).toEqual(rests(1));
    seconds += 1;
    expect(await reserve("bank")).toMatchObject({ kind: "reserved", pool: "blue" });
    expect(await problems()).toEqual([]);
  });

  test("is granted at once to the namespace that had it", async () => {
    await pool(COOLDOWN);
    await use();
    expect(await reserve("shop")).toMatchObject({ kind: "reserved" });
    expect(await problems()).toEqual([]);
  });

  test.each([
    ["of the cluster", { configured: COOLDOWN, own: undefined }, COOLDOWN + ROUNDING],
    [
      "of the pool, which overrides that of the cluster",
      { configured: 2 * COOLDOWN, own: COOLDOWN },
      COOLDOWN + ROUNDING,
    ],
    ["of none in the pool, which overrides that of the cluster", { configured: COOLDOWN, own: 0 }, 180],
    ["that is not set", { configured: undefined, own: undefined }, 180],
  ] as const)("goes by the setting %s", async (_, { configured, own }, left) => {
    await pool(own);
    if (configured !== undefined) await seed(store, configurationChange({ cooldownSeconds: configured }));
    await use();
    expect(await reserve("bank")).toEqual(rests(left));
  });

  test("is refused again after a reservation of it was given up, also in a block that no node had", async () => {
    await pool(COOLDOWN);
    expect(await reserve("shop")).toMatchObject({ kind: "reserved" });
    expect((await readAllRecords(store)).blocks.map(({ cooldownSeconds }) => cooldownSeconds)).toEqual([COOLDOWN]);
    await openAllocator(store, meansOf()).releaseAddresses([{ address: address(WANTED), how: "for good" }]);
    seconds = 500;
    expect(await reserve("bank")).toEqual(rests(COOLDOWN + ROUNDING - 500));
  });
});
