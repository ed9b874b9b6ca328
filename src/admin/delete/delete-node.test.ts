import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../test/support/admin-context.ts";
import { means, nodeChange, poolChange, prefix, request, seed } from "../../../test/support/ipam.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { identity } from "../../identity.ts";
import { readAllRecords } from "../../ipam/all-records.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { findProblems } from "../../ipam/invariants.ts";
import { writeAffinity } from "../../model/block-affinity.ts";
import { affineNode } from "../../model/ipam-block.ts";
import { affinityKey, resourceKey } from "../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

const DUAL = [
  { kind: "automatic", family: 4 },
  { kind: "automatic", family: 6 },
] as const;

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await seed(store, nodeChange("node-1"), nodeChange("node-10"));
  await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28 }), poolChange("six", "fd00::/64"));
});

const allocator = () => openAllocator(store, means());
const ctl = (words: string, on: Datastore = store): Promise<AdminRun> => runInside(words.split(" "), { store: on });
const problems = async () => findProblems(await readAllRecords(store));

/** The node of each block, and the nodes with claims. */
async function owners(): Promise<{ blocks: readonly (string | undefined)[]; claims: readonly string[] }> {
  const { blocks, affinities } = await readAllRecords(store);
  return { blocks: blocks.map(affineNode), claims: affinities.map(({ node }) => node) };
}

/** Leaves the node with an empty block of each family. */
async function claimBlocks(node: string): Promise<void> {
  await allocator().assign(request(`net.${node}`, { node, addressRequests: DUAL }));
  await allocator().releaseHandle({ handle: `net.${node}`, node });
}

async function forget(node: string): Promise<void> {
  const { answers } = await store.read([{ kind: "key", key: resourceKey("nodes", { name: node }) }]);
  const [entry] = answers[0] ?? [];
  if (!entry) throw new Error("expected a node");
  await store.commit([{ kind: "delete", key: entry.key, revision: entry.revision }]);
}

