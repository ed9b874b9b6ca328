import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";

const LINE = "kernel: vendor-packet: IN=eth0 OUT= SRC=10.0.0.9 DST=10.0.0.1 LEN=60 PROTO=TCP SPT=40000 DPT=22 SYN";

describe("upgrade draft-policy", () => {
  test("prints a policy for the hosts that a selector names", async () => {
    const args = ["upgrade", "draft-policy", "--log", "-", "--selector", "role == 'edge'", "--name", "edge"];
    const { code, stdout, stderr } = await runInside(args, { stdin: `${LINE}\nother\n${LINE}\n` });

    expect(code).toBe(EXIT_OK);
    expect(Bun.YAML.parse(stdout)).toMatchObject({
      kind: "GlobalNetworkPolicy",
      metadata: { name: "edge" },
      spec: {
        selector: "role == 'edge'",
        ingress: [{ protocol: "TCP", source: { nets: ["10.0.0.9/32"] }, destination: { ports: [22] } }],
      },
    });
    expect(stderr).toBe("2 packets: 1 ingress and 0 egress rules\n");
  });

  test("says that the label which it selects by default goes", async () => {
    const { stderr } = await runInside(["upgrade", "draft-policy", "--log", "-"], { stdin: LINE });

    expect(stderr).toContain("The upgrade removes the label host-endpoint-upgrade");
  });

  test.each([
    [["--log", "-"], EXIT_FAILED, "Cannot find any logged packet"],
    [[], EXIT_USAGE, '"--log FILE" is required'],
    [["--log", "-", "--selector", "role ="], EXIT_USAGE, "is not a selector"],
  ] as const)("refuses %j", async (args, code, message) => {
    const run = await runInside(["upgrade", "draft-policy", ...args], { stdin: "nothing" });

    expect([run.code, run.stderr.includes(message)]).toEqual([code, true]);
  });
});
