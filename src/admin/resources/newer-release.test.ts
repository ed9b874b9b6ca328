import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../test/support/admin-context.ts";
import { means, request } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { resourceKey } from "../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

let store = openMemory();
beforeEach(() => {
  store = openMemory();
});

const ctl = (words: string, stdin?: string): Promise<AdminRun> =>
  runInside(words.split(" "), { store, ...(stdin === undefined ? {} : { stdin }) });
const apply = (name: string, spec: object): Promise<AdminRun> =>
  ctl("apply -f -", JSON.stringify({ apiVersion: API_VERSION, kind: "IPPool", metadata: { name }, spec }));
const BLUE = { cidr: "10.0.0.0/24", blockSize: 28 };

describe("fields of a newer release", () => {
  const key = resourceKey("ippools", { name: "blue" });
  const stored = async () => JSON.parse((await store.read([{ kind: "key", key }])).answers[0]?.[0]?.value ?? "{}");
  beforeEach(async () => {
    await apply("blue", BLUE);
    const { metadata, spec, ...rest } = await stored();
    const newer = {
      ...rest,
      metadata: { ...metadata, lineage: "a" },
      spec: { ...spec, assignmentMode: "Manual" },
      signature: { by: "b" },
    };
    await store.commit([{ kind: "put", key, value: JSON.stringify(newer) }]);
  });

  test.each([
    ["label", () => ctl("label pool blue a=b")],
    ["patch", () => ctl('patch pool blue -p {"spec":{"natOutgoing":true}}')],
    ["apply", () => apply("blue", { ...BLUE, disabled: true })],
  ])("outlive %s, which cannot know them", async (_, act) => {
    expect((await act()).code).toBe(EXIT_OK);

    expect(await stored()).toMatchObject({
      metadata: { lineage: "a" },
      spec: { assignmentMode: "Manual" },
      signature: { by: "b" },
    });
  });

  test("are not a change", async () => {
    expect((await apply("blue", BLUE)).stdout).toBe("ippool/blue unchanged\n");
  });

  test("survive a failed delete", async () => {
    await apply("red", { cidr: "10.0.1.0/24" });
    await openAllocator(store, means()).assign(
      request("net.c1", { addressRequests: [{ kind: "automatic", family: 4, pools: ["blue"] }] }),
    );
    expect((await ctl("delete pool blue")).code).toBe(EXIT_FAILED);

    expect(await stored()).toMatchObject({ spec: { assignmentMode: "Manual", disabled: false } });
  });
});
