/** `ipam check --report` and `ipam release --from-report`. */
import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { means, poolChange, request, seed, textsOf } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { handleKey, resourceKey } from "../../model/keys.ts";
import { VERSION } from "../../version.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";

const LATER = new Date("2026-01-03T03:04:05Z");

let store = openMemory();
let files: Record<string, string> = {};
beforeEach(async () => {
  store = openMemory();
  files = {};
  await seed(store, poolChange("blue", "10.0.0.0/28", { blockSize: 28 }), profile("net"));
  await ctl("datastore init");
});

function ctl(words: string, surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  const replaceFile = async (path: string, text: string) => {
    files[path] = text;
    return true;
  };
  return runInside(words.split(" "), { store, files, now: LATER, replaceFile, ...surroundings });
}

function put(kind: string, plural: string, name: { name: string; namespace?: string }, spec: object) {
  const value = JSON.stringify({ apiVersion: API_VERSION, kind, metadata: name, spec });
  return { kind: "put", key: resourceKey(plural, name), value } as const;
}

/** As the CNI plugin writes it for a network that it serves. */
function profile(name: string) {
  return put("Profile", "profiles", { name }, { labelsToApply: { [name]: "" } });
}

async function assign(handle: string): Promise<string> {
  const [address = ""] = textsOf(
    await openAllocator(store, means()).assign(
      request(handle, { network: "net", attributes: { pod: handle, namespace: "red" } }),
    ),
  );
  return address;
}

function lock(isLocked = true): Promise<AdminRun> {
  return ctl(`patch clusterinfo default -p {"spec":{"datastoreReady":${!isLocked}}}`);
}

const stateOf = async (address: string) => JSON.parse((await ctl(`ipam show --ip ${address} -o json`)).stdout).state;

describe("ipam check --report", () => {
  test("writes every address with its owner, and those that are leaked", async () => {
    const leaked = await assign("net.a");
    const used = await assign("net.b");
    await seed(
      store,
      put(
        "WorkloadEndpoint",
        "workloadendpoints",
        { name: "b", namespace: "red" },
        { ipNetworks: [`${used}/32`], pod: "net.b" },
      ),
      {
        kind: "put",
        key: handleKey("net.x"),
        value: JSON.stringify({ handleID: "net.x", block: { "10.0.0.48/28": 1 } }),
      },
    );
    await lock();
    const { code, stderr } = await ctl("ipam check --report r.json");
    const report = JSON.parse(files["r.json"] ?? "");

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain('"r.json"');
    expect(report).toMatchObject({ version: VERSION, datastoreLocked: true, leakedHandles: ["net.x"] });
    expect(report.clusterGUID).not.toBe("");
    expect(report.allocations[leaked]).toMatchObject([
      { block: "10.0.0.0/28", handle: "net.a", leaked: expect.any(String) },
    ]);
    expect(report.allocations[used][0].leaked).toBeUndefined();
    expect(report.allocations[used][0].owner).toContain("pod red/net.b");
  });

  test("cannot be combined with --fix", async () => {
    expect((await ctl("ipam check --report r.json --fix")).code).toBe(EXIT_USAGE);
  });
});

describe("ipam check", () => {
  test("--show-all-ips lists addresses in use, --show-problem-ips those with a problem", async () => {
    const [leaked, used] = [await assign("net.a"), await assign("net.b")];
    await seed(
      store,
      put(
        "WorkloadEndpoint",
        "workloadendpoints",
        { name: "b", namespace: "red" },
        { ipNetworks: [`${used}/32`], pod: "net.b" },
      ),
    );
    const all = (await ctl("ipam check --show-all-ips")).stdout;
    const problems = (await ctl("ipam check --show-problem-ips")).stdout;

    expect(all).toContain(`${leaked}   allocation-without-endpoint   `);
    expect(all).toContain(`${used}   in use   `);
    expect(problems).toContain(`${leaked}   allocation-without-endpoint   `);
    expect(problems).not.toContain(used);
    expect(JSON.parse((await ctl("ipam check --show-all-ips -o json")).stdout).addresses).toHaveLength(2);
  });
});

