import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface LockedPackage {
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly engines?: { readonly node?: string };
}

/** The Node.js of Debian 12, whose npm installs the tools; they run on Bun. */
const NODE = "18.20.4";

describe("package-lock.json", () => {
  const file = readFileSync(join(import.meta.dir, "../../package-lock.json"), "utf8");
  const packages: Readonly<Record<string, LockedPackage>> = JSON.parse(file).packages;

  /** npm leaves an optional package out, without a word, when its `engines` exclude the Node.js that runs npm. */
  test("has no native part of a tool that npm of Debian leaves out: delete such an `engines` entry", () => {
    const native = Object.entries(packages).filter(
      ([, { optional, os, cpu }]) =>
        optional && os?.includes("linux") && cpu?.some((each) => each === "x64" || each === "arm64"),
    );
    const leftOut = native.filter(([, { engines }]) => !Bun.semver.satisfies(NODE, engines?.node ?? "*"));

    expect(native.length).toBeGreaterThan(4);
    expect(leftOut.map(([name]) => name)).toEqual([]);
  });
});
