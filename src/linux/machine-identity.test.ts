import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureMachineIdentity, type MachineIdFiles, readMachineIdentity } from "./machine-identity.ts";

let directory: string;
let files: MachineIdFiles;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "machine-"));
  files = { stateDirectory: join(directory, "state"), systemFile: join(directory, "machine-id") };
});
afterEach(() => rm(directory, { recursive: true }));

describe("readMachineIdentity()", () => {
  test("is a hash of the machine's ID, not the ID itself", async () => {
    await writeFile(files.systemFile ?? "", "0123456789abcdef0123456789abcdef\n");
    const first = readMachineIdentity(files);

    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(first).not.toBe("0123456789abcdef0123456789abcdef");
    expect(readMachineIdentity(files)).toBe(first);
  });

  test.each(["", "\n", "uninitialized\n"])("takes %j for no ID", async (text) => {
    await writeFile(files.systemFile ?? "", text);

    expect(readMachineIdentity(files)).toBeUndefined();
  });
});

describe("ensureMachineIdentity()", () => {
  test("generates an ID once, in the state directory, which goes before that of the system", async () => {
    const generated = await ensureMachineIdentity(files, () => "a-b-c");
    await writeFile(files.systemFile ?? "", "0123456789abcdef0123456789abcdef\n");

    expect(await ensureMachineIdentity(files, () => "d-e-f")).toBe(generated);
    expect(readMachineIdentity(files)).toBe(generated);
  });
});
