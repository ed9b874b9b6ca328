/** Which kept addresses a pod does not get again: what it asks for, and what became of their pools and nodes. */
import { beforeEach, describe, expect, test } from "bun:test";
import {
  address,
  configurationChange,
  listChange,
  means,
  nodeChange,
  poolChange,
  request,
  seed,
  textsOf,
} from "../../test/support/ipam.ts";
import type { Change } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { PluginError } from "../errors.ts";
import type { IPPoolSpec } from "../model/ip-pool.ts";
import { keepHandle } from "../model/kept-address.ts";
import { blocksPrefix, handleKey, resourceKey } from "../model/keys.ts";
import { readAllRecords } from "./all-records.ts";
import { openAllocator } from "./allocator.ts";
import { KeptInUse } from "./assign/kept-address.ts";
import { findProblems } from "./invariants.ts";
import type { AddressRequest, AssignRequest, KeepRequest } from "./request.ts";

const HANDLE = keepHandle({ network: "net", namespace: "shop", identity: "pod/db-0" });
const FOUR = { kind: "automatic", family: 4 } as const;
const BLUE = [{ ...FOUR, pools: ["blue"], poolsPlace: "annotation ipv4pools" }];
const LISTED = [{ kind: "listed", list: "fw", place: "annotation ipAddrsFrom" }] as const;

function ofPod(
  container: string,
  { node = "node-1", addressRequests = [FOUR], ...keep }: Partial<KeepRequest & AssignRequest> = {},
): AssignRequest {
  return request(`net.${container}`, {
    network: "net",
    interface: "eth0",
    node,
    attributes: { pod: "db-0", namespace: "shop" },
    podNamespace: { name: "shop", labels: {} },
    addressRequests,
    keep: { handle: HANDLE, containerId: container, when: "always", title: 'pod "shop/db-0"', ...keep },
  });
}

let table: MemoryTable;
beforeEach(async () => {
  table = new MemoryTable();
  await change(nodeChange("node-1"), nodeChange("node-2"), pool(), poolChange("blue", "10.1.0.0/24"));
});
const pool = (more: Partial<IPPoolSpec> = {}) => poolChange("four", "10.0.0.0/24", more);
const change = (...changes: readonly Change[]) => seed(openMemory(table), ...changes);
const allocator = () => openAllocator(openMemory(table), means());
const records = () => readAllRecords(openMemory(table));
const end = (container: string, node = "node-1") =>
  allocator().releaseHandle({
    ...{ handle: `net.${container}`, network: "net", interface: "eth0", node },
    kept: { containerId: container, handle: HANDLE },
  });

/** The address that waits for the pod. */
async function kept(addressRequests: readonly AddressRequest[] = [FOUR]): Promise<string> {
  const [text = ""] = textsOf(await allocator().assign(ofPod("c1", { addressRequests })));
  await end("c1");
  return text;
}

async function refusal(work: Promise<unknown>): Promise<PluginError> {
  const failure = await work.then(
    () => undefined,
    (each: unknown) => each,
  );
  if (failure instanceof PluginError) return failure;
  throw new Error(`not refused: ${String(failure)}`);
}

describe("a kept address that is not what the pod asks for", () => {
  test.each([
    ["of a list", LISTED],
    ["of other pools", BLUE],
    ["that is another one", [{ kind: "given", address: address("10.1.0.9") }]],
  ] as const)("is refused for one %s, with the command that frees it", async (_, addressRequests) => {
    await change(listChange("fw", ["10.1.0.7"]));
    const text = await kept([{ ...FOUR, pools: ["four"] }]);
    const failure = await refusal(allocator().assign(ofPod("c2", { addressRequests })));

    expect(failure.kind).toBe("address-taken");
    expect(failure.message).toContain(`"${text}" is kept for pod "shop/db-0"`);
    expect(failure.details).toContain("ipam release --pod shop/db-0");
  });

  test("is given if it is in the list, or in the pools", async () => {
    await change(listChange("fw", ["10.1.0.6", "10.1.0.7"]));
    const first = await kept(LISTED);
    expect(textsOf(await allocator().assign(ofPod("c2", { addressRequests: LISTED })))).toEqual([first]);
    await end("c2");

    expect(textsOf(await allocator().assign(ofPod("c3", { addressRequests: BLUE })))).toEqual([first]);
  });

  test("is refused if its list is not for the namespace any more", async () => {
    await change(listChange("fw", ["10.1.0.7"]));
    await kept(LISTED);
    await change(listChange("fw", ["10.1.0.7"], "has(other)"));

    expect((await refusal(allocator().assign(ofPod("c2", { addressRequests: LISTED })))).kind).toBe(
      "annotation-invalid",
    );
  });
});

