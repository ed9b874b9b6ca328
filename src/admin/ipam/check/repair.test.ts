import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../../test/support/admin-context.ts";
import { means, nodeChange, poolChange, prefix, request, seed, textsOf } from "../../../../test/support/ipam.ts";
import { LEVELS, stoppingMemory } from "../../../../test/support/stopping-memory.ts";
import { storeAround } from "../../../../test/support/wrapped-store.ts";
import type { Change } from "../../../datastore/datastore.ts";
import { type MemoryOptions, openMemory } from "../../../datastore/memory/memory.ts";
import { MemoryTable } from "../../../datastore/memory/table.ts";
import { API_VERSION, identity } from "../../../identity.ts";
import { readAllRecords } from "../../../ipam/all-records.ts";
import { openAllocator } from "../../../ipam/allocator.ts";
import { findProblems } from "../../../ipam/invariants.ts";
import { NETWORK_ANNOTATION } from "../../../model/endpoint-labels.ts";
import { writeBlock } from "../../../model/ipam-block.ts";
import { affinityKey, blockKey, handleKey, resourceKey } from "../../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK } from "../../main/command.ts";

let table = new MemoryTable();
let store = openMemory(table);
const begin = async (options: MemoryOptions = {}) => {
  table = new MemoryTable();
  store = openMemory(table, options);
  await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28 }));
};
beforeEach(() => begin());

function ctl(words: string, surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  return runInside(words.split(" "), { store, ...surroundings });
}

// biome-ignore lint/suspicious/noExplicitAny: what a script would read
async function json(words: string): Promise<any> {
  return JSON.parse((await ctl(`${words} -o json`)).stdout);
}

/** The commands that the remedy of the only finding that is not fixed names, without the name of the tool. */
async function commandsToFix(): Promise<readonly string[]> {
  const { findings } = await json("ipam check --fix");
  const left = findings.filter(({ fixed }: { fixed: boolean }) => !fixed);
  expect(left).toHaveLength(1);
  const commands = String(left[0].remedy).matchAll(new RegExp(`"${identity.adminTool} ([^"]*)"`, "g"));
  return [...commands].map(([, command]) => command ?? "");
}

const allocator = () => openAllocator(store, means());

async function assign(handle: string, more: Parameters<typeof request>[1] = {}): Promise<string> {
  return textsOf(await allocator().assign(request(handle, more)))[0] ?? "";
}

/** The address of 10.0.0.0/24 that ends with this number. */
const given = (handle: string, last: bigint, node: string) =>
  assign(handle, { node, addressRequests: [{ kind: "given", address: { family: 4, value: 0x0a00_0000n + last } }] });

interface EndpointGiven {
  readonly container?: string;
  readonly node?: string;
  readonly pod?: string;
  readonly addresses: readonly string[];
}

/** As the CNI plugin writes it, apart from its name. */
function endpoint(name: string, { container, node, pod, addresses }: EndpointGiven): Change {
  const spec = {
    ...(container === undefined ? {} : { containerID: container, endpoint: "eth0", profiles: ["net"] }),
    ...(node === undefined ? {} : { node }),
    ...(pod === undefined ? {} : { pod }),
    ipNetworks: addresses.map((each) => `${each}/32`),
  };
  const annotations = container === undefined ? {} : { [NETWORK_ANNOTATION]: "net" };
  const metadata = { name, namespace: "prod", annotations };
  return {
    kind: "put",
    key: resourceKey("workloadendpoints", { name, namespace: "prod" }),
    value: JSON.stringify({ apiVersion: API_VERSION, kind: "WorkloadEndpoint", metadata, spec }),
  };
}

const endpoints = async () => {
  const { stdout } = await ctl("get workloadendpoints -n prod -o name");
  return stdout.trim().split("\n");
};

const expectSound = async () => {
  expect(await json("ipam check")).toMatchObject({ ok: true, findings: [] });
  expect(findProblems(await readAllRecords(store))).toEqual([]);
};

