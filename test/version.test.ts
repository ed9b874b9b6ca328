import { describe, expect, test } from "bun:test";
import { VERSION } from "../src/version.ts";

describe("the executable", () => {
  test("prints its version", () => {
    const { stdout, exitCode } = Bun.spawnSync(["dist/bin/vendor", "-v"], { env: {} });

    expect(exitCode).toBe(0);
    expect(stdout.toString()).toContain(VERSION);
  });
});