describe("a kept address whose pool", () => {
  const drop = async () => {
    const store = openMemory(table);
    const key = resourceKey("ippools", { name: "four" });
    const [entry] = (await store.read([{ kind: "key", key }])).answers.flat();
    await store.commit([{ kind: "delete", key, revision: entry?.revision ?? "" }]);
  };

  test.each([
    ["is disabled", () => change(pool({ disabled: true }))],
    ["is deleted", drop],
  ] as const)("%s ends: the pod gets another one, of an enabled pool", async (_, lose) => {
    const text = await kept([{ ...FOUR, pools: ["four"] }]);
    await lose();
    const again = await allocator().assign(ofPod("c2"));

    expect(textsOf(again)).not.toEqual([text]);
    expect(again.addresses).toMatchObject([{ pool: "blue", kept: "from now on" }]);
    const { blocks, handles } = await records();
    const used = blocks.filter(({ attributes }) => attributes.length > 0);
    expect([used.length, handles.length]).toEqual([1, 1]);
    expect(findProblems(await records()).filter(({ severity }) => severity === "corrupt")).toEqual([]);
  });

  test("is disabled stays with a container that has it", async () => {
    const first = await allocator().assign(ofPod("c1", { addressRequests: [{ ...FOUR, pools: ["four"] }] }));
    await change(pool({ disabled: true }));

    expect(textsOf(await allocator().assign(ofPod("c1")))).toEqual(textsOf(first));
  });

  test("is disabled is refused, and waits on, if the pod asks for it by its name", async () => {
    const text = await kept([{ ...FOUR, pools: ["four"] }]);
    await change(pool({ disabled: true }));
    const given = [{ kind: "given", address: address(text) }] as const;

    expect((await refusal(allocator().assign(ofPod("c2", { addressRequests: given })))).kind).toBe(
      "address-outside-pools",
    );
    expect((await records()).handles).toHaveLength(1);
  });

  test("cannot be read is given: the pool may be a good one", async () => {
    const text = await kept([{ ...FOUR, pools: ["four"] }]);
    const store = openMemory(table);
    await store.commit([{ kind: "put", key: resourceKey("ippools", { name: "four" }), value: "{" }]);

    expect(textsOf(await allocator().assign(ofPod("c2")))).toEqual([text]);
  });
});

describe("a pool that forbids to keep its addresses", () => {
  test("refuses a pod that asks for it", async () => {
    await change(pool({ keepAddresses: false }), poolChange("blue", "10.1.0.0/24", { disabled: true }));
    const failure = await refusal(allocator().assign(ofPod("c1")));

    expect(failure).toMatchObject({ kind: "annotation-invalid" });
    expect(failure.message).toContain('pool "four"');
    expect((await records()).handles).toEqual([]);
  });

  test("does so although the address was kept before, but not to a container that has it", async () => {
    await change(poolChange("blue", "10.1.0.0/24", { disabled: true }));
    await allocator().assign(ofPod("c1"));
    await change(pool({ keepAddresses: false }));
    await allocator().assign({ ...ofPod("c1"), renewsHeld: true });
    await end("c1");

    expect((await refusal(allocator().assign(ofPod("c2")))).kind).toBe("annotation-invalid");
  });

  test("ends what another pool made to be kept", async () => {
    const byPool = { when: "if its pool does" } as const;
    const four = [{ ...FOUR, pools: ["four"] }];
    await change(pool({ keepAddresses: true }));
    await allocator().assign(ofPod("c1", { ...byPool, addressRequests: four }));
    await end("c1");
    await change(pool({ keepAddresses: false }), poolChange("blue", "10.1.0.0/24", { keepAddresses: true }));
    const again = await allocator().assign(ofPod("c2", { ...byPool, addressRequests: four }));

    expect(again.addresses[0]?.kept).toBeUndefined();
    expect((await records()).handles.map(({ handleId }) => handleId)).toEqual(["net.c2"]);
  });
});

