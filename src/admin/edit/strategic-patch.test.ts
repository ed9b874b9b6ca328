import { describe, expect, test } from "bun:test";
import { PatchError } from "./patch-error.ts";
import { strategicPatch } from "./strategic-patch.ts";

const TARGET = { metadata: { labels: { a: "1", b: "2" } }, spec: { cidr: "10.0.0.0/24", allowedUses: ["Workload"] } };

describe("strategicPatch()", () => {
  test.each([
    [{ metadata: { labels: { a: null, c: "3" } } }, { ...TARGET, metadata: { labels: { b: "2", c: "3" } } }],
    [{ spec: { allowedUses: ["Tunnel"] } }, { ...TARGET, spec: { cidr: "10.0.0.0/24", allowedUses: ["Tunnel"] } }],
    [{ metadata: { labels: { $patch: "replace", c: "3" } } }, { ...TARGET, metadata: { labels: { c: "3" } } }],
    [{ metadata: { labels: { $patch: "delete" } } }, { ...TARGET, metadata: {} }],
    [{ metadata: { labels: { $patch: "merge", a: "9" } } }, { ...TARGET, metadata: { labels: { a: "9", b: "2" } } }],
    [
      { spec: { allowedUses: [{ $patch: "replace" }, "Tunnel"] } },
      { ...TARGET, spec: { cidr: "10.0.0.0/24", allowedUses: ["Tunnel"] } },
    ],
  ])("%j", (patch, expected) => {
    expect(strategicPatch(TARGET, patch)).toEqual(expected);
  });

  test.each([
    [{ spec: { $patch: "wipe" } }, "merge, replace or delete"],
    [{ spec: { "$deleteFromPrimitiveList/allowedUses": ["Workload"] } }, "--type json"],
    [{ spec: { $retainKeys: ["cidr"] } }, "--type json"],
    [{ spec: { ingress: [{ $patch: "delete", name: "x" }] } }, "--type json"],
  ])("refuses %j and names the alternative", (patch, alternative) => {
    expect(() => strategicPatch(TARGET, patch)).toThrow(PatchError);
    expect(() => strategicPatch(TARGET, patch)).toThrow(alternative);
  });
});
