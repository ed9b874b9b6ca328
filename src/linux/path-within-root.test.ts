import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { pathWithinRoot } from "./path-within-root.ts";

describe("pathWithinRoot()", () => {
  test("follows symbolic links as a process with that root would", () => {
    const directory = temporaryDirectory("root");
    const root = directory.path;
    mkdirSync(`${root}/run/secrets/..data`, { recursive: true });
    mkdirSync(`${root}/var`);
    writeFileSync(`${root}/run/secrets/..data/token`, "secret");
    symlinkSync("/run", `${root}/var/run`);
    symlinkSync("../../../run/secrets", `${root}/run/above`);
    symlinkSync("..data/token", `${root}/run/secrets/token`);
    symlinkSync("round", `${root}/round`);

    const read = (path: string) => readFileSync(pathWithinRoot(root, path), "utf8");
    expect(read("/var/run/secrets/token")).toBe("secret");
    expect(read("/run/above/token")).toBe("secret");
    expect(pathWithinRoot(root, "/var/run/secrets/token")).toBe(`${root}/run/secrets/..data/token`);
    expect(pathWithinRoot(root, "/no/../such/./file")).toBe(`${root}/such/file`);
    expect(pathWithinRoot(root, "/round")).toBe(`${root}/round`);
    directory.remove();
  });
});