describe("delete node", () => {
  test("deletes its empty blocks, of both families, and no other node's", async () => {
    await claimBlocks("node-1");
    await claimBlocks("node-10");

    expect(await ctl("delete node node-1")).toEqual({
      code: EXIT_OK,
      stdout: "node/node-1 deleted\n",
      stderr: "note: its claims on 2 blocks were released\n",
    });
    expect(await owners()).toEqual({ blocks: ["node-10", "node-10"], claims: ["node-10", "node-10"] });
    expect((await ctl("get nodes -o name")).stdout).toBe("node/node-10\n");
  });

  test("keeps addresses in use, in a block without a node that is deleted with the last of them", async () => {
    await allocator().assign(request("net.c1"));
    const refused = await ctl("delete node node-1");
    expect(refused.code).toBe(EXIT_FAILED);
    for (const each of ["net.c1", "--force"]) expect(refused.stderr).toContain(each);
    const { code, stderr } = await ctl("delete node node-1 --force");

    expect(code).toBe(EXIT_OK);
    expect(stderr).toBe(
      "note: its claim on 1 block was released; 1 address stays in use, in blocks that no longer belong to a node\n",
    );
    expect(await owners()).toEqual({ blocks: [undefined], claims: [] });
    expect(await problems()).toEqual([]);
    await allocator().releaseHandle({ handle: "net.c1", node: "node-1" });
    expect(await owners()).toEqual({ blocks: [], claims: [] });
  });

  test("releases the addresses of its tunnels, and is not kept by them", async () => {
    const tunnel = (node: string) =>
      request(`vxlan-tunnel-addr-${node}`, {
        ...{ node, attributes: { type: "vxlanTunnelAddress" }, intendedUse: "Tunnel" },
      });
    await allocator().assign(tunnel("node-1"));
    await allocator().assign(tunnel("node-10"));

    expect((await ctl("delete node node-1")).code).toBe(EXIT_OK);
    expect(await owners()).toEqual({ blocks: ["node-10"], claims: ["node-10"] });
    expect(await problems()).toEqual([]);
  });

  test("lists the labels of its containers, which stay", async () => {
    for (const [node, container] of [
      ["node-1", "web"],
      ["node-1", "db"],
      ["node-10", "web"],
    ]) {
      await ctl(`label container ${container} --node ${node} role=x`);
    }
    await ctl("label network pods tier=x");

    expect((await ctl("delete node node-1")).stderr).toBe(
      "note: labels of its containers stay for a node of the same name; to delete them: " +
        `${identity.adminTool} delete containerlabels node-1.db node-1.web\n`,
    );
    expect((await ctl("delete node node-1")).code).toBe(EXIT_FAILED);
    expect((await ctl("delete containerlabels node-1.db node-1.web")).code).toBe(EXIT_OK);
    expect((await ctl("delete node node-10")).stderr).toContain("containerlabels node-10.web\n");
  });

  test("names three of many labels, and how to see all", async () => {
    for (const name of ["a", "b", "c", "d", "e"]) await ctl(`label container ${name} --node node-1 role=x`);

    expect((await ctl("delete node node-1")).stderr).toBe(
      "note: labels of its containers stay for a node of the same name: 5 ContainerLabels " +
        `(node-1.a, node-1.b, node-1.c and 2 more); to see them: ${identity.adminTool} get containerlabels\n`,
    );
  });

  test("prints no note for a node without claims", async () => {
    expect(await ctl("delete node node-1")).toEqual({ code: EXIT_OK, stdout: "node/node-1 deleted\n", stderr: "" });
  });

  test.each(["pending", "confirmed", "pendingDeletion"] as const)(
    "deletes a claim that is %s and has no block",
    async (state) => {
      const key = affinityKey("node-1", prefix("10.0.0.16/28"));
      await seed(store, { kind: "put", key, value: writeAffinity({ state, deleted: false }) });

      expect((await ctl("delete node node-1")).code).toBe(EXIT_OK);
      expect(await owners()).toEqual({ blocks: [], claims: [] });
    },
  );

  test("removes leftover claims of a deleted node, and reports it as not found after that", async () => {
    await claimBlocks("node-1");
    await forget("node-1");

    expect((await ctl("delete node node-1")).stdout).toBe("node/node-1 deleted\n");
    expect(await owners()).toEqual({ blocks: [], claims: [] });
    expect((await ctl("delete node node-1")).code).toBe(EXIT_FAILED);
    expect((await ctl("delete node node-1 --ignore-not-found")).stdout).toBe("node/node-1 not found\n");
  });

  test("releases nothing of a node that it fails to delete", async () => {
    await claimBlocks("node-1");
    const stdin = (await ctl("get node node-1 -o json")).stdout;
    await ctl("label node node-1 rack=a");

    expect((await runInside(["delete", "-f", "-"], { store, stdin })).code).toBe(EXIT_FAILED);
    expect((await owners()).claims).toEqual(["node-1", "node-1"]);
  });

  test("decides again about a block that is used in the meantime", async () => {
    await claimBlocks("node-1");
    const assign = () => allocator().assign(request("net.late"));

    expect((await ctl("delete node node-1", overtaken(assign))).code).toBe(EXIT_OK);
    expect(await owners()).toEqual({ blocks: [undefined], claims: [] });
    expect(await problems()).toEqual([]);
  });
});

/** Runs something between the read of a block and the release of the claim on it. */
function overtaken(happening: () => Promise<unknown>): Datastore {
  let isLate = false;
  return storeAround(store, {
    commit: async (changes) => {
      if (!isLate && changes.length > 1) {
        isLate = true;
        await happening();
      }
      return store.commit(changes);
    },
  });
}

describe("delete ippool", () => {
  test("releases the addresses of tunnels of nodes that are gone, and is not kept by them", async () => {
    const tunnel = { node: "gone", attributes: { type: "vxlanTunnelAddress" }, intendedUse: "Tunnel" as const };
    await allocator().assign(request("vxlan-tunnel-addr-gone", tunnel));
    const [pool = ""] = (await ctl("get ippools -o name")).stdout.split("\n");
    const [kind = "", name = ""] = pool.split("/");

    expect((await ctl(`delete ${kind} ${name}`)).code).toBe(EXIT_OK);
    expect(await owners()).toEqual({ blocks: [], claims: [] });
    expect(await problems()).toEqual([]);
  });

  test("keeps the addresses of tunnels if a workload got an address of the pool meanwhile", async () => {
    const attributes = { type: "vxlanTunnelAddress" };
    await allocator().assign(request("vxlan-tunnel-addr-node-1", { attributes, intendedUse: "Tunnel" }));
    let isLate = false;
    const late = storeAround(store, {
      commit: async (changes) => {
        if (!isLate) await allocator().assign(request("net.late"));
        isLate = true;
        return store.commit(changes);
      },
    });

    expect((await ctl("delete ippool blue", late)).code).toBe(EXIT_FAILED);
    expect((await readAllRecords(store)).handles.map(({ handleId }) => handleId).toSorted()).toEqual([
      "net.late",
      "vxlan-tunnel-addr-node-1",
    ]);
  });
});
