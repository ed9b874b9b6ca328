import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Change } from "../../datastore/datastore.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { pagesBelow } from "../../datastore/pages.ts";
import { openOverlay } from "./overlay-store.ts";

const KEYS = ["/a/1", "/a/2", "/a/3", "/a/4", "/b/1"];

async function contents(store: Parameters<typeof pagesBelow>[0], size: number): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { entries } of pagesBelow(store, "/a/", { size })) {
    found.push(...entries.map(({ key, value }) => `${key}=${value}`));
  }
  return found;
}

const change = fc.record({ kind: fc.constantFrom("put", "delete"), key: fc.constantFrom(...KEYS), value: fc.nat(9) });

describe("openOverlay()", () => {
  test("reads as if its commits had been written, page by page, and writes nothing", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(change),
        fc.array(change),
        fc.integer({ min: 1, max: 4 }),
        async (before, own, size) => {
          const written = openMemory();
          const below = openMemory();
          const overlay = openOverlay(below);
          const commit = async (store: typeof overlay, { kind, key, value }: (typeof own)[number]) => {
            const current = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
            const put: Change = { kind: "put", key, value: `${value}` };
            if (kind === "put") await store.commit([put]);
            else if (current) await store.commit([{ kind: "delete", key, revision: current.revision }]);
          };
          for (const each of before) await Promise.all([commit(written, each), commit(below, each)]);
          const untouched = await contents(below, 10);
          for (const each of own) await Promise.all([commit(written, each), commit(overlay, each)]);

          expect(await contents(overlay, size)).toEqual(await contents(written, 10));
          expect(await contents(below, 10)).toEqual(untouched);
        },
      ),
    );
  });

  test("refuses a commit whose guard does not hold, like any datastore", async () => {
    const overlay = openOverlay(openMemory());

    expect(await overlay.commit([{ kind: "create", key: "/a", value: "1" }])).toMatchObject({ ok: true });
    expect(await overlay.commit([{ kind: "create", key: "/a", value: "2" }])).toMatchObject({ reason: "exists" });
    expect(await overlay.commit([{ kind: "delete", key: "/a", revision: "1" }])).toMatchObject({ reason: "stale" });
    expect(await overlay.commit([{ kind: "delete", key: "/b", revision: "1" }])).toMatchObject({ reason: "missing" });
  });
});
