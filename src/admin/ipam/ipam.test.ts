import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import {
  letRest,
  means,
  nodeChange,
  poolChange,
  prefix,
  request,
  reservationChange,
  seed,
  textsOf,
} from "../../../test/support/ipam.ts";
import { LEVELS } from "../../../test/support/stopping-memory.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import type { Change } from "../../datastore/datastore.ts";
import { type MemoryOptions, openMemory } from "../../datastore/memory/memory.ts";
import { MemoryTable } from "../../datastore/memory/table.ts";
import { API_VERSION } from "../../identity.ts";
import { readAllRecords } from "../../ipam/all-records.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { findProblems } from "../../ipam/invariants.ts";
import { type IPAMBlock, readBlock, writeBlock } from "../../model/ipam-block.ts";
import { affinityKey, blockKey, handleKey, resourceKey } from "../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";

const READS_OF_A_LOOK = 9;
const LATER = new Date("2026-01-03T03:04:05Z");

let store = openMemory();
const begin = async (options: MemoryOptions = {}) => {
  store = openMemory(new MemoryTable(), options);
  await seed(store, poolChange("blue", "10.0.0.0/28", { blockSize: 28 }));
};
beforeEach(() => begin());

function ctl(words: string, surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  return runInside(words.split(" "), { store, ...surroundings });
}

// biome-ignore lint/suspicious/noExplicitAny: what a script would read
async function json(words: string, surroundings: AdminSurroundings = {}): Promise<any> {
  return JSON.parse((await ctl(`${words} -o json`, surroundings)).stdout);
}

const allocator = () => openAllocator(store, means());

async function assign(handle: string, more: Parameters<typeof request>[1] = {}): Promise<string> {
  return textsOf(await allocator().assign(request(handle, more)))[0] ?? "";
}

