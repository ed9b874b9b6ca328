import { describe, expect, test } from "bun:test";
import { assignFiles } from "../../scripts/test-lanes.ts";

describe("assignFiles()", () => {
  const ROUNDS = [
    [{ name: "measuring", takes: ["test/rates.test.ts"] }],
    [
      { name: "host", takes: "the rest" },
      { name: "cluster", takes: ["test/kube/", "test/clients/"] },
    ],
  ] as const;

  test("gives a file to the lane that takes it, and to the rest if none does", () => {
    const files = ["test/kube/b.test.ts", "test/rates.test.ts", "test/new/a.test.ts", "test/kube/a.test.ts"];

    expect(assignFiles(files, ROUNDS)).toEqual([
      [{ name: "measuring", files: ["test/rates.test.ts"] }],
      [
        { name: "host", files: ["test/new/a.test.ts"] },
        { name: "cluster", files: ["test/kube/a.test.ts", "test/kube/b.test.ts"] },
      ],
    ]);
  });

  test("leaves out a lane without files, which the runner would take as every file", () => {
    expect(assignFiles(["test/a.test.ts"], ROUNDS)).toEqual([[], [{ name: "host", files: ["test/a.test.ts"] }]]);
  });

  test("fails if no lane takes a file", () => {
    expect(() => assignFiles(["test/a.test.ts"], [[{ name: "cluster", takes: ["test/kube/"] }]])).toThrow(
      "test/a.test.ts",
    );
  });

  test("has every test of the repository in exactly one lane, and every lane has files", () => {
    const files = [...new Bun.Glob("{src,test}/**/*.test.{ts,tsx}").scanSync()];
    const lanes = assignFiles(files).flat();

    expect(lanes.flatMap((lane) => lane.files).toSorted()).toEqual(files.toSorted());
    expect(lanes.map(({ name }) => name)).toEqual(["measuring", "cluster", "packet", "host"]);
  });
});
