import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { means, request } from "../../../test/support/ipam.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await ctl("apply -f -", pool("blue", "10.0.0.0/24", {}, { rack: "a" }), node("n1", { rack: "a" }), node("n2"));
});

function ctl(words: string, ...documents: readonly object[]): Promise<AdminRun> {
  return run(words.split(" "), { stdin: documents.map((each) => JSON.stringify(each)).join("\n---\n") });
}

function run(args: readonly string[], surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  return runInside(args, { store, ...surroundings });
}

function pool(name: string, cidr: string, spec: object = {}, labels?: object): object {
  return { apiVersion: API_VERSION, kind: "IPPool", metadata: { name, labels }, spec: { cidr, ...spec } };
}

function node(name: string, labels?: object): object {
  return { apiVersion: API_VERSION, kind: "Node", metadata: { name, labels } };
}

async function revision(): Promise<string> {
  return (await store.read([])).revision;
}

describe("--dry-run", () => {
  test.each([
    ["apply -f - --dry-run", "ippool/red created (dry run)\nippool/blue unchanged (dry run)\n"],
    ["apply -f - --dry-run=client", "ippool/red created (dry run)\nippool/blue unchanged (dry run)\n"],
    ["--dry-run=server delete nodes --all", undefined],
    ["delete nodes --all --dry-run=server", "node/n1 deleted (dry run)\nnode/n2 deleted (dry run)\n"],
    ["delete pool blue --dry-run", "ippool/blue deleted (dry run)\n"],
    ["label node n2 rack=b --dry-run", "node/n2 labelled (dry run)\n"],
    ["patch node n2 -p {} --dry-run", "node/n2 unchanged (dry run)\n"],
  ])("%s checks everything and writes nothing", async (words, stdout) => {
    const before = await revision();
    const done = await ctl(words, pool("red", "10.0.1.0/24"), pool("blue", "10.0.0.0/24"));

    expect(await revision()).toBe(before);
    if (stdout === undefined) expect(done.code).toBe(EXIT_USAGE);
    else expect(done).toEqual({ code: EXIT_OK, stdout, stderr: "" });
  });

  test("fails as the command itself would", async () => {
    const exists = await ctl("create -f - --dry-run", pool("blue", "10.0.0.0/24"));
    const overlap = await ctl("create -f - --dry-run", pool("a", "10.9.0.0/24"), pool("b", "10.9.0.0/25"));
    await openAllocator(store, means()).assign(request("net.c1"));
    const inUse = await ctl("delete pool blue --dry-run");

    expect(exists).toMatchObject({ code: EXIT_FAILED, stdout: "" });
    expect(overlap.stdout).toBe("ippool/a created (dry run)\n");
    expect(overlap.stderr).toContain('overlaps pool "a"');
    expect(inUse.stderr).toContain("net.c1");
    expect((await ctl("delete pool blue --dry-run --force")).stdout).toBe("ippool/blue deleted (dry run)\n");
    expect((await ctl("get pool blue -o jsonpath={.spec.disabled}")).stdout).toBe("false");
  });

  test("is marked in JSON output, without revisions", async () => {
    const { stdout } = await ctl("label node n2 rack=b --dry-run -o json");

    expect(JSON.parse(stdout)).toEqual({ dryRun: true, results: [{ resource: "node/n2", action: "labelled" }] });
  });

  test("with none the work is done", async () => {
    expect((await ctl("label node n2 rack=b --dry-run=none")).stdout).toBe("node/n2 labelled\n");
    expect((await ctl("get nodes -l rack=b -o name")).stdout).toBe("node/n2\n");
  });
});

describe("diff", () => {
  test("prints what apply would change, and exits with 1", async () => {
    const changed = pool("blue", "10.0.0.0/24", { disabled: true });
    const { code, stdout, stderr } = await ctl("diff -f -", changed, node("n1"));

    expect([code, stderr]).toEqual([1, ""]);
    expect(stdout).toBe(
      [
        "--- ippool/blue (stored)",
        "+++ ippool/blue (after apply)",
        "@@ -11,7 +11,7 @@",
        "   natOutgoing: false",
        "   nodeSelector: all()",
        "   blockSize: 26",
        "-  disabled: false",
        "+  disabled: true",
        "   disableBGPExport: false",
        "   allowedUses:",
        "     - Workload",
        "",
      ].join("\n"),
    );
    expect((await ctl("get pool blue -o jsonpath={.spec.disabled}")).stdout).toBe("false");
  });

  test("exits with 0 without differences, with 2 after a failure", async () => {
    expect(await ctl("diff -f -", pool("blue", "10.0.0.0/24"))).toEqual({ code: EXIT_OK, stdout: "", stderr: "" });
    expect(await ctl("diff -f -", pool("blue", "10.0.0.0/23"), node("n9"))).toMatchObject({
      code: 2,
      stdout: expect.stringContaining("+++ node/n9 (after apply)"),
      stderr: expect.stringContaining("spec.cidr"),
    });
    expect((await ctl("diff -f -", { kind: "Nonsense" })).code).toBe(2);
    expect((await ctl("diff")).code).toBe(EXIT_USAGE);
  });

  test("shows a resource that does not exist as new, also as JSON", async () => {
    const { code, stdout } = await ctl("diff -f - -o json", node("n9"));

    expect(code).toBe(1);
    expect(JSON.parse(stdout).differences).toEqual([
      { resource: "node/n9", action: "created", diff: expect.stringContaining("+kind: Node\n") },
    ]);
  });
});

