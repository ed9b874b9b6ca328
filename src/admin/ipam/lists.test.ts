/** What commands say of the addresses of an IPAddressList. */
import { beforeEach, describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import {
  address,
  listChange,
  means,
  nodeChange,
  poolChange,
  request,
  reservationChange,
  seed,
} from "../../../test/support/ipam.ts";
import { startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { productMapping } from "../../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { keepHandle } from "../../model/kept-address.ts";
import { blocksPrefix, resourceKey } from "../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await seed(
    store,
    poolChange("blue", "10.0.0.0/28"),
    poolChange("off", "10.9.0.0/28", { disabled: true }),
    nodeChange("n1"),
  );
});

const NOW = new Date("2026-01-02T03:04:05Z");
const ctl = (words: string) => runInside(words.split(" "), { store, now: NOW });
const allocator = () => openAllocator(store, means({ now: () => NOW }));

/** As a plugin does for pod shop/`pod`. */
async function assign(pod: string, text: string, keepSeconds?: number): Promise<void> {
  const handle = keepHandle({ network: "net", namespace: "shop", identity: `pod/${pod}` });
  const keep = { handle, containerId: pod, when: "always", title: pod } as const;
  await allocator().assign(
    request(`net.${pod}`, {
      ...{ network: "net", interface: "eth0", node: "n1", attributes: { pod, namespace: "shop" } },
      ...(keepSeconds === undefined ? {} : { keep: { ...keep, seconds: keepSeconds } }),
      addressRequests: [{ kind: "given", address: address(text) }],
    }),
  );
}

const end = (text: string) => allocator().releaseAddresses([{ address: address(text) }]);

describe("describe ipaddresslist", () => {
  test("shows of each address, in the list's order, who has it, or when it is free", async () => {
    const addresses = ["10.0.0.9", "10.0.0.8", "10.0.0.7", "10.0.0.6", "10.0.0.5", "10.0.0.4", "10.9.0.1", "192.0.2.1"];
    await seed(store, listChange("web", addresses));
    await assign("web-1", "10.0.0.9");
    await assign("db-0", "10.0.0.8", 3600);
    await assign("db-1", "10.0.0.7", 3600);
    await end("10.0.0.7");
    await assign("db-2", "10.0.0.6", 0);
    await end("10.0.0.6");
    await assign("web-2", "10.0.0.5");
    await end("10.0.0.5");
    const { stdout } = await ctl("describe ipaddresslist web");

    const [summary, ...rows] = stdout.slice(stdout.indexOf("Addresses:")).trimEnd().split("\n");
    expect(summary).toBe("Addresses:    2 in use, 2 waiting, 1 resting, 1 free, 2 passed over");
    expect(rows.map((row) => row.trim().split(/ {2,}/))).toEqual([
      ["10.0.0.9", "pool blue", "pod shop/web-1 on node n1"],
      ["10.0.0.8", "pool blue", "pod shop/db-0 on node n1, kept for it"],
      ["10.0.0.7", "pool blue", "kept for pod shop/db-1, waits until 2026-01-02T04:04:05.000Z"],
      ["10.0.0.6", "pool blue", "kept for pod shop/db-2, waits until it is released"],
      ["10.0.0.5", "pool blue", 'rests until 2026-01-02T03:07:05.000Z; namespace "shop" gets it at once'],
      ["10.0.0.4", "pool blue", "free"],
      ["10.9.0.1", "pool off", "passed over: it is disabled"],
      ["192.0.2.1", "no pool", "passed over: it is in no pool"],
    ]);
  });

  test("does not call an address free whose block is unreadable", async () => {
    await seed(store, listChange("web", ["10.0.0.9"]));
    await assign("web-1", "10.0.0.9");
    const [entry] = (await store.read([{ kind: "prefix", prefix: blocksPrefix(4) }])).answers.flat();
    await seed(store, { kind: "put", key: entry?.key ?? "", value: "{" });

    expect((await ctl("describe ipaddresslist web")).stdout).toContain("unknown: its block is unreadable");
  });
});