describe.each(LEVELS)("ipam check --fix, %s at a time", (atomicity) => {
  beforeEach(() => begin({ atomicity }));

  test("allocates the unallocated address of an endpoint to its container, so that a DEL releases it", async () => {
    await seed(store, endpoint("a", { container: "c1", node: "node-1", pod: "web-0", addresses: ["10.0.0.9"] }));

    expect((await json("ipam check --fix")).findings).toMatchObject([
      { kind: "endpoint-without-allocation", fixed: true },
    ]);
    expect(await json("ipam show --ip 10.0.0.9")).toMatchObject({
      state: "in use",
      handle: "net.c1",
      node: "node-1",
      attributes: { pod: "web-0", namespace: "prod", network: "net", interface: "eth0" },
    });
    await expectSound();
    const owner = { handle: "net.c1", network: "net", interface: "eth0", node: "node-1" };
    expect(await allocator().releaseHandle(owner)).toHaveLength(1);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test("allocates nothing to an endpoint that a DEL deletes meanwhile", async () => {
    await seed(store, endpoint("a", { container: "c1", node: "node-1", addresses: ["10.0.0.9"] }));
    const racing = storeAround(store, {
      read: async (wanted) => {
        const snapshot = await store.read(wanted);
        const isRepair = wanted.some((each) => each.kind === "key" && each.key === handleKey("net.c1"));
        if (isRepair) await ctl("delete workloadendpoint a -n prod");
        return snapshot;
      },
    });
    await ctl("ipam check --fix", { store: racing });

    expect((await readAllRecords(store)).handles).toEqual([]);
    expect(await json("ipam show --ip 10.0.0.9")).toMatchObject({ state: "free" });
  });

  test("allocates it in a block that exists, and in a disabled pool too", async () => {
    await given("net.c1", 8n, "node-1");
    await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28, disabled: true }));
    await seed(store, endpoint("a", { container: "c1", node: "node-1", addresses: ["10.0.0.9"] }));

    expect((await ctl("ipam check --fix")).code).toBe(EXIT_OK);
    expect((await readAllRecords(store)).handles).toEqual([
      expect.objectContaining({ handleId: "net.c1", blocks: { "10.0.0.0/28": 2 } }),
    ]);
    await expectSound();
  });

  test("allocates the address of an endpoint that names neither a container nor a node", async () => {
    await seed(store, endpoint("a", { addresses: ["10.0.0.9"] }));
    await ctl("ipam check --fix");

    expect(await json("ipam show --ip 10.0.0.9")).toMatchObject({ state: "in use", handle: "endpoint.prod.a" });
    await expectSound();
  });

  test("deletes the endpoint of a pod's former sandbox whose address is allocated to the new one", async () => {
    const address = await assign("net.new", { attributes: { pod: "web-0", namespace: "prod" }, node: "node-2" });
    await seed(
      store,
      endpoint("old", { container: "old", node: "node-1", pod: "web-0", addresses: [address] }),
      endpoint("new", { container: "new", node: "node-2", pod: "web-0", addresses: [address] }),
    );

    expect((await json("ipam check --fix")).findings).toMatchObject([{ kind: "address-twice", fixed: true }]);
    expect(await endpoints()).toEqual(["workloadendpoint/prod/new"]);
    expect(await json(`ipam show --ip ${address}`)).toMatchObject({ handle: "net.new" });
    await expectSound();
  });

  test("takes only that address from the former endpoint if it has others", async () => {
    const pod = { attributes: { pod: "web-0", namespace: "prod" }, network: "net" };
    const [own, address] = [await assign("net.old", pod), await assign("net.new", pod)];
    await seed(
      store,
      endpoint("old", { container: "old", node: "node-1", pod: "web-0", addresses: [own, address] }),
      endpoint("new", { container: "new", node: "node-1", pod: "web-0", addresses: [address] }),
    );

    expect((await ctl("ipam check --fix")).code).toBe(EXIT_OK);
    expect((await json("get workloadendpoint old -n prod")).spec.ipNetworks).toEqual([`${own}/32`]);
    await expectSound();
  });

  test("names the endpoint to delete if two workloads use one address, and then finds nothing", async () => {
    const address = await assign("net.c1");
    await seed(
      store,
      endpoint("a", { container: "c1", node: "node-1", addresses: [address] }),
      endpoint("b", { container: "c2", node: "node-2", addresses: [address] }),
    );
    const commands = await commandsToFix();

    expect(commands).toEqual(["delete workloadendpoint b -n prod"]);
    expect(await endpoints()).toHaveLength(2);
    expect((await ctl(commands[0] ?? "")).code).toBe(EXIT_OK);
    expect(await json(`ipam show --ip ${address}`)).toMatchObject({ handle: "net.c1" });
    await expectSound();
  });

  test("of two containers with one ID on two nodes, names that of the node that the address is not allocated for", async () => {
    const address = await assign("net.c1");
    await seed(
      store,
      endpoint("a", { container: "c1", node: "node-1", addresses: [address] }),
      endpoint("b", { container: "c1", node: "node-2", addresses: [address] }),
    );
    const commands = await commandsToFix();

    expect(commands).toEqual(["delete workloadendpoint b -n prod --force"]);
    expect((await ctl(commands[0] ?? "")).code).toBe(EXIT_OK);
    await expectSound();
  });

  test("lets the operator choose who keeps an address that is allocated to neither user", async () => {
    await seed(
      store,
      endpoint("a", { container: "c1", node: "node-1", addresses: ["10.0.0.9"] }),
      endpoint("b", { container: "c2", node: "node-2", addresses: ["10.0.0.9"] }),
    );
    const { findings } = await json("ipam check --fix");

    expect(findings).toMatchObject([
      { kind: "address-twice", fixed: false },
      { kind: "endpoint-without-allocation", fixed: false },
    ]);
    for (const { remedy } of findings) {
      for (const name of ["a", "b"])
        expect(remedy).toContain(`"${identity.adminTool} delete workloadendpoint ${name} -n prod"`);
    }
    expect((await ctl("ipam check --fix")).stdout).toContain("to fix it:");
    await ctl("delete workloadendpoint a -n prod");
    expect((await ctl("ipam check --fix")).code).toBe(EXIT_OK);
    expect(await json("ipam show --ip 10.0.0.9")).toMatchObject({ handle: "net.c2" });
    await expectSound();
  });
});

