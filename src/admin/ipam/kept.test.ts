/** What commands say of addresses that are kept for pods, and how they reserve and free them. */
import { beforeEach, describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { means, nodeChange, poolChange, request, reservationChange, seed } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { formatAddress, parseAddress } from "../../ip/address.ts";
import { readAllRecords } from "../../ipam/all-records.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { findProblems } from "../../ipam/invariants.ts";
import { keptIn } from "../../ipam/leaks/waiting-addresses.ts";
import { KEPT_ATTRIBUTE, keepHandle } from "../../model/kept-address.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";

const ATOMICITY = ["all changes", "one object"] as const;
const START = Date.parse("2026-01-02T03:04:05Z");

let store = openMemory();
const open = async (atomicity: (typeof ATOMICITY)[number]) => {
  store = openMemory(undefined, { atomicity });
  await seed(
    store,
    poolChange("blue", "10.0.0.0/28", { blockSize: 30 }),
    poolChange("off", "10.9.0.0/28", { disabled: true }),
    nodeChange("n1"),
  );
};
beforeEach(() => open("all changes"));

const ctl = (words: string, minutes = 0) =>
  runInside(words.split(" "), { store, now: new Date(START + minutes * 60_000) });
const allocator = () => openAllocator(store, means());

/** As a plugin does for pod shop/`pod`; kept, or not. */
async function assign(pod: string, { isKept = true, address = "" } = {}): Promise<string> {
  const own = { pod, namespace: "shop" };
  const handle = isKept ? keepHandle({ network: "net", namespace: "shop", identity: `pod/${pod}` }) : `net.${pod}`;
  const attributes = isKept
    ? { ...own, [KEPT_ATTRIBUTE]: "3600", containerID: `c-${pod}`, owner: "StatefulSet/db" }
    : own;
  const given = parseAddress(address);
  const { addresses } = await allocator().assign(
    request(handle, {
      ...{ network: "net", interface: "eth0", node: "n1", attributes },
      ...(given === undefined ? {} : { addressRequests: [{ kind: "given", address: given }] }),
    }),
  );
  return addresses.map((each) => formatAddress(each.address)).join();
}

async function waits(pod: string): Promise<string> {
  const address = await assign(pod);
  await allocator().releaseAddresses([{ address: parseAddress(address) ?? fail() }]);
  return address;
}

function fail(): never {
  throw new Error("it is no address");
}

/** `10.0.0.5 db-0 waits` */
async function kept(): Promise<readonly string[]> {
  const world = await readAllRecords(store);
  expect(findProblems(world)).toEqual([]);
  const all = world.blocks.flatMap(keptIn);
  return all.map(
    ({ address, kept: { pod, user } }) => `${formatAddress(address)} ${pod} ${user?.containerId ?? "waits"}`,
  );
}

describe("ipam release", () => {
  test.each(["--ip ADDRESS", "--pod shop/db-0", "--handle HANDLE"])("%s frees what waits", async (words) => {
    const address = await waits("db-0");
    const handle = keepHandle({ network: "net", namespace: "shop", identity: "pod/db-0" });
    const run = await ctl(`ipam release ${words.replace("ADDRESS", address).replace("HANDLE", handle)}`);

    expect(run).toMatchObject({ code: EXIT_OK, stdout: `Released ${address}\n` });
    expect(await kept()).toEqual([]);
  });

  test.each(["--ip ADDRESS", "--pod shop/db-0", "--handle HANDLE"])(
    "%s refuses what a container uses, and ends its use with --force",
    async (words) => {
      const address = await assign("db-0");
      const handle = keepHandle({ network: "net", namespace: "shop", identity: "pod/db-0" });
      const command = `ipam release ${words.replace("ADDRESS", address).replace("HANDLE", handle)}`;
      const refused = await ctl(command);
      expect(refused.code).toBe(EXIT_FAILED);
      expect(refused.stderr).toContain(`it is kept for pod shop/db-0, and container "c-db-0" on node "n1" uses it`);
      expect(refused.stderr).toContain("two containers");
      expect(await kept()).toEqual([`${address} db-0 c-db-0`]);

      expect(await ctl(`${command} --force`)).toMatchObject({
        code: EXIT_OK,
        stdout: `Ended the use of ${address}: it waits for pod shop/db-0\n`,
      });
      expect(await kept()).toEqual([`${address} db-0 waits`]);
    },
  );

  test("says which pod keeps nothing, and that --pod stands alone", async () => {
    await assign("web", { isKept: false });
    expect(await ctl("ipam release --pod shop/web")).toMatchObject({
      code: EXIT_FAILED,
      stderr: expect.stringContaining('pod "shop/web": none is kept for it'),
    });
    expect((await ctl("ipam release --pod shop/web --ip 10.0.0.1")).code).toBe(EXIT_USAGE);
    expect((await ctl("ipam release --pod web")).code).toBe(EXIT_USAGE);
  });
});

describe("ipam show", () => {
  test("counts kept ones, and shows for whom they are, and until when", async () => {
    const [used, waiting] = [await assign("db-0"), await waits("db-1")];

    expect((await ctl("ipam show")).stdout).toContain("2 (2 kept, 1 of them waiting)");
    expect(JSON.parse((await ctl("ipam show -o json")).stdout).pools[0]).toMatchObject({
      used: 2,
      kept: 2,
      waiting: 1,
    });
    const shown = async (address: string) => JSON.parse((await ctl(`ipam show --ip ${address} -o json`)).stdout);
    expect(await shown(used)).toMatchObject({ state: "in use", kept: { for: "pod shop/db-0", state: "in use" } });
    expect(await shown(waiting)).toMatchObject({
      state: "waiting",
      kept: { for: "pod shop/db-1", owner: "StatefulSet/db", state: "waiting", until: "2026-01-02T04:04:05.000Z" },
    });
    const text = (await ctl(`ipam show --ip ${waiting}`)).stdout;
    expect(text).toContain("Kept for:   pod shop/db-1\n");
    expect(text).toContain("Until:      2026-01-02T04:04:05.000Z\n");
    expect((await ctl("ipam show --addresses")).stdout).toContain("(waiting)");
    expect((await ctl("describe ippool blue")).stdout).toMatch(/Kept, waiting: +1/);
  });

  test("counts resting ones among the free ones, unless they are reserved", async () => {
    let last = "";
    for (const pod of ["a", "b", "c"]) {
      last = await assign(pod, { isKept: false });
      await allocator().releaseHandle({ handle: `net.${pod}`, node: "n1", interface: "eth0" });
    }
    const free = async (minutes = 0) => (await ctl("ipam show", minutes)).stdout.split("\n")[1]?.split(/ {2,}/)[5];
    expect(await free()).toBe("16 (3 resting)");
    expect((await ctl("describe ippool blue")).stdout).toMatch(/Free, resting: +3/);
    expect(await free(4)).toBe("16");

    await seed(store, reservationChange("r", [last]));
    const { pools } = JSON.parse((await ctl("ipam show -o json")).stdout);
    expect(pools[0]).toMatchObject({ reserved: 1, free: 15, resting: 2 });
  });
});

test("ipam check has nothing to say of one that waits, until its keepFor has been over for long", async () => {
  await waits("db-0");
  expect(await ctl("ipam check", 119)).toMatchObject({ code: EXIT_OK, stderr: "" });

  const late = await ctl("ipam check", 122);
  expect(late.code).toBe(EXIT_OK);
  expect(late.stderr).toContain("1 kept address waits for a pod although its keepFor has been over");
});

test("an ADD that finds no address names those that wait", async () => {
  await waits("db-0");
  for (let pod = 0; pod < 15; pod += 1) await assign(`web-${pod}`, { isKept: false });
  const failure = await assign("one-more", { isKept: false }).catch((error: unknown) => error);

  expect(failure).toMatchObject({
    kind: "addresses-exhausted",
    details: expect.stringContaining("1 of the used addresses is kept for pods that do not run"),
  });
});

describe.each(ATOMICITY)("ipam reserve (%s)", (atomicity) => {
  beforeEach(() => open(atomicity));
  const reserve = (words: string) => ctl(`ipam reserve ${words} --network net`);

  test("lets an address wait for a pod, in a block of its own or in that of a node, and again for longer", async () => {
    const run = await reserve("shop/db-0 10.0.0.5");
    expect(run).toMatchObject({ code: EXIT_OK, stdout: "10.0.0.5 of pool blue waits for pod shop/db-0\n" });
    await assign("web", { isKept: false, address: "10.0.0.9" });
    await reserve("shop/db-1 10.0.0.10 --keep-for 72h");
    expect(new Set(await kept())).toEqual(new Set(["10.0.0.5 db-0 waits", "10.0.0.10 db-1 waits"]));

    await reserve("shop/db-0 10.0.0.5 --keep-for 2h");
    const { kept: state } = JSON.parse((await ctl("ipam show --ip 10.0.0.5 -o json")).stdout);
    expect(state.until).toBe("2026-01-02T05:04:05.000Z");
    await ctl("ipam release --ip 10.0.0.5");
    await ctl("ipam release --pod shop/db-1");
    expect(await kept()).toEqual([]);
  });

  test("under the handle that the pod's ADD asks for", async () => {
    await reserve("shop/db-0 10.0.0.5");
    await ctl("ipam release --ip 10.0.0.5");
    await reserve("shop/db-0 10.0.0.5");
    expect((await readAllRecords(store)).handles.map(({ handleId }) => handleId)).toEqual([
      keepHandle({ network: "net", namespace: "shop", identity: "pod/db-0" }),
    ]);
  });

  test.each([
    ["10.8.0.1", "it is not in an enabled pool", "pools: blue"],
    ["10.9.0.1", "it is not in an enabled pool", "off 10.9.0.0/28 (disabled)"],
    ["10.0.0.1", "10.0.0.5 is kept for it already", "ipam release --ip 10.0.0.5"],
    ["10.0.0.9", "it is taken: 10.0.0.9 (pod shop/web on node n1)", "choose another address"],
    ["10.0.0.12", "the pod's container has it now, but not as a kept one", "keepAddresses"],
    ["10.0.0.13", 'it was released by namespace "other" and rests for another 180 s', "try again"],
    ["10.0.0.14", 'it was released by namespace "other" and rests for another 603 s', "try again"],
  ])("refuses %s: %s", async (address, state, remedy) => {
    if (address === "10.0.0.1") await reserve("shop/db-0 10.0.0.5");
    if (address === "10.0.0.9") await assign("web", { isKept: false, address });
    if (address === "10.0.0.12") await assign("db-0", { isKept: false, address });
    if (address === "10.0.0.14")
      await seed(store, poolChange("blue", "10.0.0.0/28", { blockSize: 30, cooldownSeconds: 600 }));
    if (address === "10.0.0.13" || address === "10.0.0.14") {
      const given = parseAddress(address) ?? fail();
      const other = { node: "n1", attributes: { namespace: "other" } };
      await allocator().assign(
        request("net.other", { ...other, addressRequests: [{ kind: "given", address: given }] }),
      );
      await allocator().releaseAddresses([{ address: given }]);
    }
    const before = await kept();
    const run = await reserve(`shop/db-0 ${address}`);

    expect(run.code).toBe(EXIT_FAILED);
    expect(run.stderr).toContain(state);
    expect(run.stderr).toContain(remedy);
    expect(await kept()).toEqual(before);
  });

  test("takes the network of all pods, and asks for it if there are several or none", async () => {
    expect((await ctl("ipam reserve shop/db-0 10.0.0.5")).stderr).toContain("no pod has an address: name the network");
    await assign("web", { isKept: false });
    expect((await ctl("ipam reserve shop/db-0 10.0.0.5")).code).toBe(EXIT_OK);
    await allocator().assign(
      request("other.c1", { network: "other", node: "n1", attributes: { pod: "a", namespace: "b" } }),
    );
    expect((await ctl("ipam reserve shop/db-1 10.0.0.6")).stderr).toContain("pods are in net, other");
    expect((await ctl("ipam reserve db-1 10.0.0.6 --network net")).code).toBe(EXIT_USAGE);
    expect((await ctl("ipam reserve shop/db-1 10.0.0.6 --network net --keep-for long")).code).toBe(EXIT_USAGE);
  });
});
