import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { means, nodeChange, poolChange, prefix, request, seed } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { readAllRecords } from "../../ipam/all-records.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { affinityKey, blockKey, blocksPrefix, resourceKey } from "../../model/keys.ts";
import { PUBLIC_KINDS } from "../../model/kinds.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";
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

describe("an unreadable record", () => {
  test.each(records)("%s that is %s is deleted with --force, and not without", async (reference, text, key) => {
    await put(key, text);
    const refused = await ctl(`delete ${reference}`);

    expect(refused).toMatchObject({ code: EXIT_FAILED, stdout: "" });
    expect(refused.stderr).toContain("Cannot read ");
    expect(refused.stderr).toContain(`"${identity.adminTool} delete ${reference} --force"`);
    expect(await everything()).toHaveLength(1);
    const forced = await ctl(`delete ${reference} --force`);
    expect(forced).toMatchObject({ code: EXIT_OK, stdout: `${reference} deleted\n` });
    expect(forced.stderr).toContain("was unreadable");
    expect(await everything()).toEqual([]);
  });

  test.each(records)("%s that is %s is reported by get with the remedy", async (reference, text, key) => {
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

describe("an unreadable pool", () => {
  const blue = resourceKey("ippools", { name: "blue" });
  const manifest = (name: string, cidr: string) =>
    JSON.stringify({ apiVersion: API_VERSION, kind: "IPPool", metadata: { name }, spec: { cidr, blockSize: 28 } });
  beforeEach(async () => {
    await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28 }), poolChange("red", "10.0.1.0/24"));
    await openAllocator(store, means()).assign(
      request("net.a", { addressRequests: [{ kind: "automatic", family: 4, pools: ["blue"] }] }),
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

  test("is not deleted without --force because its usage is unknown", async () => {
    expect((await ctl("delete pool blue")).stderr).toContain("whether its addresses are in use is unknown");
  });

  test("is created again with the same CIDR, and all addresses stay assigned", async () => {
    const again = { stdin: manifest("blue", "10.0.0.0/24") };
    expect((await ctl("apply -f -", again)).stderr).toContain("delete ippool/blue --force");
    expect((await ctl("delete pool blue --force")).stderr).toContain("was not checked");

    expect((await ctl("apply -f -", again)).stdout).toBe("ippool/blue created\n");
    expect((await ctl("ipam check")).code).toBe(EXIT_OK);
    expect((await ctl("delete pool blue")).stderr).toContain("1 of its addresses is in use");
  });

  test("prevents another pool, which could overlap it", async () => {
    const { code, stderr } = await ctl("apply -f -", { stdin: manifest("green", "10.0.2.0/24") });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("delete ippool/blue --force");
  });

  test("is deleted only at the given revision", async () => {
    const document = JSON.parse(manifest("blue", "10.0.0.0/24"));
    const stale = { ...document, metadata: { ...document.metadata, resourceVersion: "1" } };

    const { code, stderr } = await ctl("delete -f - --force", { stdin: JSON.stringify(stale) });
    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("resourceVersion 1");
  });
});

describe("an unreadable block", () => {
  const [MINE, OTHER] = [prefix("10.0.0.0/28"), prefix("10.0.1.0/28")];
  const pool = (name: string, cidr: string, blockSize = 28) => ({
    stdin: JSON.stringify({
      apiVersion: API_VERSION,
      kind: "IPPool",
      metadata: { name },
      spec: { cidr, blockSize },
    }),
  });
  /** Two pools of one block each: that of "blue" is readable and empty, that of "red" is unreadable. */
  beforeEach(async () => {
    await seed(store, nodeChange("node-1"));
    await seed(store, poolChange("blue", "10.0.0.0/28", { blockSize: 28 }));
    const allocator = openAllocator(store, means());
    await allocator.assign(request("net.a"));
    await allocator.releaseHandle({ handle: "net.a", node: "node-1" });
    await seed(store, poolChange("red", "10.0.1.0/28", { blockSize: 28 }));
    await put(blockKey(OTHER), "{");
    await put(affinityKey("node-1", OTHER), "{}");
  });
  const keysLeft = async () => (await everything())?.map(({ key }) => key);

  test("does not prevent the deletion of another pool", async () => {
    expect(await ctl("delete pool blue")).toEqual({ code: EXIT_OK, stdout: "ippool/blue deleted\n", stderr: "" });
    expect(await keysLeft()).not.toContain(blockKey(MINE));
  });

  test("prevents the deletion of its pool, unless forced; then the block stays", async () => {
    const refused = await ctl("delete pool red");
    expect(refused).toMatchObject({ code: EXIT_FAILED, stdout: "" });
    expect(refused.stderr).toContain("whether its addresses are in use is unknown");
    expect(refused.stderr).toContain(`at "${blockKey(OTHER)}": `);
    expect(refused.stderr).toContain("remove it there only if");
    expect(JSON.parse((await ctl("get pool red -o json")).stdout).spec.disabled).toBe(false);

    const forced = await ctl("delete pool red --force");
    expect(forced).toMatchObject({ code: EXIT_OK, stdout: "ippool/red deleted\n" });
    expect(forced.stderr).toContain(`at "${blockKey(OTHER)}": `);
    expect(await keysLeft()).toContain(blockKey(OTHER));
    expect(await keysLeft()).toContain(affinityKey("node-1", OTHER));
  });

  test("may belong to any pool if its key shows no CIDR", async () => {
    await put(`${blocksPrefix(4)}foreign`, "{");

    expect((await ctl("delete pool blue")).stderr).toContain(`at "${blocksPrefix(4)}foreign": `);
    expect((await ctl("apply -f -", pool("new", "10.0.2.0/24"))).stderr).toContain(`at "${blocksPrefix(4)}foreign": `);
  });

  test("does not prevent the release of a node's other claims, and is reported", async () => {
    const { code, stderr } = await ctl("delete node node-1");

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(`at "${blockKey(OTHER)}": `);
    expect(stderr).toContain("remove it there only if");
    expect(await keysLeft()).not.toContain(resourceKey("nodes", { name: "node-1" }));
    expect(await keysLeft()).not.toContain(blockKey(MINE));
    expect(await keysLeft()).toContain(affinityKey("node-1", OTHER));
    await seed(store, { kind: "delete", key: blockKey(OTHER), revision: await revisionOf(blockKey(OTHER)) });
    expect((await ctl("delete node node-1")).code).toBe(EXIT_OK);
    expect((await readAllRecords(store)).affinities).toEqual([]);
  });

  test("does not concern a node that does not claim it", async () => {
    await seed(store, nodeChange("node-2"));

    expect((await ctl("delete node node-2")).code).toBe(EXIT_OK);
  });

  test("prevents only a pool that it would not fit", async () => {
    await ctl("delete pool red --force");

    expect((await ctl("apply -f -", pool("green", "10.0.2.0/24"))).stdout).toBe("ippool/green created\n");
    expect((await ctl("apply -f -", pool("wide", "10.0.1.0/24", 26))).stderr).toContain(
      "does not fit block 10.0.1.0/28",
    );
    expect((await ctl("apply -f -", pool("red", "10.0.1.0/28"))).stdout).toBe("ippool/red created\n");
  });
});

async function revisionOf(key: string): Promise<string> {
  return (await store.read([{ kind: "key", key }])).answers[0]?.[0]?.revision ?? "";
}

describe("an unreadable ClusterInformation", () => {
  const key = resourceKey("clusterinformations", { name: "default" });

  test.each(["datastore check", "datastore init"])("%s reports how to repair it", async (words) => {
    await put(key, "{");
    const { code, stdout, stderr } = await ctl(words);

    expect(code).toBe(EXIT_FAILED);
    expect(stdout + stderr).toContain(`at "${key}": `);
    expect(stdout + stderr).toContain(`"${identity.adminTool} delete clusterinformation/default --force"`);
    expect(stdout + stderr).toContain(`"${identity.adminTool} datastore init"`);
    expect((await ctl("delete clusterinformation/default --force")).code).toBe(EXIT_OK);
    expect((await ctl("datastore init")).code).toBe(EXIT_OK);
    expect((await ctl("datastore check")).code).toBe(EXIT_OK);
  });
});
