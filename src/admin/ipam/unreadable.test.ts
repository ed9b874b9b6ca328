import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { means, poolChange, prefix, request, seed, textsOf } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import {
  affinityKey,
  blockKey,
  blocksPrefix,
  handleKey,
  IPAM_CONFIGURATION_KEY,
  resourceKey,
} from "../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK } from "../command.ts";

const LATER = new Date("2026-01-03T03:04:05Z");
const BLOCK = prefix("10.0.0.0/28");
const POOL_KEY = resourceKey("ippools", { name: "blue" });
const ENDPOINT_KEY = resourceKey("workloadendpoints", { name: "a", namespace: "prod" });

let store = openMemory();
let address = "";
/** One address of the pod "web-0" in a network that the CNI plugin serves, and the endpoint that uses it. */
beforeEach(async () => {
  store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/28", { blockSize: 28 }));
  const pod = { network: "net", attributes: { pod: "web-0", namespace: "prod" } };
  [address = ""] = textsOf(await openAllocator(store, means()).assign(request("net.a", pod)));
  await put(resourceKey("profiles", { name: "net" }), {
    apiVersion: API_VERSION,
    kind: "Profile",
    metadata: { name: "net" },
    spec: { labelsToApply: { net: "" } },
  });
  await putEndpoint(address);
});

const put = (key: string, value: string | object) =>
  seed(store, { kind: "put", key, value: typeof value === "string" ? value : JSON.stringify(value) });

const putEndpoint = (used: string) =>
  put(ENDPOINT_KEY, {
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: { name: "a", namespace: "prod" },
    spec: { ipNetworks: [`${used}/32`], pod: "web-0" },
  });

function ctl(words: string, surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  return runInside(words.split(" "), { store, now: LATER, ...surroundings });
}

// biome-ignore lint/suspicious/noExplicitAny: what a script would read
async function check(words = ""): Promise<any> {
  return JSON.parse((await ctl(`ipam check${words} -o json`)).stdout);
}

const everything = async () => (await store.read([{ kind: "prefix", prefix: "/" }])).answers[0];

describe("ipam check of records that cannot be read", () => {
  const records: readonly (readonly [name: string, key: string, malformed: string])[] = [
    ["IPAMBlock", blockKey(BLOCK), "{"],
    ["IPAMBlock", blockKey(BLOCK), '{"cidr":"10.0.0.0/28","allocations":7}'],
    ["IPAMBlock", `${blocksPrefix(4)}foreign`, "{"],
    ["IPAMHandle", handleKey("net.a"), "[]"],
    ["IPAMHandle", handleKey("net.a"), '{"block":{"foreign":1}}'],
    ["BlockAffinity", affinityKey("node-1", BLOCK), '{"state":"foreign"}'],
    ["BlockAffinity", affinityKey("node-1", BLOCK), "{"],
    ["IPPool", POOL_KEY, "{"],
    ["IPPool", POOL_KEY, '{"metadata":{"name":"blue"},"spec":{"cidr":"foreign"}}'],
    ["IPReservation", resourceKey("ipreservations", { name: "r" }), '{"spec":{"reservedCIDRs":["foreign"]}}'],
    ["IPAMConfiguration", IPAM_CONFIGURATION_KEY, "{"],
    ["WorkloadEndpoint", ENDPOINT_KEY, "{"],
    ["Profile", resourceKey("profiles", { name: "net" }), "{"],
  ];

  test.each(records)("tells of %s at %s that is %s, of nothing else, and changes nothing", async (kind, key, text) => {
    await put(key, text);
    const before = await everything();
    const report = await check(" --fix");

    expect(report).toMatchObject({ ok: false, findings: [{ kind: "record-unreadable", key, fixed: false }] });
    expect(report.findings).toHaveLength(1);
    expect(report.findings[0].message).toContain(`Cannot read ${kind} at "${key}": `);
    expect(report.findings[0].remedy).not.toBe("");
    expect(report.note).toContain("1 record cannot be read");
    expect(await everything()).toEqual(before);
  });

  test("goes on with the others, in words too, and says why nothing is repaired", async () => {
    await put(POOL_KEY, "{");
    await put(handleKey("net.x"), { block: { "10.0.0.48/28": 1 } });
    const plain = await ctl("ipam check");
    const { code, stdout, stderr } = await ctl("ipam check --fix");

    expect(plain).toMatchObject({ code: EXIT_FAILED, stderr: "" });
    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toBe(
      [
        `error: Cannot read IPPool at "${POOL_KEY}": it is not JSON (whether its addresses are in use cannot be told; ` +
          `remove it with "${identity.adminTool} delete ippool/blue --force", then apply it again with the same range) ` +
          "[record-unreadable]",
        'error: Handle "net.x" names block 10.0.0.48/28, which does not exist [handle-without-block]',
        "Checked 0 pools, 1 block, 1 address in use, 2 handles: 2 problems",
        "",
      ].join("\n"),
    );
    expect(stderr).toBe("note: --fix changed nothing: 1 record cannot be read, and a repair could depend on it\n");
  });

  test("does not call leaked what gave way to an address in a block that cannot be read", async () => {
    await seed(store, poolChange("red", "10.0.1.0/28", { blockSize: 28 }));
    await putEndpoint("10.0.1.3");
    await put(blockKey(prefix("10.0.1.0/28")), "{");

    expect((await check()).findings).toMatchObject([{ kind: "record-unreadable" }]);
  });

  test("doubts no more than what leads to the record", async () => {
    await put(handleKey("net.y"), "{");
    await put(affinityKey("n9", BLOCK), "{");
    await put(blockKey(prefix("10.0.0.32/28")), "{");
    await put(handleKey("net.a"), { block: {} });
    await put(handleKey("net.x"), { block: { "10.0.0.32/28": 1, "10.0.0.48/28": 1 } });
    await put(affinityKey("n8", prefix("10.0.0.48/28")), {});
    const kinds = (await check()).findings.map((finding: { kind: string }) => finding.kind);

    expect(kinds.filter((kind: string) => kind !== "record-unreadable")).toEqual([
      "allocation-without-handle",
      "handle-without-block",
      "affinity-without-block",
    ]);
  });

  test.each([
    ["handle", handleKey("net.a")],
    ["claim", affinityKey("node-1", BLOCK)],
  ])("writes a %s anew once it is removed, as the remedy says", async (_, key) => {
    await put(key, "{");
    expect((await check()).findings[0].remedy).toContain("--fix writes it anew");
    const entry = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
    await seed(store, { kind: "delete", key, revision: entry?.revision ?? "" });

    expect((await ctl("ipam check --fix")).code).toBe(EXIT_OK);
    expect((await store.read([{ kind: "key", key }])).answers[0]).toHaveLength(1);
  });
});