describe("ipam release --from-report", () => {
  test("releases what is leaked in all reports, with handles that no address belongs to", async () => {
    const address = await assign("net.a");
    await seed(store, {
      kind: "put",
      key: handleKey("net.x"),
      value: JSON.stringify({ handleID: "net.x", block: { "10.0.0.48/28": 1 } }),
    });
    await ctl("ipam check --report first.json");
    const later = await assign("net.later");
    await lock();
    await ctl("ipam check --report second.json");

    expect(await ctl("ipam release --from-report first.json --from-report second.json")).toEqual({
      code: EXIT_OK,
      stdout: `Released ${address}\nRemoved handle net.x\n`,
      stderr: "",
    });
    expect([await stateOf(address), await stateOf(later)]).toEqual(["free", "in use"]);
    expect((await store.read([{ kind: "key", key: handleKey("net.x") }])).answers.flat()).toEqual([]);
  });

  test("keeps an address that was assigned again, or that an endpoint names", async () => {
    const [again, named] = [await assign("net.a"), await assign("net.b")];
    await lock();
    await ctl("ipam check --report r.json");
    // By a release that does not know the lock.
    const careless = openAllocator(store, means({ now: () => LATER, lock: "ignore" }));
    await careless.releaseHandle({ handle: "net.a", node: "node-1" });
    const family = {
      kind: "given",
      address: { family: 4, value: 0x0a00_0000n + BigInt(again.split(".")[3] ?? 0) },
    } as const;
    const rested = openAllocator(store, means({ now: () => new Date(LATER.getTime() + 180_000), lock: "ignore" }));
    await rested.assign(request("net.new", { network: "net", addressRequests: [family] }));
    await seed(
      store,
      put("WorkloadEndpoint", "workloadendpoints", { name: "b", namespace: "red" }, { ipNetworks: [`${named}/32`] }),
    );
    const { code, stdout } = await ctl("ipam release --from-report r.json");

    expect(code).toBe(EXIT_OK);
    expect(stdout).toContain(`Kept ${again}: it was assigned again since the report`);
    expect(stdout).toContain(`Kept ${named}: it is in use: workloadendpoint/red/b`);
  });

  const refusals: readonly (readonly [
    string,
    (report: Record<string, unknown>) => object,
    RegExp,
    "always" | "without --force",
  ])[] = [
    ["of another cluster", (report) => ({ ...report, clusterGUID: "other" }), /another cluster/, "always"],
    ["of another release", (report) => ({ ...report, version: "v3.0.0" }), /--force/, "without --force"],
    [
      "that is older than the lock",
      (report) => ({ ...report, clusterInformationRevision: "1" }),
      /older than/,
      "always",
    ],
    ["that is not one", () => ({ a: 1 }), /not a report/, "always"],
  ];
  test.each(refusals)("refuses a report %s", async (_, change, reason, when) => {
    const address = await assign("net.a");
    await lock();
    await ctl("ipam check --report r.json");
    files["r.json"] = JSON.stringify(change(JSON.parse(files["r.json"] ?? "")));
    const refused = await ctl("ipam release --from-report r.json");

    expect([refused.code, await stateOf(address)]).toEqual([EXIT_FAILED, "in use"]);
    expect(refused.stderr).toMatch(reason);
    expect((await ctl("ipam release --from-report r.json --force")).code).toBe(
      when === "always" ? EXIT_FAILED : EXIT_OK,
    );
  });

  test("refuses while the datastore is not locked, unless it is forced", async () => {
    await assign("net.a");
    await ctl("ipam check --report r.json");

    expect((await ctl("ipam release --from-report r.json")).stderr).toContain("not locked");
    expect((await ctl("ipam release --from-report r.json --force")).code).toBe(EXIT_OK);
  });

  test("one of several reports must be newer than the lock", async () => {
    await assign("net.a");
    await ctl("ipam check --report old.json");
    await lock();

    expect((await ctl("ipam release --from-report old.json")).stderr).toContain("older than");
    await ctl("ipam check --report new.json");
    expect((await ctl("ipam release --from-report old.json --from-report new.json")).code).toBe(EXIT_OK);
  });

  test.each(["--from-report r.json --ip 10.0.0.1", "--from-report r.json --handle net.a"])(
    "%s is wrong usage",
    async (words) => {
      expect((await ctl(`ipam release ${words}`)).code).toBe(EXIT_USAGE);
    },
  );
});
