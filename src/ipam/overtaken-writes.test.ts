/**
 * A write takes effect, its response is lost, and another process overwrites the
 * object before the first one looks at it: nothing on the object shows the first
 * write any more. The store reports a lost race, and the allocator must find what
 * it has already assigned or released.
 */
import { describe, expect, test } from "bun:test";
import { means, poolChange, request, seed, textsOf } from "../../test/support/ipam.ts";
import { type Around, type FakeApi, startFakeApi } from "../../test/support/kube-api/fake-api.ts";
import { productMapping } from "../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../datastore/kube/store.ts";
import type { KubeRequest } from "../kube/api.ts";
import { KubeFailure, unavailable } from "../kube/failure.ts";
import { readAllRecords } from "./all-records.ts";
import { type Allocator, openAllocator } from "./allocator.ts";
import { findProblems } from "./invariants.ts";

const DUAL = [
  { kind: "automatic", family: 4 },
  { kind: "automatic", family: 6 },
] as const;
const POOLS = [poolChange("four", "10.0.0.0/24"), poolChange("six", "fd00::/120")];
const WRITES = 12;

let marks = 0;

function openOn(api: FakeApi, around?: Around) {
  const client = api.connect(around);
  return openKubeStore({ api: client, mappings: productMapping(() => String(++marks)), close: () => client.close() });
}

/** Loses the response of one write, the `lost`th, after `meanwhile` overwrote its object. */
function overtaking(lost: number, meanwhile: (request: KubeRequest) => Promise<void>): Around {
  let writes = 0;
  return async (sent, send) => {
    if (sent.method === "GET") return send();
    writes += 1;
    const response = send();
    if (writes !== lost) return response;
    await meanwhile(sent);
    const diagnosis = { stage: "request", effect: "unknown", cure: "wait", advice: "" } as const;
    throw unavailable(new KubeFailure(diagnosis, "no response"), { server: "fake", kind: "datastore-unavailable" });
  };
}

async function atEachWrite(run: (allocator: Allocator) => Promise<unknown>, check: (api: FakeApi) => Promise<void>) {
  let overtaken = 0;
  for (let lost = 1; lost <= WRITES; lost++) {
    const api = startFakeApi();
    const plain = openOn(api);
    await seed(plain, ...POOLS);
    const other = await openAllocator(plain, means());
    await other.assign(request("net.before", { addressRequests: DUAL }));
    let others = 0;
    const meanwhile = async () => {
      others += 1;
      await other.assign(request(`net.other${others}`, { addressRequests: DUAL }));
    };
    await run(await openAllocator(openOn(api, overtaking(lost, meanwhile)), means()));
    overtaken += others;
    await check(api);
    expect(findProblems(await readAllRecords(openOn(api)))).toEqual([]);
  }
  expect(overtaken).toBeGreaterThanOrEqual(3);
}

describe("a write that took effect, was not confirmed, and was overwritten", () => {
  test("assigns no address twice or for nobody", async () => {
    let addresses: readonly string[] = [];
    await atEachWrite(
      async (allocator) => {
        addresses = textsOf(await allocator.assign(request("net.a", { addressRequests: DUAL })));
      },
      async (api) => {
        const { blocks } = await readAllRecords(openOn(api));
        const held = blocks.flatMap(({ attributes, allocations }) =>
          allocations.filter((index) => index !== undefined && attributes[index]?.handleId === "net.a"),
        );
        expect([addresses.length, held.length]).toEqual([2, 2]);
      },
    );
  });

  test("releases exactly its own addresses", async () => {
    await atEachWrite(
      async (allocator) => {
        await allocator.assign(request("net.a", { addressRequests: DUAL }));
        await allocator.releaseHandle({ handle: "net.a", node: "node-1" });
      },
      async (api) => {
        const { handles } = await readAllRecords(openOn(api));
        expect(handles.map(({ handleId }) => handleId)).not.toContain("net.a");
        expect(handles.map(({ handleId }) => handleId)).toContain("net.before");
      },
    );
  });
});