describe("ipam show", () => {
  test("shows used and free addresses of every pool, with a bar", async () => {
    await assign("net.a");
    await assign("net.b");

    expect((await ctl("ipam show")).stdout).toBe(
      [
        "POOL   CIDR          SIZE   USED   RESERVED   FREE   USAGE",
        "blue   10.0.0.0/28   16     2      0          14     ███░░░░░░░░░░░░░░░░░ 12 %",
        "",
      ].join("\n"),
    );
  });

  test("marks a disabled pool", async () => {
    await ctl('patch pool blue -p {"spec":{"disabled":true}}');

    expect((await ctl("ipam show")).stdout).toContain("blue (disabled)");
    expect(await json("ipam show")).toMatchObject({ pools: [{ pool: "blue", disabled: true }] });
  });

  test("counts reserved addresses as not free, each once", async () => {
    await seed(store, reservationChange("r", ["10.0.0.0/30", "10.0.0.1", "10.9.0.0/16"]));
    await assign("net.a", { addressRequests: [{ kind: "given", address: { family: 4, value: 0x0a00_0001n } }] });
    const { pools } = await json("ipam show");

    expect(pools).toEqual([
      {
        pool: "blue",
        disabled: false,
        cidr: "10.0.0.0/28",
        size: 16,
        used: 1,
        kept: 0,
        waiting: 0,
        reserved: 3,
        unreadable: 0,
        free: 12,
        resting: 0,
        blockCount: 1,
      },
    ]);
    expect((await ctl("ipam show --show-blocks")).stdout.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
      ["POOL", "CIDR", "NODE", "SIZE", "USED", "RESERVED", "FREE", "USAGE"],
      ["blue", "10.0.0.0/28", "16", "1", "3", "12", expect.any(String)],
      ["", "10.0.0.0/28", "node-1", "16", "1", "3", "12", expect.any(String)],
      [""],
    ]);
  });

  test("--addresses lists every address with its place and owner", async () => {
    await seed(store, poolChange("six", "fd00::/122"));
    await assign("net.b", { addressRequests: [{ kind: "automatic", family: 6 }] });
    const address = await assign("net.a", { attributes: { pod: "web-0", namespace: "prod", node: "node-1" } });
    const { addresses } = await json("ipam show --addresses");

    expect(addresses).toEqual([
      {
        address,
        pool: "blue",
        block: "10.0.0.0/28",
        node: "node-1",
        handle: "net.a",
        namespace: "prod",
        pod: "web-0",
        since: "2026-01-02T03:04:05.000Z",
      },
      expect.objectContaining({ pool: "six", handle: "net.b" }),
    ]);
    const [header, first] = (await ctl("ipam show --addresses")).stdout.split("\n");
    expect(header?.split(/ +/)).toEqual(["ADDRESS", "POOL", "BLOCK", "NODE", "HANDLE", "NAMESPACE", "WORKLOAD"]);
    expect(first?.split(/ +/)).toEqual([address, "blue", "10.0.0.0/28", "node-1", "net.a", "prod", "web-0"]);
  });

  test("--addresses shows addresses outside all pools, and says if there are none", async () => {
    expect((await ctl("ipam show --addresses")).stderr).toBe("No addresses are in use.\n");
    await assign("net.a");
    await ctl("delete pool blue --force");

    expect((await ctl("ipam show --addresses")).stdout).toContain("(no pool)");
    expect((await ctl("ipam show --addresses --show-blocks")).code).toBe(EXIT_USAGE);
  });

  test("shows blocks with their nodes, including those outside all pools", async () => {
    await assign("net.a");
    await ctl("delete pool blue --force");
    const { stdout } = await ctl("ipam show --show-blocks");

    expect(stdout).toContain("(no pool)");
    expect(stdout).toContain("10.0.0.0/28");
    expect(stdout).toContain("(no node)");
  });

  test("supports the sizes of IPv6 pools", async () => {
    await seed(store, poolChange("wide", "fd00::/48"));
    const { pools } = await json("ipam show");

    expect(pools[1]).toMatchObject({ pool: "wide", size: String(2n ** 80n), used: 0 });
    expect((await ctl("ipam show")).stdout).toContain("1.2e+24");
  });

  test("names the addresses of tunnels, which are released only if their node is gone, or by force", async () => {
    await seed(store, nodeChange("node-1"));
    const address = await assign("vxlan-tunnel-addr-node-1", { attributes: { type: "vxlanTunnelAddress" } });

    expect((await ctl(`ipam show --ip ${address}`)).stdout).toContain("VXLAN tunnel of node node-1");
    expect((await ctl("ipam show --addresses")).stdout).toContain("VXLAN tunnel");
    expect((await json("ipam show --addresses")).addresses).toMatchObject([{ address, tunnel: "VXLAN tunnel" }]);
    expect((await ctl("ipam check --no-grace")).code).toBe(EXIT_OK);
    const refused = await ctl(`ipam release --ip ${address}`);
    expect([refused.code, refused.stderr]).toEqual([
      EXIT_FAILED,
      expect.stringContaining("VXLAN tunnel of node node-1"),
    ]);
    expect((await ctl("ipam release --handle vxlan-tunnel-addr-node-1")).code).toBe(EXIT_FAILED);
    expect((await ctl(`ipam release --ip ${address} --force`)).code).toBe(EXIT_OK);
  });

  test("shows of a free address by whom it was released, and until when it rests", async () => {
    const address = await assign("net.a", { attributes: { pod: "web-0", namespace: "prod" } });
    await ctl("ipam release --handle net.a --force");

    expect(await json(`ipam show --ip ${address}`)).toMatchObject({
      state: "free",
      released: { at: "2026-01-02T03:04:05.000Z", namespace: "prod", restsUntil: "2026-01-02T03:07:05.000Z" },
    });
    expect((await ctl(`ipam show --ip ${address}`)).stdout).toContain(
      'Released:   2026-01-02T03:04:05.000Z by namespace "prod"; rests until 2026-01-02T03:07:05.000Z',
    );
    expect(await json("ipam show --ip 10.0.0.15")).not.toHaveProperty("released");
  });

  test("shows the owner of an address, its node and the time of assignment", async () => {
    const address = await assign("net.a", { attributes: { pod: "web-0", namespace: "prod" } });

    expect(await json(`ipam show --ip ${address}`)).toMatchObject({
      state: "in use",
      pool: "blue",
      block: "10.0.0.0/28",
      handle: "net.a",
      node: "node-1",
      since: "2026-01-02T03:04:05.000Z",
      attributes: { pod: "web-0" },
    });
    expect((await ctl(`ipam show --ip ${address}`)).stdout).toContain("web-0");
    expect(await json("ipam show --ip 10.0.0.15")).toMatchObject({ state: "free", pool: "blue" });
    expect(await json("ipam show --ip 192.0.2.1")).toMatchObject({ state: "in no pool" });
    expect((await ctl("ipam show --ip 10.0.0.300")).code).toBe(EXIT_USAGE);
  });

  test("shows an owner's attributes on one line, whatever they contain", async () => {
    const address = await assign("net.a", { attributes: { pod: "web\nNode: \u001b[31mother" } });

    expect((await ctl(`ipam show --ip ${address}`)).stdout).toContain("Pod:        web\\nNode: \\u001b[31mother\n");
  });

  test("does not report a reserved address as free", async () => {
    await seed(store, reservationChange("r", ["10.0.0.4/30"]));

    expect(await json("ipam show --ip 10.0.0.5")).toMatchObject({ state: "reserved", pool: "blue" });
  });

  test("lists blocks in the order of their addresses", async () => {
    await seed(store, poolChange("cut", "10.0.1.0/28", { blockSize: 30 }));
    for (const value of [0x0a00_010cn, 0x0a00_0104n, 0x0a00_0100n]) {
      await assign(`net.${value}`, { addressRequests: [{ kind: "given", address: { family: 4, value } }] });
    }
    const { pools } = await json("ipam show --show-blocks");

    expect(pools[1].blocks.map((block: { cidr: string }) => block.cidr)).toEqual([
      "10.0.1.0/30",
      "10.0.1.4/30",
      "10.0.1.12/30",
    ]);
  });
});

