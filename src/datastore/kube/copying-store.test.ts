import { beforeEach, describe, expect, test } from "bun:test";
import { anyText } from "../../../test/support/any-text.ts";
import { type Around, type FakeApi, startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import { blockKey, resourceKey, resourcesPrefix } from "../../model/keys.ts";
import type { ServerTime } from "../../server-clock.ts";
import type { Change, Datastore, Decide, Wanted } from "../datastore.ts";
import { datastoreContract } from "../datastore-contract.ts";
import { openCopyingStore } from "./copying-store.ts";
import type { KindMapping } from "./kind-mapping.ts";
import { productMapping } from "./product-mapping.ts";
import { openKubeStore } from "./store.ts";

let marks = 0;
const newMark = () => String(++marks);

function openOn(
  api: FakeApi,
  mappings: readonly KindMapping[],
  around?: Around,
  clock?: NonNullable<Datastore["clock"]>,
): Datastore {
  const client = api.connect(around);
  return openCopyingStore((observer) => {
    const inner = openKubeStore({ api: client, mappings, close: () => client.close(), observer });
    return clock === undefined ? inner : Object.assign(inner, { clock });
  });
}

datastoreContract(
  "the orchestrator's API with copies, in memory,",
  async () => {
    const api = startFakeApi();
    const mappings = [anyText({ writeAnnotation: "test/write", newMark })];
    return {
      store: openOn(api, mappings),
      another: async () => openOn(api, mappings),
      forgetHistory: async () => api.forgetHistory(),
      dispose: async () => {},
    };
  },
  { atomicity: "one object", revisions: "of each object" },
);

describe("copies of the orchestrator's API", () => {
  const POOLS: Wanted = { kind: "prefix", prefix: resourcesPrefix("ippools") };
  const cidr = parsePrefix("10.0.0.0/26");
  if (cidr === undefined) throw new Error("not a prefix");
  const BLOCK: Wanted = { kind: "key", key: blockKey(cidr) };
  const block = (count: number) => JSON.stringify({ cidr: "10.0.0.0/26", allocations: [], unallocated: [count] });
  let asked: string[];
  let time: ServerTime;
  let api: FakeApi;
  let store: Datastore;
  let other: Datastore;

  beforeEach(async () => {
    api = startFakeApi();
    asked = [];
    time = undefined;
    const note: Around = async ({ method, path }, send) => {
      asked.push(`${method} ${path.split("/")[4]}`);
      return send();
    };
    store = openOn(api, productMapping(newMark), note, () => time);
    other = openKubeStore({ api: api.connect(), mappings: productMapping(newMark), close: async () => {} });
    await other.commit([
      { kind: "create", key: resourceKey("ippools", { name: "blue" }), value: poolText("blue", "10.0.0.0/16") },
      { kind: "create", key: BLOCK.key, value: block(0) },
    ]);
  });

  /** Writes the block again, with a number that depends on the pools. */
  const write: Decide<string> = ([first]) => {
    const [pools = [], blocks = []] = first?.answers ?? [];
    const entry = blocks[0];
    if (entry === undefined) throw new Error("no block");
    const names = pools.map(({ value }) => `${JSON.parse(value).metadata.name}`).join();
    const next = Number(JSON.parse(entry.value).unallocated[0]) + 1;
    const change: Change = { kind: "update", key: entry.key, value: block(next), revision: entry.revision };
    return { kind: "commit", changes: [change], outcome: names };
  };
  const transact = () => store.transact([POOLS, BLOCK], write);
  /** Until the pools are copied. */
  const untilCopied = async () => {
    for (;;) {
      asked.splice(0);
      await transact();
      if (asked.join() === "PUT ipamblocks") return;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

  test("a transaction of records that are copied is one request for each write", async () => {
    await untilCopied();
    asked.splice(0);
    const { written, outcome } = await transact();

    expect(written.ok).toBe(true);
    expect(outcome).toBe("blue");
    expect(asked).toEqual(["PUT ipamblocks"]);
    await store.close();
  });

  test("nothing is decided from copies while the server's time is lost", async () => {
    await untilCopied();
    asked.splice(0);
    time = "lost";
    await transact();

    expect(asked).toContain("GET ipamblocks");
    await store.close();
  });

  test("a block that another has written is refused once, then read", async () => {
    await untilCopied();
    const entry = (await other.read([BLOCK])).answers[0]?.[0];
    await other.commit([{ kind: "update", key: BLOCK.key, value: block(100), revision: entry?.revision ?? "" }]);
    const lost = await transact();
    asked.splice(0);
    const won = await transact();

    expect([lost.written.ok, won.written.ok]).toEqual([false, true]);
    expect(asked).toEqual(["GET ipamblocks", "PUT ipamblocks"]);
    expect(JSON.parse((await other.read([BLOCK])).answers[0]?.[0]?.value ?? "").unallocated).toEqual([101]);
    await store.close();
  });

  test("changes of pools arrive by the watch", async () => {
    await untilCopied();
    const key = resourceKey("ippools", { name: "green" });
    await other.commit([{ kind: "create", key, value: poolText("green", "10.1.0.0/16") }]);
    while ((await transact()).outcome !== "blue,green") await new Promise((resolve) => setImmediate(resolve));
    asked.splice(0);
    await transact();

    expect(asked).toEqual(["PUT ipamblocks"]);
    await store.close();
  });

  test("an error, and nothing to do, are decided from what is read", async () => {
    await untilCopied();
    const entry = (await other.read([BLOCK])).answers[0]?.[0];
    await other.commit([{ kind: "delete", key: BLOCK.key, revision: entry?.revision ?? "" }]);
    asked.splice(0);
    const seen = await store.transact([POOLS, BLOCK], ([first]) => ({
      kind: "commit",
      changes: [],
      outcome: first?.answers[1]?.length,
    }));

    expect(seen.outcome).toBe(0);
    expect(asked.toSorted()).toEqual(["GET ipamblocks", "GET ippools"]);
    await store.close();
  });
});

function poolText(name: string, cidr: string): string {
  return JSON.stringify({ apiVersion: "vendor.org/v3", kind: "IPPool", metadata: { name }, spec: { cidr } });
}
