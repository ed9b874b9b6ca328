import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { hostLocalAdd } from "./add.ts";
import { openIndex } from "./owner-index.ts";
import { hostLocalDel } from "./release.ts";
import type { Owner } from "./store.ts";

const folder = temporaryDirectory("hostlocal-index");
afterAll(() => folder.remove());

const never = new AbortController().signal;
let networks = 0;

function network() {
  networks += 1;
  const networkName = `net${networks}`;
  const directory = join(folder.path, networkName);
  mkdirSync(directory);
  const config = { ipam: { dataDir: folder.path, subnet: "10.1.2.0/27" } };
  const call = { config, networkName, cniVersion: "1.0.0", args: "", ifname: "eth0" } as const;
  return {
    directory,
    buckets: () => readdirSync(join(directory, ".index")).filter((name) => name !== "state"),
    path: (name: string) => join(directory, name),
    add: (containerId: string) => hostLocalAdd({ ...call, containerId }, never).catch(() => undefined),
    del: (containerId: string) => hostLocalDel({ ...call, containerId }, never),
  };
}

/** The actual addresses, read from the reservations themselves. */
function heldInFiles(directory: string, containerId: string): readonly string[] {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isFile() && readFileSync(join(directory, entry.name), "utf8") === `${containerId}\r\neth0`)
    .map(({ name }) => name)
    .toSorted();
}

const heldInIndex = (directory: string, owner: Owner) => openIndex(directory).addressesOf(owner).addresses.toSorted();

/** One change to the folder, by our plugin or by another program. */
type Change =
  | { readonly kind: "ADD" | "DEL"; readonly id: string }
  | { readonly kind: "foreign ADD"; readonly id: string; readonly host: number }
  | { readonly kind: "foreign DEL"; readonly host: number }
  | { readonly kind: "index lost" | "index garbled" | "index stale" };

const id = fc.constantFrom("a", "b", "c", "d");
const host = fc.integer({ min: 2, max: 9 });
const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom("ADD" as const, "DEL" as const), id }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("foreign ADD" as const), id, host }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("foreign DEL" as const), host }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom("index lost" as const, "index garbled" as const, "index stale" as const),
    }),
  },
);

async function apply(net: ReturnType<typeof network>, step: Change): Promise<void> {
  switch (step.kind) {
    case "ADD":
      return void (await net.add(step.id));
    case "DEL":
      return void (await net.del(step.id));
    case "foreign ADD":
      // As upstream's plugin does it: the reservation if the address is free, then the last reserved address.
      try {
        writeFileSync(net.path(`10.1.2.${step.host}`), `${step.id}\r\neth0`, { flag: "wx" });
        writeFileSync(net.path("last_reserved_ip.0"), `10.1.2.${step.host}`);
      } catch {
        // The address is reserved already.
      }
      return;
    case "foreign DEL":
      return rmSync(net.path(`10.1.2.${step.host}`), { force: true });
    case "index lost":
      return rmSync(net.path(".index"), { recursive: true, force: true });
    case "index garbled":
      mkdirSync(net.path(".index"), { recursive: true });
      for (const name of net.buckets()) writeFileSync(net.path(`.index/${name}`), "#1\na@eth0 10.1.2.3 nonsense\n.\n");
      return;
    case "index stale":
      mkdirSync(net.path(".index"), { recursive: true });
      return writeFileSync(net.path(".index/state"), "?");
  }
}

describe("openIndex()", () => {
  test("returns the addresses of each container, whichever program changed the folder in whatever order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 25 }), async (steps) => {
        const net = network();
        for (const step of steps) {
          await apply(net, step);
          // A garbled entry is used only if the reservation agrees, so it may hide an address; a killed process cannot cause this.
          if (step.kind === "index garbled") await apply(net, { kind: "index stale" });
          for (const containerId of ["a", "d"]) {
            expect(heldInIndex(net.directory, { containerId, ifname: "eth0" })).toEqual(
              heldInFiles(net.directory, containerId) as string[],
            );
          }
        }
      }),
      { numRuns: 150 },
    );
  });

  test("releases every address of a container, whichever program assigned it", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 15 }), async (steps) => {
        const net = network();
        for (const step of steps) if (step.kind !== "index garbled") await apply(net, step);
        await net.del("a");
        expect(heldInFiles(net.directory, "a")).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });

  test("notices an ADD of another program within the same tick of the clock", async () => {
    const net = network();
    await net.add("a");
    const stopClock = () => utimesSync(net.directory, 1_000, 1_000);
    stopClock();
    const [, ...rest] = readFileSync(net.path(".index/state"), "utf8").split("\n");
    writeFileSync(net.path(".index/state"), ["#1 1000.0", ...rest].join("\n"));
    // The index is valid now: an entry removed from it is not found any more.
    for (const name of net.buckets()) rmSync(net.path(`.index/${name}`));
    expect(heldInIndex(net.directory, { containerId: "a", ifname: "eth0" })).toEqual([]);

    await apply(net, { kind: "foreign ADD", id: "b", host: 5 });
    stopClock();
    expect(heldInIndex(net.directory, { containerId: "b", ifname: "eth0" })).toEqual(["10.1.2.5"]);
  });

  test("ignores an entry that the reservation contradicts", async () => {
    const net = network();
    await net.add("a");
    writeFileSync(net.path("10.1.2.2"), "other\r\neth0");
    await net.del("a");
    expect(heldInFiles(net.directory, "other")).toEqual(["10.1.2.2"]);
  });

  test("stays stale if an entry cannot be written", async () => {
    const net = network();
    await net.add("a");
    for (const name of net.buckets()) rmSync(net.path(`.index/${name}`));
    for (let bucket = 0; bucket < 64; bucket += 1) {
      mkdirSync(net.path(`.index/${bucket.toString(16).padStart(2, "0")}`), { recursive: true });
    }
    await apply(net, { kind: "index stale" });
    await net.add("b");
    expect(heldInIndex(net.directory, { containerId: "b", ifname: "eth0" })).toEqual(["10.1.2.3"]);
    await net.del("b");
    expect(heldInFiles(net.directory, "b")).toEqual([]);
  });

  test("distinguishes containers whose names are too long for a file name", async () => {
    const net = network();
    const long = "x".repeat(300);
    await net.add(`${long}1`);
    await net.add(`${long}2`);
    expect(heldInIndex(net.directory, { containerId: `${long}2`, ifname: "eth0" })).toEqual(["10.1.2.3"]);
    await net.del(`${long}1`);
    expect(heldInIndex(net.directory, { containerId: `${long}1`, ifname: "eth0" })).toEqual([]);
    expect(heldInFiles(net.directory, `${long}2`)).toEqual(["10.1.2.3"]);
  });

  test("is optional: if it cannot be written, all files are read", async () => {
    const net = network();
    writeFileSync(net.path(".index"), "in the way");
    await net.add("a");
    expect(heldInIndex(net.directory, { containerId: "a", ifname: "eth0" })).toEqual(["10.1.2.2"]);
    await net.del("a");
    expect(heldInFiles(net.directory, "a")).toEqual([]);
  });
});