describe("ipam release", () => {
  test("releases by address and by handle; releasing again is not an error", async () => {
    const [first, second] = [await assign("net.a"), await assign("net.b")];

    expect((await ctl(`ipam release --ip ${first}`)).stdout).toBe(`Released ${first}\n`);
    expect((await ctl(`ipam release --ip ${first}`)).code).toBe(EXIT_OK);
    expect(await json("ipam release --handle net.b")).toEqual({ released: [second] });
    expect((await ctl("ipam check")).code).toBe(EXIT_OK);
  });

  test("reports an address in no pool and an unknown handle", async () => {
    const address = await ctl("ipam release --ip 192.0.2.1");
    const handle = await ctl("ipam release --handle net.b");

    expect(address).toMatchObject({ code: EXIT_FAILED, stdout: "" });
    expect(address.stderr).toContain("Cannot release 192.0.2.1: it is not in any pool");
    expect(handle).toMatchObject({ code: EXIT_FAILED, stdout: "" });
    expect(handle.stderr).toContain('Cannot release handle "net.b": it does not exist');
  });

  test("does not release an address of another handle", async () => {
    const address = await assign("net.a");

    expect((await ctl(`ipam release --ip ${address} --handle net.b`)).code).toBe(EXIT_FAILED);
    expect(await json(`ipam show --ip ${address}`)).toMatchObject({ handle: "net.a" });
    expect((await ctl("ipam release")).code).toBe(EXIT_USAGE);
  });
});