describe("delete", () => {
  test("deletes the resources that a selector names, or all of them", async () => {
    expect((await ctl("delete nodes -l rack=a")).stdout).toBe("node/n1 deleted\n");
    expect((await ctl("delete nodes,pools --all")).stdout).toBe("node/n2 deleted\nippool/blue deleted\n");
    expect(await ctl("delete nodes --all")).toEqual({ code: EXIT_OK, stdout: "", stderr: "No resources found.\n" });
  });

  test("deletes in one namespace, or in all", async () => {
    const endpoint = (namespace: string) => ({
      apiVersion: API_VERSION,
      kind: "WorkloadEndpoint",
      metadata: { name: "w", namespace },
      spec: {},
    });
    await ctl("apply -f -", endpoint("prod"), endpoint("test"), endpoint("default"));

    expect((await ctl("delete wep --all")).stdout).toBe("workloadendpoint/default/w deleted\n");
    expect((await ctl("delete wep --all -n prod")).stdout).toBe("workloadendpoint/prod/w deleted\n");
    expect((await ctl("delete wep --all -A")).stdout).toBe("workloadendpoint/test/w deleted\n");
  });

  test.each(["delete nodes", "delete node n1 --all", "delete nodes --all -l a=b", "delete --all", "delete -f x --all"])(
    "refuses %p",
    async (words) => {
      expect((await ctl(words)).code).toBe(EXIT_USAGE);
      expect((await ctl("get nodes -o name")).stdout).toBe("node/n1\nnode/n2\n");
    },
  );
});

describe("patch", () => {
  const patch = (...args: readonly string[]) => run(["patch", "node", "n1", ...args]);

  test("--type json applies a list of operations", async () => {
    const operations = [
      { op: "test", path: "/metadata/labels/rack", value: "a" },
      { op: "replace", path: "/metadata/labels/rack", value: "b" },
      { op: "add", path: "/spec/bgp", value: { asNumber: 64512 } },
    ];

    expect((await patch("--type", "json", "-p", JSON.stringify(operations))).stdout).toBe("node/n1 patched\n");
    expect((await ctl("get node n1 -o jsonpath={.metadata.labels.rack},{.spec.bgp.asNumber}")).stdout).toBe("b,64512");
    const again = await patch("--type=json", "-p", JSON.stringify(operations));
    expect(again.code).toBe(EXIT_FAILED);
    expect(again.stderr).toContain('operation 1: "/metadata/labels/rack" is "b", not "a"');
  });

  test("reads the patch from a file", async () => {
    const files = { "p.yaml": "metadata: {labels: {disk: ssd}}" };

    expect((await run(["patch", "node", "n1", "--patch-file", "p.yaml"], { files })).stdout).toBe("node/n1 patched\n");
    expect((await patch("--patch-file", "nowhere")).stderr).toContain("no such file");
  });

  test.each([
    [["--type", "apply", "-p", "{}"], "merge or json or strategic"],
    [["--type", "json", "-p", "{}"], "--type merge"],
    [["-p", "[]"], "--type json"],
    [["-p", "{}", "--patch-file", "x"], "not both"],
    [[], "required"],
  ])("refuses %p", async (args, reason) => {
    const { code, stderr } = await patch(...args);

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain(reason);
  });
});

describe("describe", () => {
  test("shows a pool with its usage and blocks", async () => {
    const { code, stdout } = await ctl("describe pool blue");

    expect(code).toBe(EXIT_OK);
    expect(stdout).toStartWith("Name:         blue\nKind:         IPPool\n");
    expect(stdout).toContain(
      "Labels:       rack=a\nAnnotations:  <none>\nCreated:      2026-01-02T03:04:05.000Z (0s ago)\n",
    );
    expect(stdout).toContain("Spec:\n  cidr: 10.0.0.0/24\n");
    expect(stdout).toEndWith(
      "Addresses:\n  Size:       256\n  Used:       0\n  Reserved:   0\n  Free:       256\nBlocks:\n  <none>\n",
    );
  });

  test("shows several resources, as JSON too, and fails for a missing one", async () => {
    expect((await ctl("describe nodes")).stdout.match(/^Name:/gm)).toHaveLength(2);
    expect(JSON.parse((await ctl("describe nodes -l rack=a -o json")).stdout)).toMatchObject({
      items: [{ resource: { metadata: { name: "n1" } }, related: [{ title: "Blocks", rows: [] }] }],
    });
    expect((await ctl("describe node n3")).code).toBe(EXIT_FAILED);
  });
});

describe("api-resources", () => {
  test("lists every kind with its names", async () => {
    expect((await ctl("api-resources")).stdout).toMatch(
      new RegExp(`^ippools +pool,pools,ipp +${API_VERSION} +false +IPPool$`, "m"),
    );
    expect((await ctl("api-resources -o name")).stdout).toStartWith(`ippools.${API_VERSION.split("/")[0]}\n`);
    expect((await ctl("api-resources --no-headers")).stdout).toStartWith("ippools ");
    expect(JSON.parse((await ctl("api-resources -o json")).stdout).resources[0]).toMatchObject({ kind: "IPPool" });
  });
});
