import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { imitateCluster } from "../../../test/support/imitated-cluster.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { openBackups } from "./backups.ts";

function backupsOn({ client } = imitateCluster(), partBytes = 40) {
  const copies = new Map<string, string>();
  const copy = async (name: string, text: string) => void copies.set(name, text);
  return { ...openBackups({ objects: clusterObjects(client), run: "1", copy, partBytes }), copies };
}

describe("backups", () => {
  test("are read as they were saved, whatever the size of their parts, and copied", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ maxLength: 300, unit: "grapheme" }),
        fc.integer({ min: 20, max: 300 }),
        async (text, size) => {
          const backups = backupsOn(imitateCluster(), size);
          await backups.save("a.json", text);

          expect(await backups.read("a.json")).toBe(text);
          expect(backups.copies.get("a.json")).toBe(text);
        },
      ),
      { numRuns: 20 },
    );
  });

  test("the first text under a name stays", async () => {
    const backups = backupsOn();
    await backups.save("a", "first");
    await backups.save("a", "second");

    expect(await backups.read("a")).toBe("first");
    expect(await backups.read("b")).toBeUndefined();
  });

  test("a text is not saved before its last part is, and may be another one then", async () => {
    let left = 3;
    const cluster = imitateCluster({
      beforeWrite() {
        left -= 1;
        if (left < 0) throw new Error("killed");
      },
    });
    const text = Array.from({ length: 50 }, (_, index) => Bun.hash(`${index}`).toString(36)).join("");
    await expect(backupsOn(cluster).save("a", text)).rejects.toThrow("killed");
    expect(await backupsOn(cluster).read("a")).toBeUndefined();
    left = Number.POSITIVE_INFINITY;
    await backupsOn(cluster).save("a", "another");

    expect(await backupsOn(cluster).read("a")).toBe("another");
  });

  test("what is damaged is not returned", async () => {
    const cluster = imitateCluster();
    await backupsOn(cluster).save("a", "text ".repeat(100));
    const path = [...cluster.objects.keys()].at(-1) ?? "";
    cluster.edit(path, { data: { part: btoa("other") } });

    await expect(backupsOn(cluster).read("a")).rejects.toMatchObject({ kind: "record-malformed" });
  });

  test.each(["A", "a/b", "a.part1", "-a"])("the name %s is refused", async (name) => {
    await expect(backupsOn().save(name, "text")).rejects.toMatchObject({ kind: "internal" });
  });
});