describe("ipam check", () => {
  const block = prefix("10.0.0.0/28");

  async function changeBlock(change: (block: IPAMBlock) => IPAMBlock): Promise<void> {
    const entry = (await store.read([{ kind: "key", key: blockKey(block) }])).answers[0]?.[0];
    const changed = change(readBlock(entry?.value ?? "", blockKey(block)));
    await seed(store, { kind: "put", key: blockKey(block), value: writeBlock(changed) });
  }

  const put = (key: string, value: object): Change => ({ kind: "put", key, value: JSON.stringify(value) });

  test("finds no problems in what the allocator wrote", async () => {
    await assign("net.a");
    const { code, stdout } = await ctl("ipam check");

    expect({ code, stdout }).toEqual({
      code: EXIT_OK,
      stdout: "Checked 1 pool, 1 block, 1 address in use, 1 handle: no problems\n",
    });
  });

  const damages: readonly (readonly [string, () => Promise<void>])[] = [
    ["handle-without-block", () => seed(store, put(handleKey("net.x"), { block: { "10.0.0.48/28": 1 } }))],
    ["handle-count-wrong", () => seed(store, put(handleKey("net.a"), { block: { "10.0.0.0/28": 3 } }))],
    ["allocation-without-handle", () => seed(store, put(handleKey("net.a"), { block: {} }))],
    ["affinity-without-block", () => seed(store, put(affinityKey("n9", prefix("10.0.0.32/28")), { state: "pending" }))],
    ["affinity-stale", () => seed(store, put(affinityKey("n9", block), { state: "confirmed" }))],
    [
      "affinity-unconfirmed",
      () => seed(store, put(affinityKey("node-1", prefix("10.0.0.0/28")), { state: "pendingDeletion" })),
    ],
    ["block-without-affinity", () => changeBlock((found) => ({ ...found, affinity: "host:n9" }))],
    ["block-inconsistent", () => changeBlock((found) => ({ ...found, unallocated: [0, 1, 1] }))],
    ["block-inconsistent", () => changeBlock((found) => ({ ...found, sequenceNumber: 0n }))],
  ];

  const atEachLevel = LEVELS.flatMap((level) => damages.map(([kind, damage]) => [kind, level, damage] as const));
  test.each(atEachLevel)("finds %s, and --fix repairs it without losing an address, %s at a time", async (...given) => {
    const [kind, atomicity, damage] = given;
    await begin({ atomicity });
    const address = await assign("net.a");
    await damage();
    const before = await json("ipam check");

    expect(before.findings.map((finding: { kind: string }) => finding.kind)).toContain(kind);
    expect((await ctl("ipam check")).code).toBe(EXIT_FAILED);
    await ctl("ipam check --fix");
    await ctl("ipam check --fix");
    expect(findProblems(await readAllRecords(store))).toEqual([]);
    expect((await ctl("ipam check")).code).toBe(EXIT_OK);
    expect(await json(`ipam show --ip ${address}`)).toMatchObject({ state: "in use", handle: "net.a" });
  });

  test("deletes an empty block without a node, when its addresses have rested", async () => {
    await assign("net.a");
    await allocator().releaseHandle({ handle: "net.a", node: "node-1" });
    await changeBlock(({ affinity: _, ...rest }) => rest);
    const entry = (await store.read([{ kind: "key", key: affinityKey("node-1", block) }])).answers[0]?.[0];
    await seed(store, { kind: "delete", key: affinityKey("node-1", block), revision: entry?.revision ?? "" });

    expect((await ctl("ipam check")).code).toBe(EXIT_OK);
    await letRest(store);
    expect((await json("ipam check --fix")).findings).toMatchObject([{ kind: "block-abandoned", fixed: true }]);
    expect((await readAllRecords(store)).blocks).toEqual([]);
  });

  test("reports addresses outside all pools, and does not change them", async () => {
    const address = await assign("net.a");
    await ctl("delete pool blue --force");
    const report = await json("ipam check --fix");

    expect(report).toMatchObject({
      ok: false,
      findings: [{ kind: "allocation-outside-pools", address, fixed: false }],
    });
    expect(await json(`ipam show --ip ${address}`)).toMatchObject({ state: "in use" });
  });

  test("does not report operations in progress", async () => {
    const real = openMemory();
    await seed(real, put(handleKey("net.x"), { block: { "10.0.0.48/28": 1 } }));
    let reads = 0;
    const settling = storeAround(real, {
      read: (wanted) => {
        reads += 1;
        return reads > READS_OF_A_LOOK ? store.read(wanted) : real.read(wanted);
      },
    });

    expect((await ctl("ipam check", { store: settling })).code).toBe(EXIT_OK);
    expect(reads).toBeGreaterThan(READS_OF_A_LOOK);
  });
});