describe("ipam check", () => {
  test("finds addresses of a list that are in no pool, and says what to do", async () => {
    await seed(store, listChange("web", ["10.0.0.9", "192.0.2.1", "10.9.0.1"]));
    const { code, stdout } = await ctl("ipam check");

    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toContain(
      'error: IPAddressList "web" has 1 address in no pool, which nobody gets: 192.0.2.1 [list-outside-pools]',
    );
    expect((await ctl("ipam check --fix")).stdout).toContain("vendorctl edit ipaddresslist web");
    await seed(store, { kind: "put", key: resourceKey("ippools", { name: "other" }), value: "{" });
    expect((await ctl("ipam check")).stdout).not.toContain("list-outside-pools");
  });

  test("remarks that several lists have an address; reserved ones are as they should be", async () => {
    await seed(store, reservationChange("r", ["10.0.0.8/30"]), listChange("web", ["10.0.0.9", "10.0.0.8"]));
    expect(await ctl("ipam check")).toMatchObject({ code: EXIT_OK, stderr: "" });
    await seed(store, listChange("mail", ["10.0.0.8"]));

    expect(await ctl("ipam check")).toMatchObject({
      code: EXIT_OK,
      stderr:
        '1 address is in several IPAddressLists, so that their pods compete for it: 10.0.0.8 in "mail" and "web"\n',
    });
  });
});

test("a list that is written is noted if pods get not all of it, unless a later document has the pool", async () => {
  const resource = (kind: string, name: string, spec: object) =>
    JSON.stringify({ apiVersion: "vendor.org/v3", kind, metadata: { name }, spec });
  const apply = async (...documents: readonly string[]) =>
    (await runInside(["apply", "-f", "-"], { store, now: NOW, stdin: documents.join("\n---\n") })).stderr;
  await seed(store, listChange("mail", ["10.0.0.8"]));
  const addresses = ["10.0.0.9", "10.0.0.8", "10.9.0.1", "10.5.0.1"];

  expect(await apply(resource("IPAddressList", "web", { addresses }))).toContain(
    'note: addresses of list "web" are in no enabled pool, so that no pod gets them: 10.9.0.1, 10.5.0.1; ' +
      'in "mail" too, whose pods compete for them: 10.0.0.8\n',
  );
  const later = [
    resource("IPAddressList", "late", { addresses: ["10.5.0.1"] }),
    resource("IPPool", "five", { cidr: "10.5.0.0/24" }),
  ];
  await ctl("delete ipaddresslist web");
  expect(await apply(...later)).toBe("");
});

test("ipam show --ip and describe ippool name the lists", async () => {
  await seed(store, listChange("web", ["10.0.0.9", "10.0.0.8"]), listChange("mail", ["10.0.0.8", "192.0.2.1"]));
  const lists = async (text: string) => JSON.parse((await ctl(`ipam show --ip ${text} -o json`)).stdout).lists;

  expect(await lists("10.0.0.8")).toEqual(["mail", "web"]);
  expect(await lists("10.0.0.7")).toBeUndefined();
  expect((await ctl("ipam show --ip 10.0.0.9")).stdout).toContain("Lists:      web\n");
  expect((await ctl("describe ippool blue")).stdout).toMatch(/In lists: +mail \(1\), web \(2\)/);
});

test("lists that may not be listed are not named, and nothing fails: so it is with the role of the plugin", async () => {
  const forbidden = {
    status: 403,
    text: JSON.stringify({ kind: "Status", reason: "Forbidden", message: "forbidden" }),
  };
  const api = startFakeApi().connect(async ({ path }, send) => (path.includes("ipaddresslists") ? forbidden : send()));
  const limited = openKubeStore({ api, mappings: productMapping(() => "1"), close: async () => {} });
  const { code, stdout } = await runInside("ipam show --ip 10.0.0.9".split(" "), { store: limited, now: NOW });

  expect([code, stdout]).toEqual([EXIT_OK, expect.stringContaining("10.0.0.9 (in no pool)")]);
});
