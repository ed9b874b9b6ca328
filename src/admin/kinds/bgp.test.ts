import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../test/support/admin-context.ts";
import { BAD_BGP, GOOD_BGP } from "../../../test/support/bad-bgp.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

let store = openMemory();
beforeEach(() => {
  store = openMemory();
});

function ctl(words: string, stdin = ""): Promise<AdminRun> {
  return runInside(words.split(" "), { store, stdin });
}

function resource(kind: string, name: string, spec: object): string {
  return JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name }, spec });
}

const applyGood = () =>
  ctl("apply -f -", GOOD_BGP.map(({ kind, name = "", spec }) => resource(kind, name, spec)).join("\n---\n"));

describe("the kinds of BGP", () => {
  test.each(BAD_BGP.map((bad) => [`${bad.kind} with ${bad.what}`, bad] as const))(
    "apply refuses a %s, with the field and what to do",
    async (_, bad) => {
      const { code, stderr } = await ctl("apply -f -", resource(bad.kind, bad.name ?? "bad", bad.spec));

      expect(code).toBe(EXIT_FAILED);
      expect(stderr).toContain(`${bad.path}: `);
      expect(stderr).toContain(bad.message);
    },
  );

  test("are applied without a warning and shown with what operators look for", async () => {
    expect(await applyGood()).toMatchObject({ code: EXIT_OK, stderr: "" });

    expect((await ctl("get bgpconfig -o wide")).stdout.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^NAME +MESH +ASN +PORT +SERVICES/),
      expect.stringMatching(/^default +true +1\.10 +178 +10\.96\.0\.0\/12,fd00:96::\/112,198\.51\.100\.129\/32,203/),
      expect.stringMatching(/^node\.rack-1 .*1790/),
    ]);
    expect((await ctl("get bgppeers")).stdout.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^NAME +PEER +NODE +ASN/),
      expect.stringMatching(/^one-node +192\.0\.2\.1:1790 +a +64512/),
      expect.stringMatching(/^reflectors +has\(reflector\) +!has\(reflector\)/),
      expect.stringMatching(/^router +\[fd00::1\]:1790 +rack == "1" +4200000000/),
    ]);
    expect((await ctl("get bgpfilter from-router")).stdout).toMatch(/from-router +2 +2 +1 +2/);
  });

  test("a filter in use is deleted only with --force", async () => {
    await applyGood();
    const refused = await ctl("delete bgpfilter from-router");

    expect(refused.code).toBe(EXIT_FAILED);
    expect(refused.stderr).toContain("it is in use: bgppeer/router");
    expect(await ctl("delete bgpfilter from-router --force")).toMatchObject({ code: EXIT_OK });
  });
});
