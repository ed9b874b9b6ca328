import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import type { KernelFeature } from "../host/facts.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

const VETH: KernelFeature = { name: "veth links", neededBy: "every pod", need: "always", module: "veth" };
const IPIP: KernelFeature = {
  name: "IPIP tunnels",
  neededBy: "pools with ipipMode",
  need: "sometimes",
  module: "ipip",
};

const check = (features: readonly KernelFeature[], ...args: readonly string[]) =>
  runInside(["node", "checksystem", ...args], { kernelFeatures: { release: "6.1.0", features } });

describe("node checksystem", () => {
  test("lists what the kernel can do", async () => {
    expect(await check([VETH, IPIP])).toEqual({
      code: EXIT_OK,
      stdout: [
        "Kernel 6.1.0",
        "ok      veth links    needed by every pod",
        "ok      IPIP tunnels  needed by pools with ipipMode",
        "",
      ].join("\n"),
      stderr: "",
    });
  });

  test("what only a setting needs is a warning", async () => {
    const { code, stdout } = await check([VETH, { ...IPIP, failure: "Cannot create it: EOPNOTSUPP" }]);

    expect(code).toBe(EXIT_OK);
    expect(stdout).toContain(
      "warning IPIP tunnels  needed by pools with ipipMode\n        Cannot create it: EOPNOTSUPP; run: modprobe ipip\n",
    );
  });

  test("what is always needed makes the exit code 1", async () => {
    const { code, stdout } = await check([{ ...VETH, failure: "no" }], "-o", "json");

    expect(code).toBe(EXIT_FAILED);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, release: "6.1.0", features: [{ failure: "no" }] });
  });
});