describe("the time that an annotation asks for", () => {
  const asking = (text: string, seconds: number) =>
    allocator().assign(ofPod("c1", { seconds, limited: { text, place: "annotation keepFor" } }));

  test.each([
    ["0s", 0],
    ["999999h", 3_599_996_400],
    ["169h", 608_400],
  ])("of %s is refused, with what is allowed and where it is set", async (text, seconds) => {
    const failure = await refusal(asking(text, seconds));

    expect(failure.kind).toBe("annotation-invalid");
    for (const each of ["annotation keepFor", `"${text}"`, '"longestKeepFor"', '"168h"']) {
      expect(failure.message).toContain(each);
    }
    expect((await records()).handles).toEqual([]);
  });

  test("is as long as the cluster allows, and without limit if that says so", async () => {
    await change(configurationChange({ longestKeepFor: "2h" }));
    expect((await refusal(asking("3h", 10_800))).message).toContain('"2h"');
    await change(configurationChange({ longestKeepFor: "0s" }));
    await asking("0s", 0);
    expect((await records()).handles).toHaveLength(1);
  });

  test("of a week is allowed, and any time of a pod whose end is seen", async () => {
    await asking("168h", 604_800);
    await end("c1");
    await allocator().assign(ofPod("c2", { seconds: 0 }));
  });
});

describe("a namespace", () => {
  test("does not get what was kept in another one of its name", async () => {
    const [text = ""] = textsOf(await allocator().assign(ofPod("c1", { namespaceUid: "first" })));
    await end("c1");
    expect(textsOf(await allocator().assign(ofPod("c2", { namespaceUid: "first" })))).toEqual([text]);
    await end("c2");
    const other = await allocator().assign(ofPod("c3", { namespaceUid: "second" }));

    expect(other.addresses).toMatchObject([{ kept: "from now on" }]);
    await end("c3");
    expect(textsOf(await allocator().assign(ofPod("c4")))).toEqual([...textsOf(other)]);
  });
});

describe("strictAffinity", () => {
  test("refuses a kept address in a block of another node, and names the node", async () => {
    await change(configurationChange({ strictAffinity: true }));
    const text = await kept();
    const failure = await refusal(allocator().assign(ofPod("c2", { node: "node-2" })));

    expect(failure.kind).toBe("address-taken");
    expect(failure.message).toContain('"node-1"');
    expect(textsOf(await allocator().assign(ofPod("c3")))).toEqual([text]);
  });
});

describe("a use", () => {
  test.each(["node", "network"])("without %s is not handed to another container", async (name) => {
    await allocator().assign(ofPod("c1"));
    const store = openMemory(table);
    const [entry] = (await store.read([{ kind: "prefix", prefix: blocksPrefix(4) }])).answers.flat();
    const value = entry?.value.replace(new RegExp(`"${name}":"[^"]*",?`), "") ?? "";
    await store.commit([{ kind: "put", key: entry?.key ?? "", value }]);
    const failure = await refusal(allocator().assign(ofPod("c2", { node: "node-2" })));

    expect(failure).toBeInstanceOf(KeptInUse);
    expect(failure).toMatchObject({ uses: [] });
    expect(failure.message).toContain('"c1"');
  });
});

describe("what is said", () => {
  test("a handle that counts too many does not keep the pod from its own address if the pool is full", async () => {
    await change(pool({ disabled: true }), poolChange("blue", "10.1.0.0/24", { disabled: true }));
    await change(poolChange("tiny", "10.2.0.0/30"));
    const text = await kept();
    for (const each of ["a", "b", "c"]) await allocator().assign(request(`net.${each}`));
    const value = JSON.stringify({ handleID: "net.c2", block: { "10.2.0.0/30": 1 }, deleted: false });
    await openMemory(table).commit([{ kind: "create", key: handleKey("net.c2"), value }]);

    expect(textsOf(await allocator().assign(ofPod("c2")))).toEqual([text]);
  });

  test("of a list whose addresses wait: kept for whom, until when, and how to free one", async () => {
    await change(listChange("fw", ["10.1.0.7"]));
    await kept(LISTED);
    const { message, details, kind } = await refusal(
      allocator().assign(request("net.x", { addressRequests: LISTED, podNamespace: { name: "shop", labels: {} } })),
    );

    expect(kind).toBe("try-again-later");
    expect(message).toContain(
      '0 in use, 1 kept for pods that do not run: 10.1.0.7 kept for pod "shop/db-0" until 2026-01-03T03:04:05',
    );
    expect(details).toContain("ipam release --ip 10.1.0.7");
  });
});