describe("ipam check of endpoints", () => {
  const endpoint = (name: string, spec: object): Change => ({
    kind: "put",
    key: resourceKey("workloadendpoints", { name, namespace: "prod" }),
    value: JSON.stringify({
      apiVersion: API_VERSION,
      kind: "WorkloadEndpoint",
      metadata: { name, namespace: "prod" },
      spec,
    }),
  });
  const profileOf = (network: string): Change => ({
    kind: "put",
    key: resourceKey("profiles", { name: network }),
    value: JSON.stringify({
      apiVersion: API_VERSION,
      kind: "Profile",
      metadata: { name: network },
      spec: { labelsToApply: { [network]: "" } },
    }),
  });
  const pod = { network: "net", attributes: { pod: "web-0", namespace: "prod" } };
  const kinds = async (words: string, now = LATER) =>
    (await json(words, { now })).findings.map((finding: { kind: string }) => finding.kind);

  test("finds an address that two endpoints use, and one that is not allocated", async () => {
    await seed(
      store,
      endpoint("a", { ipNetworks: ["10.0.0.9/32"], pod: "a" }),
      endpoint("b", { ipNetworks: ["10.0.0.9/32"], pod: "b" }),
    );

    expect(await kinds("ipam check")).toEqual(["address-twice", "endpoint-without-allocation"]);
  });

  test("of an address, handle or endpoint in use needs --force and names the user; a handle takes its endpoint along", async () => {
    const used = await assign("net.c1");
    await seed(store, endpoint("a", { ipNetworks: [`${used}/32`], containerID: "c1", node: "n1", endpoint: "eth0" }));
    const refused = [
      await ctl(`ipam release --ip ${used}`),
      await ctl("ipam release --handle net.c1"),
      await ctl("delete workloadendpoint a -n prod"),
    ];

    for (const { code, stderr } of refused) {
      expect(code).toBe(EXIT_FAILED);
      for (const each of ["c1", "--force"]) expect(stderr).toContain(each);
    }
    for (const { stderr } of refused.slice(0, 2)) expect(stderr).toContain("workloadendpoint/prod/a");
    expect((await ctl(`ipam release --ip ${used} --force`)).stdout).toBe(
      `Released ${used}, deleted workloadendpoint/prod/a\n`,
    );
    const again = await assign("net.c2");
    await seed(
      store,
      endpoint("b", { ipNetworks: [`${again}/32`, "10.9.0.9/32"], containerID: "c2", endpoint: "eth0" }),
    );
    const { code, stdout, stderr } = await ctl("ipam release --handle net.c2 --force");
    expect({ code, stdout }).toEqual({ code: EXIT_OK, stdout: `Released ${again}\n` });
    expect(stderr).toContain("workloadendpoint/prod/b stays and names");
    expect((await ctl("delete workloadendpoint b -n prod")).code).toBe(EXIT_OK);
  });

  test("reports an address without an endpoint at once with --no-grace, and says that it waits without", async () => {
    const address = await assign("net.c1", { network: "net" });
    await seed(store, profileOf("net"));
    const now = new Date("2026-01-02T03:05:05Z");

    const patient = await ctl("ipam check", { now });
    expect(patient).toMatchObject({ code: EXIT_OK, stderr: expect.stringContaining("--no-grace") });
    expect((await ctl("ipam check --no-grace", { now })).stdout).toContain(`Address ${address} is allocated`);
    expect((await ctl("ipam check --no-grace --fix", { now })).code).toBe(EXIT_OK);
    expect(await json(`ipam show --ip ${address}`)).toMatchObject({ state: "free" });
  });

  test("releases an address whose endpoint has been gone for an hour", async () => {
    const address = await assign("net.a", pod);
    await seed(store, profileOf("net"));

    expect(await kinds("ipam check", new Date("2026-01-02T03:30:00Z"))).toEqual([]);
    expect(await kinds("ipam check")).toEqual(["allocation-without-endpoint"]);
    expect((await ctl("ipam check --fix", { now: LATER })).code).toBe(EXIT_OK);
    expect(await json(`ipam show --ip ${address}`)).toMatchObject({ state: "free" });
    expect(await kinds("ipam check")).toEqual([]);
  });

  test("does not change an address with an endpoint, nor a network that the CNI plugin does not serve", async () => {
    const address = await assign("net.a", pod);
    await assign("other.b", { network: "other" });
    await seed(store, profileOf("net"), endpoint("a", { ipNetworks: [`${address}/32`], pod: "web-0" }));

    expect(await kinds("ipam check")).toEqual([]);
  });

  test("waits for the DEL of a sandbox that another has just replaced", async () => {
    await assign("net.old", pod);
    const young = openAllocator(store, means({ now: () => LATER }));
    const [successor = ""] = textsOf(await young.assign(request("net.new", pod)));
    await seed(store, profileOf("net"), endpoint("a", { ipNetworks: [`${successor}/32`], pod: "web-0" }));

    expect(await kinds("ipam check")).toEqual([]);
    expect(await kinds("ipam check", new Date("2026-01-03T05:00:00Z"))).toEqual(["allocation-without-endpoint"]);
  });
});
