/** The systemd unit of the node agent: valid, and harmless to the files of others. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { identity } from "../../src/identity.ts";
import { nodeService } from "../../src/release/host-files.ts";
import { renamedIdentity } from "../identity/other-name.ts";
import { program, testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY } from "../support/network-under-test.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const NAME = `${identity.nodeAgent}.service`;
const unit = readFileSync(join(import.meta.dir, "../../deploy", NAME), "utf8");

const folder = temporaryDirectory("node-service");
afterAll(() => folder.remove());

/** From all sections: no key of this unit occurs in two of them. */
const settings = new Map(
  unit
    .split("\n")
    .filter((line) => /^[A-Z]\w*=/.test(line))
    .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const),
);

/**
 * Settings that give a service a mount or network namespace of its own, or keep it from entering others (systemd.exec),
 * and those that remove directories when it stops.
 */
const FORBIDDEN = [
  /^(Private|Protect|ReadOnly|ReadWrite|Inaccessible|Exec|NoExec|Bind|Temporary|Extension|Mount|Root|Restrict|Dynamic)/,
  /^(NetworkNamespacePath|JoinsNamespaceOf|RuntimeDirectory.*)$/,
];

describe("the unit of the node agent", () => {
  testNeeding(program("systemd-analyze"))("is valid for systemd", () => {
    expect(objectionsTo(unit)).toEqual([]);
    expect(objectionsTo(unit.replace("KillMode=process", "KillMode=unheard-of"))).toHaveLength(1);
  });

  test("starts the agent from the plugins' directory, and restarts it whenever it ends", () => {
    const started = settings.get("ExecStart") ?? "";

    expect(basename(started)).toBe(identity.nodeAgent);
    expect(started).toBe(join(BIN_DIRECTORY, identity.nodeAgent));
    expect(settings.get("Restart")).toBe("always");
  });

  test("leaves the agent in the host's namespaces, and does not touch the run directory", () => {
    const names = [...settings.keys()].filter((name) => !name.startsWith("ExecStart"));

    expect(names.length).toBeGreaterThan(5);
    expect(names.filter((name) => FORBIDDEN.some((pattern) => pattern.test(name)))).toEqual([]);
  });

  test("uses the names of another identity, and none of ours", () => {
    const other = nodeService(renamedIdentity(identity, "quillon"), "/opt/cni/bin");

    expect(other).toContain("quillon-node");
    expect(other.toLowerCase()).not.toContain(identity.product);
  });
});

/** The messages of systemd about the unit, with the path of this build's program. It exits with 0 even if it ignores a line. */
function objectionsTo(text: string): readonly string[] {
  const path = join(folder.path, NAME);
  const installed = settings.get("ExecStart") ?? "";
  const here = `ExecStart=${builtProgram(identity.nodeAgent)}`;
  writeFileSync(path, text.replace(`ExecStart=${installed}`, here));
  const { exitCode, stdout, stderr } = Bun.spawnSync(["systemd-analyze", "verify", "--man=no", path], {
    timeout: 20_000,
  });
  expect(exitCode).toBe(0);
  return `${stdout}${stderr}`.split("\n").filter((line) => line.includes(identity.nodeAgent));
}
