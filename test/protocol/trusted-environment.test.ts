/** Variables by which the language runtime would load code or print secrets: every program of the product refuses to run. */
import { describe, expect, test } from "bun:test";
import { CALL_SERVER_TUNING } from "../../src/agent/calls/call-server-process.ts";
import { COLLECTOR_TUNING } from "../../src/agent/flows/collector-process.ts";
import { TUNING_VARIABLES } from "../../src/bin/trusted-environment.ts";
import { identity } from "../../src/identity.ts";
import { NODE_ENVIRONMENT } from "../../src/release/host-files.ts";
import { builtProgram } from "../support/run-plugin.ts";

const PATH = "/usr/bin:/bin";

function run(program: string, args: readonly string[], environment: Readonly<Record<string, string>>) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([builtProgram(program), ...args], {
    env: { PATH, ...environment },
    stdin: Buffer.from("{}"),
  });
  return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

describe.each(["BUN_OPTIONS", "BUN_CONFIG_VERBOSE_FETCH", "BUN_INSPECT_NOTIFY"])("the variable %s", (name) => {
  // Without effect by itself, so that the refusal is the program's own.
  const value = name === "BUN_OPTIONS" ? "--smol" : "";

  test.each([identity.product, identity.ipamType, "host-local", "portmap", "bandwidth"])("stops %s", (program) => {
    const { exitCode, stdout } = run(program, [], { CNI_COMMAND: "VERSION", [name]: value });

    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ code: 4, msg: expect.stringContaining(`"${name}"`) });
  });

  test.each([identity.adminTool, identity.nodeAgent])("stops %s", (program) => {
    const { exitCode, stderr } = run(program, ["-v"], { [name]: value });

    expect(exitCode).toBe(1);
    expect(stderr).toContain(`"${name}"`);
  });
});

const TUNING = { ...COLLECTOR_TUNING, ...CALL_SERVER_TUNING, ...NODE_ENVIRONMENT };

describe("a variable without effect on code", () => {
  test.each([...TUNING_VARIABLES, "BUN_INSTALL"])("%s is accepted", (name) => {
    const value = Object.entries(TUNING).find(([each]) => each === name)?.[1] ?? "/root/.bun";

    expect(run(identity.product, [], { CNI_COMMAND: "VERSION", [name]: value }).exitCode).toBe(0);
  });

  test("is every tuning of the node agent", () => {
    const tuning = Object.keys(TUNING).filter((name) => name.startsWith("BUN_"));

    expect(tuning).toEqual([...TUNING_VARIABLES]);
  });
});
