import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { means, poolChange, prefix, request, reservationChange, seed, textsOf } from "../../../test/support/ipam.ts";
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
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

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

describe("ipam check of unreadable records", () => {
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

  test.each(records)("reports %s at %s that is %s, nothing else, and changes nothing", async (kind, key, text) => {
    await put(key, text);
    const before = await everything();
    const report = await check(" --fix");

    expect(report).toMatchObject({ ok: false, findings: [{ kind: "record-unreadable", key, fixed: false }] });
    expect(report.findings).toHaveLength(1);
    expect(report.findings[0].message).toContain(`Cannot read ${kind} at "${key}": `);
    expect(report.findings[0].remedy).not.toBe("");
    expect(report.note).toContain("1 record is unreadable");
    expect(await everything()).toEqual(before);
  });

  test("reports the other problems too, also as text, and why nothing is repaired", async () => {
    await put(POOL_KEY, "{");
    await put(handleKey("net.x"), { block: { "10.0.0.48/28": 1 } });
    const plain = await ctl("ipam check");
    const { code, stdout, stderr } = await ctl("ipam check --fix");

    expect(plain).toMatchObject({ code: EXIT_FAILED, stderr: "" });
    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toBe(
      [
        `error: Cannot read IPPool at "${POOL_KEY}": it is not JSON (whether its addresses are in use is unknown; ` +
          `delete it with "${identity.adminTool} delete ippool/blue --force", then apply it again with the same CIDR) ` +
          "[record-unreadable]",
        'unfinished: Handle "net.x" names block 10.0.0.48/28, which does not exist [handle-without-block]',
        "Checked 0 pools, 1 block, 1 address in use, 2 handles: 2 problems",
        "",
      ].join("\n"),
    );
    expect(stderr).toBe("note: --fix changed nothing: 1 record is unreadable, and a repair could depend on it\n");
  });

  test("does not report an address as leaked whose successor is in an unreadable block", async () => {
    await seed(store, poolChange("red", "10.0.1.0/28", { blockSize: 28 }));
    await putEndpoint("10.0.1.3");
    await put(blockKey(prefix("10.0.1.0/28")), "{");

    expect((await check()).findings).toMatchObject([{ kind: "record-unreadable" }]);
  });

  test("leaves out only problems that depend on the unreadable record", async () => {
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
  ])("writes a %s again once it is removed, as the remedy says", async (_, key) => {
    await put(key, "{");
    expect((await check()).findings[0].remedy).toContain(`"${identity.adminTool} ipam check --fix" writes it again`);
    const entry = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
    await seed(store, { kind: "delete", key, revision: entry?.revision ?? "" });

    expect((await ctl("ipam check --fix")).code).toBe(EXIT_OK);
    expect((await store.read([{ kind: "key", key }])).answers[0]).toHaveLength(1);
  });
});

/** The stderr of a command that reports this one record, with the reason and the remedy. */
const reports = (key: string, remedy: string) => ({
  code: EXIT_FAILED,
  stderr: expect.stringMatching(
    new RegExp(
      `^error: Cannot [^\\n]*at "${RegExp.escape(key)}": [^\\n]*\\([^\\n]*${RegExp.escape(remedy)}[^\\n]*\\)\\n$`,
    ),
  ),
});

