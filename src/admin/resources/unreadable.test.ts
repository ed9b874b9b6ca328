import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { means, poolChange, request, seed } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { resourceKey } from "../../model/keys.ts";
import { PUBLIC_KINDS } from "../../model/kinds.ts";
import { EXIT_FAILED, EXIT_OK } from "../command.ts";
import { referenceText } from "./reference.ts";

let store = openMemory();
beforeEach(() => {
  store = openMemory();
});

function ctl(words: string, surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  return runInside(words.split(" "), { store, ...surroundings });
}

const put = (key: string, value: string) => seed(store, { kind: "put", key, value });
const everything = async () => (await store.read([{ kind: "prefix", prefix: "/" }])).answers[0];

const records = PUBLIC_KINDS.flatMap((kind) => {
  const name = { name: "default", ...(kind.namespaced ? { namespace: "prod" } : {}) };
  return ["{", "7"].map((text) => [referenceText(kind, name), text, kind.key(name)] as const);
});

describe("a record that cannot be read", () => {
  test.each(records)("%s that is %s is deleted with --force, and not without", async (reference, text, key) => {
    await put(key, text);
    const refused = await ctl(`delete ${reference}`);

    expect(refused).toMatchObject({ code: EXIT_FAILED, stdout: "" });
    expect(refused.stderr).toContain("Cannot read ");
    expect(refused.stderr).toContain(`"${identity.adminTool} delete ${reference} --force"`);
    expect(await everything()).toHaveLength(1);
    const forced = await ctl(`delete ${reference} --force`);
    expect(forced).toMatchObject({ code: EXIT_OK, stdout: `${reference} deleted\n` });
    expect(forced.stderr).toContain("could not be read");
    expect(await everything()).toEqual([]);
  });

  test.each(records)("%s that is %s is told of by get with the way out", async (reference, text, key) => {
    await put(key, text);
    const [kind = ""] = reference.split("/");

    for (const words of [`get ${reference}`, `get ${kind} -A`]) {
      const { code, stdout, stderr } = await ctl(words);
      expect({ code, stdout }).toEqual({ code: EXIT_FAILED, stdout: "" });
      expect(stderr).toContain(`at "${key}": `);
      expect(stderr).toContain(`"${identity.adminTool} delete ${reference} --force"`);
    }
  });
});

describe("a pool that cannot be read", () => {
  const blue = resourceKey("ippools", { name: "blue" });
  const manifest = (name: string, cidr: string) =>
    JSON.stringify({ apiVersion: API_VERSION, kind: "IPPool", metadata: { name }, spec: { cidr, blockSize: 28 } });
  beforeEach(async () => {
    await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28 }), poolChange("red", "10.0.1.0/24"));
    await openAllocator(store, means()).assign(
      request("net.a", { wishes: [{ kind: "automatic", family: 4, pools: ["blue"] }] }),
    );
    await put(blue, '{"metadata":{"name":"blue"},"spec":{"cidr":7}}');
  });

  test("does not hide the others", async () => {
    for (const words of ["get pools -o name", "get pool blue red -o name"]) {
      const { code, stdout, stderr } = await ctl(words);
      expect({ code, stdout }).toEqual({ code: EXIT_FAILED, stdout: "ippool/red\n" });
      expect(stderr.match(/error:/g)).toHaveLength(1);
      expect(stderr).toContain("spec.cidr");
    }
    expect((await ctl("get pool rd")).stderr).toContain('did you mean "red"?');
  });

  test("is refused without --force because nobody can tell whether it is in use", async () => {
    expect((await ctl("delete pool blue")).stderr).toContain("whether its addresses are in use cannot be told");
  });

  test("is made again with the range it had, and whoever has an address keeps it", async () => {
    const again = { stdin: manifest("blue", "10.0.0.0/24") };
    expect((await ctl("apply -f -", again)).stderr).toContain("delete ippool/blue --force");
    expect((await ctl("delete pool blue --force")).stderr).toContain("was not checked");

    expect((await ctl("apply -f -", again)).stdout).toBe("ippool/blue created\n");
    expect((await ctl("ipam check")).code).toBe(EXIT_OK);
    expect((await ctl("delete pool blue")).stderr).toContain("1 of its addresses is in use");
  });

  test("keeps another from being made, which could overlap it", async () => {
    const { code, stderr } = await ctl("apply -f -", { stdin: manifest("green", "10.0.2.0/24") });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("delete ippool/blue --force");
  });

  test("is deleted at the very revision that was given, or not at all", async () => {
    const document = JSON.parse(manifest("blue", "10.0.0.0/24"));
    const stale = { ...document, metadata: { ...document.metadata, resourceVersion: "1" } };

    const { code, stderr } = await ctl("delete -f - --force", { stdin: JSON.stringify(stale) });
    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("resourceVersion 1");
  });
});