describe.each(LEVELS)("ipam check --fix of blocks that overlap, %s at a time", (atomicity) => {
  beforeEach(() => begin({ atomicity }));

  /** A pool of this block size has addresses, and then exists with another size, without a check. */
  async function overlap(first: number, second: number): Promise<readonly [string, string]> {
    await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: first }));
    const early = await given("net.early", 5n, "node-1");
    await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: second }));
    const late = await given("net.late", 6n, "node-2");
    expect((await json("ipam check")).findings).toMatchObject([{ kind: "blocks-overlap" }]);
    return [early, late];
  }
  const owners = async (addresses: readonly string[]) =>
    Promise.all(addresses.map(async (address) => (await json(`ipam show --ip ${address}`)).handle));
  const blockNames = async () => (await readAllRecords(store)).blocks.map(({ cidr }) => cidr.length);

  test.each([
    [26, 30, [30]],
    [30, 26, [26]],
  ])("moves all addresses to blocks of the pool's size: /%d and then /%d", async (first, second, lengths) => {
    const addresses = await overlap(first, second);

    expect((await json("ipam check --fix")).findings).toMatchObject([{ kind: "blocks-overlap", fixed: true }]);
    expect(await blockNames()).toEqual(lengths);
    expect(await owners(addresses)).toEqual(["net.early", "net.late"]);
    await expectSound();
    for (const handle of ["net.early", "net.late"]) {
      expect(
        await allocator().releaseHandle({ handle, node: handle === "net.early" ? "node-1" : "node-2" }),
      ).toHaveLength(1);
    }
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test("splits a large block into several, each with its node's claim", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 26 }));
    const addresses = [await given("net.a", 1n, "node-1"), await given("net.b", 40n, "node-1")];
    await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28 }));
    addresses.push(await given("net.c", 20n, "node-2"));

    expect((await ctl("ipam check --fix")).code).toBe(EXIT_OK);
    expect(await blockNames()).toEqual([28, 28, 28]);
    expect(await owners(addresses)).toEqual(["net.a", "net.b", "net.c"]);
    await expectSound();
  });

  test("merges more blocks than fit into one commit", async () => {
    const numbers = Array.from({ length: 60 }, (_, index) => BigInt(index * 4));
    await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 30 }));
    for (const last of numbers) await given(`net.${last}`, last, `node-${last}`);
    await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 24 }));
    const late = await given("net.late", 1n, "node-1");

    expect((await ctl("ipam check --fix")).code).toBe(EXIT_OK);
    expect(await blockNames()).toEqual([24]);
    expect(await owners([late, "10.0.0.0", "10.0.0.236"])).toEqual(["net.late", "net.0", "net.236"]);
    await expectSound();
  });

  test("deletes empty ones", async () => {
    const [, late] = await overlap(26, 28);
    await allocator().releaseHandle({ handle: "net.early", node: "node-1" });

    expect((await ctl("ipam check --fix")).code).toBe(EXIT_OK);
    expect(await blockNames()).toEqual([28]);
    expect(await owners([late])).toEqual(["net.late"]);
    await expectSound();
  });

  test("completes what was interrupted after the addresses were copied", async () => {
    const addresses = await overlap(30, 26);
    const { blocks } = await readAllRecords(store);
    const [large] = blocks.filter(({ cidr }) => cidr.length === 26);
    const [small] = blocks.filter(({ cidr }) => cidr.length === 30);
    if (!large || !small) throw new Error("expected two blocks");
    const copied = {
      ...large,
      allocations: large.allocations.map((index, ordinal) => (ordinal === 5 ? large.attributes.length : index)),
      unallocated: large.unallocated.filter((ordinal) => ordinal !== 5),
      attributes: [...large.attributes, ...small.attributes],
      sequenceNumberForAllocation: {
        ...large.sequenceNumberForAllocation,
        5: small.sequenceNumberForAllocation[1] ?? 0n,
      },
      sequenceNumber: large.sequenceNumber + 2n,
    };
    await seed(store, { kind: "put", key: blockKey(large.cidr), value: writeBlock(copied) });

    expect((await ctl("ipam check --fix")).code).toBe(EXIT_OK);
    expect(await owners(addresses)).toEqual(["net.early", "net.late"]);
    await expectSound();
  });

  test("loses no address wherever it is interrupted, and the next run completes it", async () => {
    let isInterrupted = true;
    for (let after = 0; isInterrupted; after++) {
      await begin({ atomicity });
      const addresses = await overlap(26, 30);
      const run = await ctl("ipam check --fix", { store: stoppingMemory(table, atomicity, after) });
      isInterrupted = run.code !== EXIT_OK;

      expect(await owners(addresses)).toEqual(["net.early", "net.late"]);
      const corrupt = findProblems(await readAllRecords(store)).filter(({ severity }) => severity === "corrupt");
      expect(corrupt.filter(({ kind }) => kind !== "blocks-overlap")).toEqual([]);
      await ctl("ipam check --fix");
      await ctl("ipam check --fix");
      await expectSound();
    }
  });

  test("names the handles if both blocks have an address allocated, and merges them when one is released", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 26 }));
    await given("net.early", 5n, "node-1");
    await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28 }));
    await given("net.late", 5n, "node-2");
    await seed(
      store,
      endpoint("early", { container: "early", node: "node-1", addresses: ["10.0.0.5"] }),
      endpoint("late", { container: "late", node: "node-2", addresses: ["10.0.0.5"] }),
    );
    const { findings } = await json("ipam check --fix");
    const [overlapping] = findings;

    expect(overlapping).toMatchObject({ kind: "blocks-overlap", fixed: false });
    expect(overlapping.remedy).toContain(`"${identity.adminTool} ipam release --handle net.late --force"`);
    expect((await ctl("ipam release --handle net.late --force")).stdout).toContain(
      "deleted workloadendpoint/prod/late",
    );
    expect(await endpoints()).toEqual(["workloadendpoint/prod/early"]);
    expect((await ctl("ipam check --fix")).code).toBe(EXIT_OK);
    expect(await owners(["10.0.0.5"])).toEqual(["net.early"]);
    await expectSound();
  });
});