describe("ipam show of unreadable records", () => {
  const RED = prefix("10.0.1.0/28");
  beforeEach(() => seed(store, poolChange("red", "10.0.1.0/27", { blockSize: 28 })));

  test("counts the addresses of an unreadable block as neither used nor free", async () => {
    await put(blockKey(RED), "{");
    const { stdout, ...rest } = await ctl("ipam show");

    expect(stdout).toBe(
      [
        "POOL   CIDR          SIZE   USED                RESERVED   FREE   USAGE",
        "blue   10.0.0.0/28   16     1                   0          15     ██░░░░░░░░░░░░░░░░░░ 6 %",
        "red    10.0.1.0/27   32     0 (16 unreadable)   0          16     ░░░░░░░░░░░░░░░░░░░░ 0 %",
        "",
      ].join("\n"),
    );
    expect(rest).toEqual(reports(blockKey(RED), "remove it there only if nothing uses an address of 10.0.1.0/28"));
  });

  test("lists it among the blocks, and in JSON", async () => {
    await put(blockKey(RED), "{");

    expect((await ctl("ipam show --show-blocks")).stdout).toContain("  10.0.1.0/28   (unreadable)");
    const { code, stdout } = await ctl("ipam show --show-blocks -o json");
    expect(code).toBe(EXIT_FAILED);
    expect(JSON.parse(stdout)).toMatchObject({
      pools: [
        { pool: "blue", unreadable: 0, blockCount: 1 },
        { pool: "red", unreadable: 16, free: 16, blockCount: 0 },
      ],
      unreadable: [{ kind: "record-unreadable", key: blockKey(RED) }],
    });
  });

  test("counts a reserved address in an unreadable block once", async () => {
    await put(blockKey(RED), "{");
    await seed(store, reservationChange("r", ["10.0.1.0/29", "10.0.1.16/30"]));
    const [, red] = JSON.parse((await ctl("ipam show -o json")).stdout).pools;

    expect(red).toMatchObject({ size: 32, used: 0, unreadable: 16, reserved: 4, free: 12 });
  });

  test("does not report a block as outside all pools while a pool is unreadable", async () => {
    await put(POOL_KEY, "{");
    const { stdout, ...rest } = await ctl("ipam show");

    expect(stdout).toContain("(no readable pool)");
    expect(stdout).toContain("red");
    expect(rest).toEqual(reports(POOL_KEY, `"${identity.adminTool} delete ippool/blue --force"`));
  });

  test("works without an unreadable reservation, and without a block whose key shows no CIDR", async () => {
    const [reservation, foreign] = [resourceKey("ipreservations", { name: "r" }), `${blocksPrefix(4)}foreign`];
    await put(reservation, "{");
    expect(await ctl("ipam show")).toMatchObject(reports(reservation, "delete ipreservation/r --force"));
    await put(foreign, "{");
    const { stdout, stderr } = await ctl("ipam show");

    expect(stdout).toContain("blue");
    expect(stderr).toContain(`at "${foreign}": `);
  });

  test("shows the owner of an address, and reports records that could contradict it", async () => {
    await put(blockKey(RED), "{");
    await put(resourceKey("ipreservations", { name: "r" }), "{");

    expect(await ctl(`ipam show --ip ${address}`)).toMatchObject({
      code: EXIT_OK,
      stdout: expect.stringContaining(`${address} (in use)`),
      stderr: "",
    });
    expect(await ctl("ipam show --ip 10.0.1.3")).toMatchObject({
      code: EXIT_FAILED,
      stdout: expect.stringContaining("10.0.1.3 (unknown)"),
      stderr: expect.stringContaining(blockKey(RED)),
    });
    expect(await ctl("ipam show --ip 192.0.2.1")).toMatchObject({ code: EXIT_OK, stderr: "" });
    expect((await ctl("ipam show --ip 10.0.1.20")).stdout).toContain("(unknown)");
  });

  test("does not report an address as outside all pools while a pool is unreadable", async () => {
    await put(POOL_KEY, "{");
    const { stdout, ...rest } = await ctl(`ipam show --ip ${address}`);

    expect(stdout).toContain("Pool:       unknown");
    expect(stdout).toContain("(in use)");
    expect(rest).toEqual(reports(POOL_KEY, "delete ippool/blue --force"));
    expect((await ctl("ipam show --ip 192.0.2.1")).stdout).toContain("(unknown)");
    expect(await ctl("ipam show --ip 10.0.1.3")).toMatchObject({ code: EXIT_OK, stderr: "" });
  });
});

describe("an unreadable IPAMConfiguration", () => {
  test.each(["ipam show --show-configuration", "ipam configure --strict-affinity true"])(
    "%s reports how to repair it, and changes nothing",
    async (words) => {
      await put(IPAM_CONFIGURATION_KEY, "{");
      const before = await everything();

      expect(await ctl(words)).toEqual({
        stdout: "",
        ...reports(IPAM_CONFIGURATION_KEY, "delete ipamconfiguration/default --force"),
      });
      expect(await everything()).toEqual(before);
    },
  );
});

describe("ipam release of unreadable records", () => {
  const OTHER = prefix("10.0.1.0/28");
  const remedy = "remove it there only if nothing uses an address of 10.0.1.0/28";

  test("releases the other addresses, and reports the one whose block is unreadable", async () => {
    await put(blockKey(OTHER), "{");
    const { stdout, ...rest } = await ctl(`ipam release --force --ip 10.0.1.3 --ip ${address}`);

    expect(stdout).toStartWith(`Released ${address}`);
    expect(rest).toEqual(reports(blockKey(OTHER), remedy));
  });

  test.each(["{", '{"block":{"foreign":1}}'])("releases nothing of a handle that is %s", async (text) => {
    await put(handleKey("net.a"), text);
    const before = await everything();
    const wanted = reports(handleKey("net.a"), `"${identity.adminTool} ipam check --fix" writes it again`);

    expect(await ctl("ipam release --handle net.a")).toEqual({ stdout: "", ...wanted });
    expect(await ctl(`ipam release --ip ${address}`)).toEqual({ stdout: "", ...wanted });
    expect(await everything()).toEqual(before);
  });

  test("reports which block of a handle is unreadable", async () => {
    await put(handleKey("net.a"), { block: { "10.0.0.0/28": 1, "10.0.1.0/28": 1 } });
    await put(blockKey(OTHER), "{");

    expect(await ctl("ipam release --handle net.a")).toEqual({ stdout: "", ...reports(blockKey(OTHER), remedy) });
  });
});
