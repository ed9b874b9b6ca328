/** Flags that users of the peer's tool and of kubectl give from habit. */
import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await ctl("apply -f -", { stdin: POOL });
});

const POOL = document("IPPool", "blue", { cidr: "10.0.0.0/24" }, { labels: { rack: "a" } });
const POLICY = document("NetworkPolicy", "web", { selector: "app == 'web'" }, { namespace: "shop" });

function document(kind: string, name: string, spec: object, metadata: object = {}): string {
  return JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name, ...metadata }, spec });
}

function ctl(words: string, surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  return runInside(words.split(" "), { store, ...surroundings });
}

describe("--skip-empty", () => {
  test.each(["apply", "create", "replace", "delete", "validate", "diff"])(
    "%s accepts an empty directory",
    async (verb) => {
      const files = { "empty/readme.txt": "nothing" };

      expect(await ctl(`${verb} -f empty --skip-empty`, { files })).toMatchObject({ code: EXIT_OK, stdout: "" });
      // "diff" reports failures with 2, as kubectl does.
      expect((await ctl(`${verb} -f empty`, { files })).code).toBe(verb === "diff" ? EXIT_USAGE : EXIT_FAILED);
    },
  );
});

describe("create --skip-exists", () => {
  test("leaves what exists as it is, and creates the rest", async () => {
    const files = {
      "a/1.json": document("IPPool", "blue", { cidr: "10.9.0.0/24" }),
      "a/2.yaml": document("Node", "n1", {}),
    };

    expect(await ctl("create -f a --skip-exists", { files })).toEqual({
      code: EXIT_OK,
      stdout: "ippool/blue already exists\nnode/n1 created\n",
      stderr: "",
    });
    expect((await ctl("get pool blue -o jsonpath={.spec.cidr}")).stdout).toBe("10.0.0.0/24");
    expect((await ctl("create -f a", { files })).code).toBe(EXIT_FAILED);
  });
});

describe("delete -s", () => {
  test.each(["-s", "--skip-not-exists", "--ignore-not-found"])(
    "%s: what does not exist is not a failure",
    async (flag) => {
      expect((await ctl(`delete ippool none ${flag}`)).code).toBe(EXIT_OK);
      expect((await ctl("delete ippool none")).code).toBe(EXIT_FAILED);
    },
  );
});

describe("get", () => {
  test("-o ps is the table", async () => {
    expect(await ctl("get pools -o ps")).toEqual(await ctl("get pools"));
  });

  test.each(["go-template={{.metadata.name}}", "go-template-file=x", "go-template"])(
    "-o %s is refused with the alternative",
    async (format) => {
      const { code, stderr } = await ctl(`get pools -o ${format}`);

      expect(code).toBe(EXIT_USAGE);
      expect(stderr).toContain("jsonpath=TEMPLATE or custom-columns=");
    },
  );

  test("-o custom-columns accepts the columns of the wide table by name", async () => {
    expect((await ctl("get pools -o custom-columns=NAME,cidr,BlockSize,RACK:.metadata.labels.rack")).stdout).toBe(
      "NAME   CIDR          BLOCKSIZE   RACK\nblue   10.0.0.0/24   /26         a\n",
    );
    expect((await ctl("get pools -o custom-columns=NAME,IPIPMODE")).stdout).toBe("NAME   IPIPMODE\nblue   Never\n");
    expect((await ctl("get pools -o custom-columns=NAME,COLOUR")).stderr).toContain("NAME, CIDR, BLOCKSIZE");
  });

  test("--export prints a named resource as it can be created elsewhere", async () => {
    await ctl("apply -f -", { stdin: POLICY });
    const { stdout } = await ctl("get np web -n shop -o json --export");

    expect(JSON.parse(stdout).metadata).toEqual({ name: "web" });
    expect((await ctl("create -f - -n other", { stdin: stdout })).stdout).toBe("networkpolicy/other/web created\n");
    expect((await ctl("get pool blue -o jsonpath={.metadata} --export")).stdout).toBe(
      '{"name":"blue","labels":{"rack":"a"}}',
    );
    expect((await ctl("get pools -o jsonpath={.items[0].metadata.uid} --export")).stdout).not.toBe("");
  });
});

describe("patch -t", () => {
  test.each([
    ["merge", '{"spec":{"disabled":true}}'],
    ["strategic", '{"spec":{"disabled":true}}'],
    ["json", '[{"op":"add","path":"/spec/disabled","value":true}]'],
  ])("%s changes the resource", async (type, patch) => {
    expect((await ctl(`patch ippool blue -t ${type} -p ${patch}`)).stdout).toBe("ippool/blue patched\n");
    expect((await ctl("get pool blue -o jsonpath={.spec.disabled}")).stdout).toBe("true");
  });

  test("strategic replaces an object with $patch", async () => {
    await ctl('patch ippool blue -t strategic -p {"metadata":{"labels":{"$patch":"replace","disk":"ssd"}}}');

    expect((await ctl("get pool blue -o jsonpath={.metadata.labels}")).stdout).toBe('{"disk":"ssd"}');
  });
});

describe("label --remove", () => {
  test("removes labels that are given by their key", async () => {
    expect((await ctl("label ippool blue rack --remove")).stdout).toBe("ippool/blue labelled\n");
    expect((await ctl("get pool blue -o jsonpath={.metadata.labels.rack}")).stdout).toBe("");
  });

  test.each(["rack=a --remove", "rack --remove --overwrite"])("%s is refused", async (words) => {
    expect((await ctl(`label ippool blue ${words}`)).code).toBe(EXIT_USAGE);
  });
});

describe("validate", () => {
  const offline = { openDatastore: () => Promise.reject(new Error("it was opened")) };

  test("opens no datastore, and names each resource", async () => {
    const files = { "d/a.yaml": POOL, "d/e/b.json": POLICY };

    expect(await ctl("validate -f d -R", { files, ...offline })).toEqual({
      code: EXIT_OK,
      stdout: "ippool/blue valid\nnetworkpolicy/shop/web valid\n",
      stderr: "",
    });
  });

  test("reports every problem of a document with its place", async () => {
    const stdin = document("IPPool", "red", { cidr: "10.0.0.0/33", colour: "red" });
    const { code, stderr } = await ctl("validate -f -", { stdin, ...offline });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("stdin:1: spec.cidr");
    expect(stderr).toContain("spec.colour");
  });

  test("finds resources that are wrong only together", async () => {
    const stdin = [POOL, document("IPPool", "red", { cidr: "10.0.0.128/25" }), POLICY, POLICY].join("\n---\n");
    const { code, stdout, stderr } = await ctl("validate -f -", { stdin, ...offline });

    expect([code, stdout]).toEqual([EXIT_FAILED, ""]);
    expect(stderr).toContain('overlaps pool "blue"');
    expect(stderr).toContain("networkpolicy/shop/web is not valid: the same resource is given more than once");
  });
});