describe("ipam check --fix of addresses outside all pools", () => {
  /** Runs the command of a remedy, which writes a manifest to the tool. */
  async function createPool(remedy: string): Promise<AdminRun> {
    const [, manifest = "", command = ""] = /echo '(.*)' \| \S+ (create -f -)$/.exec(remedy) ?? [];
    return ctl(command, { stdin: manifest });
  }

  test.each(["10.0.0.0/28", "fd00::/122"])(
    "says how a pool for %s is created again, in use by an endpoint",
    async (cidr) => {
      await seed(store, poolChange("blue", cidr));
      const family = cidr.includes(":") ? 6 : 4;
      const address = await assign("net.c1", { addressRequests: [{ kind: "automatic", family }] });
      await seed(store, endpoint("a", { container: "c1", node: "node-1", addresses: [address] }));
      await ctl("delete pool blue --force");
      const { findings } = await json("ipam check --fix");

      expect(findings).toMatchObject([{ kind: "allocation-outside-pools", address, fixed: false }]);
      for (const part of ["workloadendpoint/prod/a", `release --ip ${address} --force"`]) {
        expect(findings[0].remedy).toContain(part);
      }
      expect((await createPool(findings[0].remedy)).code).toBe(EXIT_OK);
      expect(await json(`ipam show --ip ${address}`)).toMatchObject({ state: "in use", handle: "net.c1" });
      await expectSound();
    },
  );

  test("offers to release one that no endpoint uses", async () => {
    const address = await assign("net.c1");
    await ctl("delete pool blue --force");
    const commands = await commandsToFix();

    expect(commands).toContain(`ipam release --ip ${address}`);
    expect((await ctl(`ipam release --ip ${address}`)).code).toBe(EXIT_OK);
    await expectSound();
  });

  test("leaves that of a tunnel to the agent of its node, and says what may keep it", async () => {
    const attributes = { type: "vxlanTunnelAddress" };
    const address = await assign("vxlan-tunnel-addr-node-1", { attributes, intendedUse: "Tunnel" });
    await seed(store, poolChange("blue", "10.9.0.0/24"), nodeChange("node-1"));
    const { findings } = await json("ipam check --fix");

    const severity = "unfinished";
    expect(findings).toMatchObject([{ kind: "allocation-outside-pools", address, severity, fixed: false }]);
    expect(findings[0].remedy).toContain("the agent of node node-1 replaces it");
    expect(findings[0].remedy).not.toContain("create");
    expect(await commandsToFix()).toEqual([`ipam release --ip ${address}`]);
  });

  test("offers no pool where another one is", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/28", { blockSize: 28 }));
    await assign("net.c1", { addressRequests: [{ kind: "given", address: { family: 4, value: 0x0a00_0009n } }] });
    await seed(store, poolChange("blue", "10.0.0.0/29", { blockSize: 29 }));

    expect(await commandsToFix()).toEqual(["ipam release --ip 10.0.0.9"]);
    expect((await json("ipam check --fix")).findings[0].remedy).not.toContain("create");
  });

  test("releases one that is leaked, and both findings are fixed", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/28"));
    const address = await assign("net.c1", { network: "net" });
    const spec = { labelsToApply: { net: "" } };
    const profile = { apiVersion: API_VERSION, kind: "Profile", metadata: { name: "net" }, spec };
    await seed(store, { kind: "put", key: resourceKey("profiles", { name: "net" }), value: JSON.stringify(profile) });
    await ctl("delete pool blue --force");
    const later = await ctl("ipam check --fix", { now: new Date("2026-01-03T03:04:05Z") });

    expect(later.stdout.match(/^fixed: /gm)).toHaveLength(2);
    expect(later.code).toBe(EXIT_OK);
    expect(await json(`ipam show --ip ${address}`)).toMatchObject({ state: "in no pool" });
  });
});

test("ipam check without --fix says nothing of remedies and changes nothing", async () => {
  await seed(store, endpoint("a", { container: "c1", node: "node-1", addresses: ["10.0.0.9"] }));
  const { code, stdout } = await ctl("ipam check");

  expect(code).toBe(EXIT_FAILED);
  expect(stdout).not.toContain("to fix it");
  expect((await store.read([{ kind: "key", key: affinityKey("node-1", prefix("10.0.0.0/28")) }])).answers[0]).toEqual(
    [],
  );
});
