import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../../test/support/admin-context.ts";
import { means, poolChange, prefix, request, reservationChange, seed } from "../../../../test/support/ipam.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { openAllocator } from "../../../ipam/allocator.ts";
import { emptyBlock } from "../../../ipam/block.ts";
import { writeBlock } from "../../../model/ipam-block.ts";
import { blockKey } from "../../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../../main/command.ts";

let store = openMemory();
beforeEach(() => {
  store = openMemory();
});

function ctl(words: string, surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  return runInside(words.split(" "), { store, ...surroundings });
}

async function map(words: string, surroundings: AdminSurroundings = {}): Promise<string> {
  const { code, stdout, stderr } = await ctl(words, surroundings);
  expect([code, stderr]).toEqual([EXIT_OK, ""]);
  return stdout;
}

/** A block of a node with so many addresses in use. */
async function block(cidr: string, used: number, node: string | null = "n1"): Promise<void> {
  const empty = emptyBlock(prefix(cidr), node === null ? undefined : `host:${node}`, 1n);
  const block = {
    ...empty,
    allocations: empty.allocations.map((_, ordinal) => (ordinal < used ? 0 : undefined)),
    unallocated: empty.unallocated.filter((ordinal) => ordinal >= used),
    attributes: used === 0 ? [] : [{ handleId: "net.x", secondary: {} }],
  };
  await seed(store, { kind: "put", key: blockKey(block.cidr), value: writeBlock(block) });
}

describe("ipam show --map", () => {
  test("draws how full each block of a pool is", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/20"), reservationChange("r", ["10.0.15.128/25"]));
    for (const [index, used] of [0, 1, 11, 22, 33, 44, 63, 64].entries()) await block(`10.0.${index}.64/26`, used);

    expect(await map("ipam show --map")).toBe(
      [
        "blue: 10.0.0.0/20, 8 of 64 blocks, 238 of 4096 addresses in use",
        "Each mark is a block (/26, 64 addresses), each row a /20.",
        "10.0.0.0     ·▁···▂·· ·▃···▄·· ·▅···▆·· ·▇···█·· ········ ········ ········ ······××",
        "",
        "· no block   × reserved   ▁ no address in use   ▂▃▄▅▆▇ in use in part   █ all in use   ? unreadable",
        "",
      ].join("\n"),
    );
  });

  test("fits the terminal, and joins rows without blocks", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/16"));
    await block("10.0.0.0/26", 1);
    await block("10.0.128.0/26", 64);

    expect(await map("ipam show --map", { terminalWidth: 60 })).toBe(
      [
        "blue: 10.0.0.0/16, 2 of 1024 blocks, 65 of 65536 addresses in use",
        "Each mark is a block (/26, 64 addresses), each row a /21.",
        "10.0.0.0      ▂······· ········ ········ ········",
        "…             15 rows without blocks",
        "10.0.128.0    █······· ········ ········ ········",
        "…             15 rows without blocks",
        "",
        "· no block   × reserved   ▁ no address in use",
        "▂▃▄▅▆▇ in use in part   █ all in use   ? unreadable",
        "",
      ].join("\n"),
    );
  });

  test("draws which node has each block", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/22"), poolChange("red", "10.9.0.0/24", { disabled: true }));
    for (const index of [0, 1, 2]) await block(`10.0.${index}.0/26`, 1, "n2");
    await block("10.0.3.0/26", 1, "n1");
    await block("10.0.3.64/26", 1, null);

    expect(await map("ipam show --map=node")).toBe(
      [
        "blue: 10.0.0.0/22, 5 of 16 blocks, 5 of 1024 addresses in use",
        "Each mark is a block (/26, 64 addresses), each row a /22.",
        "10.0.0.0    a···a··· a···b-··",
        "",
        "red (disabled): 10.9.0.0/24, 0 of 4 blocks, 0 of 256 addresses in use",
        "It has no blocks yet.",
        "",
        "· no block   × reserved   a n2   b n1   + several nodes   - no node   ? unreadable",
        "",
      ].join("\n"),
    );
    expect(await map("ipam show --map --pool red")).not.toContain("blue");
  });

  test("a pool of thousands of blocks takes a screen: 4096 marks, in rows of 64", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/14"));
    for (let index = 0; index < 4096; index += 4) {
      await block(`10.${index >> 10}.${(index >> 2) & 255}.0/26`, (index >> 2) % 65);
    }
    const lines = (await map("ipam show --map")).split("\n");

    expect(lines.length).toBe(2 + 64 + 3);
    expect(lines[2]).toBe("10.0.0.0      ▁···▂··· ▂···▂··· ▂···▂··· ▂···▂··· ▂···▂··· ▂···▃··· ▃···▃··· ▃···▃···");
  });

  test("of a huge pool only the part with blocks is drawn, and a mark may be many blocks", async () => {
    await seed(store, poolChange("six", "fd00::/64"), poolChange("ten", "10.0.0.0/8"));
    await openAllocator(store, means()).assign(
      request("net.a", { addressRequests: [{ kind: "automatic", family: 6 }] }),
    );
    await block("10.0.0.0/26", 32);
    await block("10.255.0.0/26", 64);
    const text = await map("ipam show --map", { terminalWidth: 120 });

    expect(text).toMatch(/six: fd00::\/64, 1 of 2\.9e\+17 blocks, 1 of 1\.8e\+19 addresses in use/);
    expect(text).toMatch(/Only fd00::[0-9a-f:]*\/116 is drawn: the rest of the pool has no blocks\./);
    expect(text).toContain("Each mark is 64 blocks (/20, 4096 addresses), each row a /14.");
  });

  test("uses colours on a terminal only", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/24"));
    await block("10.0.0.0/26", 64);

    expect(await map("ipam show --map", { isTerminal: true })).toContain("\u001b[31m█\u001b[0m\u001b[2m···\u001b[0m");
    expect(await map("ipam show --map", { isTerminal: true, env: { NO_COLOR: "1" } })).toContain("█···");
  });

  test("marks unreadable blocks, and reports them", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/24"), {
      kind: "put",
      key: blockKey(prefix("10.0.0.64/26")),
      value: "{",
    });
    const { code, stdout, stderr } = await ctl("ipam show --map");

    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toContain("·?··");
    expect(stderr).not.toBe("");
  });

  test.each([
    "--map --ip 10.0.0.1",
    "--map --show-blocks",
    "--map -o json",
    "--pool blue",
    "--map --pool none",
    "--map=x",
  ])("%s is wrong usage", async (words) => {
    expect((await ctl(`ipam show ${words}`)).code).toBe(EXIT_USAGE);
  });
});

test("a pool as the value of --map is refused with the option that selects one", async () => {
  expect((await ctl("ipam show --map=blue")).stderr).toContain("--pool");
});

describe("ipam show --show-borrowed", () => {
  test("lists addresses that nodes use from blocks of others", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/30", { blockSize: 30 }));
    const allocator = openAllocator(store, means());
    await allocator.assign(request("net.a", { node: "n1" }));
    await allocator.assign(request("net.b", { node: "n2", attributes: { pod: "web", namespace: "shop" } }));

    expect(await map("ipam show --show-borrowed")).toBe(
      [
        "IP         BORROWING NODE   BLOCK         BLOCK OWNER   TYPE   ALLOCATED TO",
        "10.0.0.1   n2               10.0.0.0/30   n1            pod    shop/web",
        "",
      ].join("\n"),
    );
    expect(JSON.parse(await map("ipam show --show-borrowed -o json")).borrowed).toHaveLength(1);
  });
});
